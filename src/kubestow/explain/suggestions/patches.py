"""Changes of objects as JSON Patch (RFC 6902).

The operations are the difference of two documents. They are written so that they also apply to the
manifest an object was made from: a value that an API server may have filled in (requests from
limits, allocatable from capacity, tolerations by admission) is added as a whole, which replaces
what is there. Operations name fields and positions in lists only; fields that are not in the typed
objects stay.

A new object is `add` with the empty path, a deleted one is `remove` with the empty path.
"""

from collections.abc import Iterable
from typing import Final

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, Json, JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.cluster.documents import is_list, is_object

# Fields that a server, or a controller, may have filled in as a whole.
_FILLED: Final[dict[type[ApiObject], frozenset[str]]] = {
    Node: frozenset(("allocatable",)),
    PersistentVolumeClaim: frozenset(("annotations", "status", "storageClassName", "volumeName")),
    Pod: frozenset(("limits", "requests", "tolerations")),
}


def patch_of(old: ApiObject | None, new: ApiObject | None) -> list[JsonObject]:
    """The operations that make the new object of the old one; None: there is none."""
    if new is None:
        return [{"op": "remove", "path": ""}]
    document = to_document(new)
    if old is None:
        return [{"op": "add", "path": "", "value": document}]
    return difference(to_document(old), document, filled=_FILLED.get(type(new), frozenset()))


def difference(
    old: Json, new: Json, path: str = "", *, filled: frozenset[str] = frozenset()
) -> list[JsonObject]:
    """The operations that make one JSON value of another; `filled` are fields to add as a whole."""
    if old == new:
        return []
    if is_object(old) and is_object(new):
        return _of_objects(old, new, path, filled)
    if is_list(old) and is_list(new):
        return _of_lists(old, new, path, filled)
    return [{"op": "replace", "path": path, "value": new}]


def escaped(step: str) -> str:
    """A field's name as a step of a JSON Pointer."""
    return step.replace("~", "~0").replace("/", "~1")


def _of_objects(
    old: JsonObject, new: JsonObject, path: str, filled: frozenset[str]
) -> list[JsonObject]:
    operations: list[JsonObject] = []
    for key in (*old, *(key for key in new if key not in old)):
        below = f"{path}/{escaped(key)}"
        if key not in old or (key in filled and old[key] != new.get(key)):
            # Where it was filled in there is nothing to remove: the empty value has that effect.
            value = new[key] if key in new else type(old[key])()
            operations.append({"op": "add", "path": below, "value": value})
        elif key not in new:
            operations.append({"op": "remove", "path": below})
        else:
            operations += difference(old[key], new[key], below, filled=filled)
    return operations


def _of_lists(
    old: list[Json], new: list[Json], path: str, filled: frozenset[str]
) -> list[JsonObject]:
    if len(old) == len(new):
        return [
            operation
            for index, (before, after) in enumerate(zip(old, new, strict=True))
            for operation in difference(before, after, f"{path}/{index}", filled=filled)
        ]
    if len(new) > len(old) and new[: len(old)] == old:
        return [{"op": "add", "path": f"{path}/-", "value": item} for item in new[len(old) :]]
    gone = _left_out(old, new)
    if gone is None:
        return [{"op": "replace", "path": path, "value": new}]
    # From the end: removing an item moves those after it.
    return [{"op": "remove", "path": f"{path}/{index}"} for index in sorted(gone, reverse=True)]


def _left_out(old: list[Json], new: Iterable[Json]) -> list[int] | None:
    """The positions that the new list lacks; None if it is not the old one without some items."""
    kept: list[int] = []
    position = 0
    for item in new:
        while position < len(old) and old[position] != item:
            position += 1
        if position == len(old):
            return None
        kept.append(position)
        position += 1
    return [index for index in range(len(old)) if index not in set(kept)]
