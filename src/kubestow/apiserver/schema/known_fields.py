"""Misspelt fields in what users write, with the field that was probably meant.

The structs of `api` declare the fields that the scheduler reads; a field they lack may be wrong
(`nodeSelectr`) or just not read (`livenessProbe`). The table of all fields has the answer.

Not here: the values of fields (`api.decode`, `api.check`), requests to a server (`reading`).
"""

import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.schema.types import Schema, Shape
from kubestow.cluster.documents import is_list, is_object
from kubestow.cluster.resources import default_resources

_MAP_OR_LIST: Final = frozenset({dict, list})


class UnknownField(NamedTuple):
    """A field that no version of its object has."""

    # As `spec.containers[0].imagee`.
    path: str
    # A known field with almost the same name; empty if there is none.
    similar: str


def unknown_fields(document: JsonObject) -> list[UnknownField]:
    """The fields that are unknown, in the order they are written; none for an unknown kind."""
    schema = _schemas_by_kind().get(document.get("kind"))
    if schema is None or _is_known(document, schema):
        return []
    return list(_unknown_in(document, schema, ""))


def _is_known(value: object, schema: Schema) -> bool:
    """Whether all fields are known: the answer for almost every object, without paths."""
    items, shape = schema.items, schema.shape
    if is_list(value):
        return shape is not Shape.LIST or items is None or _are_known(value, items)
    if not is_object(value):
        return True
    if shape is not Shape.OBJECT:
        return shape is not Shape.MAP or items is None or _are_known(value.values(), items)
    fields = schema.fields
    if not value.keys() <= fields.keys():
        return False
    for name, entry in value.items():
        if type(entry) in _MAP_OR_LIST and not _is_known(entry, fields[name]):
            return False
    return True


def _are_known(values: Iterable[object], schema: Schema) -> bool:
    return all(_is_known(value, schema) for value in values if type(value) in _MAP_OR_LIST)


def _unknown_in(value: object, schema: Schema, path: str) -> Iterator[UnknownField]:
    items = schema.items
    if is_list(value) and schema.shape is Shape.LIST and items is not None:
        for index, item in enumerate(value):
            yield from _unknown_in(item, items, f"{path}[{index}]")
    elif is_object(value) and schema.shape is Shape.MAP and items is not None:
        for key, item in value.items():
            yield from _unknown_in(item, items, f'{path}["{key}"]')
    elif is_object(value) and schema.shape is Shape.OBJECT:
        for name, entry in value.items():
            below = f"{path}.{name}" if path else name
            if name in schema.fields:
                yield from _unknown_in(entry, schema.fields[name], below)
            else:
                similar = difflib.get_close_matches(name, schema.fields, n=1, cutoff=0.8)
                yield UnknownField(below, similar[0] if similar else "")


@cache
def _schemas_by_kind() -> dict[object, Schema]:
    return {
        resource.kind: schema_of(resource.group, resource.version, resource.kind)
        for resource in default_resources()
    }
