"""Which fields Kubernetes has, to find misspelt ones in what users write.

The structs of this package declare the fields that the scheduler reads; a field they lack may be
wrong (`nodeSelectr`) or just not read (`livenessProbe`). The names of all fields are in
`known_fields.txt`, which is read at the first use.

Not here: the values of fields (`decode`, `check`).
"""

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from kubestow.api.decode import is_list, is_map
from kubestow.api.meta import JsonObject

_TABLE: Final = "known_fields.txt"


class UnknownField(NamedTuple):
    """A field that no version of its object has."""

    # As `spec.containers[0].imagee`.
    path: str
    # A known field with almost the same name; empty if there is none.
    similar: str


class _FieldType(NamedTuple):
    # Empty if anything may be below it: a text, a number, a map of texts.
    name: str
    is_map: bool


def unknown_fields(document: JsonObject) -> list[UnknownField]:
    """The fields that are unknown, in the order they are written; none for an unknown kind."""
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _types():
        return []
    return list(_unknown_in(document, kind, ""))


def _unknown_in(value: object, type_name: str, path: str) -> Iterator[UnknownField]:
    if is_list(value):
        for index, item in enumerate(value):
            yield from _unknown_in(item, type_name, f"{path}[{index}]")
        return
    if not is_map(value):
        return
    known = _types()[type_name]
    for name, entry in value.items():
        below = f"{path}.{name}" if path else name
        field = known.get(name)
        if field is None:
            similar = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            yield UnknownField(below, similar[0] if similar else "")
        elif field.is_map and is_map(entry):
            for key, item in entry.items():
                yield from _unknown_in(item, field.name, f'{below}["{key}"]')
        elif field.name:
            yield from _unknown_in(entry, field.name, below)


@cache
def _types() -> Mapping[str, Mapping[str, _FieldType]]:
    """Fields by name, by type."""
    types: dict[str, dict[str, _FieldType]] = {}
    fields: dict[str, _FieldType] = {}
    text = files("kubestow.api").joinpath(_TABLE).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        type_name, colon, rest = line.partition(":")
        if colon:
            fields = types[type_name] = {}
        for word in (rest if colon else line).split():
            name, _, below = word.partition("=")
            fields[name] = _FieldType(below.removeprefix("*"), below.startswith("*"))
    return types
