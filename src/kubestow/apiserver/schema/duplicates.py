"""Fields that a JSON text has twice: of the two values the last one counts.

Not here: the same in YAML (`api.files`).
"""

import json
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.schema.reading import Path, path_text
from kubestow.cluster.documents import is_list, is_object


class _Repeating(dict[str, Any]):
    """An object of a text that has some of its names twice."""

    repeated: list[str]


def json_duplicates(text: bytes) -> list[str]:
    """The paths of fields that occur twice in a JSON text, which must be valid."""
    is_found = False

    def as_read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_found
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        is_found = True
        repeating = _Repeating(found)
        names = [name for name, _ in pairs]
        repeating.repeated = [name for name in found if names.count(name) > 1]
        return repeating

    document = json.loads(text, object_pairs_hook=as_read)
    return [path_text(path) for path in _repeated(document, ())] if is_found else []


def _repeated(value: Any, path: Path) -> Iterator[Path]:
    if is_object(value):
        if isinstance(value, _Repeating):
            yield from ((*path, name) for name in value.repeated)
        for name, below in value.items():
            yield from _repeated(below, (*path, name))
    elif is_list(value):
        for index, item in enumerate(value):
            yield from _repeated(item, (*path, index))
