"""Patches: merging a partial document into an object.

A JSON merge patch (RFC 7386) replaces values and removes those that are null. A strategic merge
patch also merges some lists by a key: conditions by their type, containers by their name. The keys
are in the schema of the kind; a list without one is replaced as a whole.

Invariant: neither document is modified; a part that the patch does not name stays the same object.
Not here: which parts of an object a request may change (`memory`).
"""

from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import bad_request
from kubestow.apiserver.schema.types import ANYTHING, Schema, Shape
from kubestow.cluster.documents import as_list, as_object, is_list, is_object
from kubestow.cluster.requests import PatchType

_DIRECTIVE: Final = "$patch"
_ORDER: Final = "$setElementOrder/"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_RETAIN_KEYS: Final = "$retainKeys"


def apply_patch(
    document: JsonObject, patch: JsonObject, patch_type: PatchType, *, schema: Schema
) -> JsonObject:
    """The patched document."""
    if patch_type == "merge":
        return merge_patch(document, patch)
    return strategic_merge_patch(document, patch, schema)


def merge_patch(document: JsonObject, patch: JsonObject) -> JsonObject:
    """RFC 7386: objects merge, null removes, everything else replaces."""
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif is_object(value):
            merged[key] = merge_patch(as_object(document.get(key)), value)
        else:
            merged[key] = value
    return merged


def strategic_merge_patch(document: JsonObject, patch: JsonObject, schema: Schema) -> JsonObject:
    """Merge by the rules of the schema, following the `$` directives in the patch."""
    directive = patch.get(_DIRECTIVE, "merge")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise bad_request(f"Unknown patch type found: {directive}")

    merged = dict(document)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        elif is_object(value):
            below = as_object(document.get(key))
            merged[key] = strategic_merge_patch(below, value, _schema_at(schema, key))
        elif is_list(value):
            merged[key] = _merged_list(as_list(document.get(key)), value, _schema_at(schema, key))
        else:
            merged[key] = value
    return _apply_list_directives(merged, document, patch, schema)


def _schema_at(schema: Schema, key: str) -> Schema:
    if schema.shape is Shape.MAP and schema.items is not None:
        return schema.items
    return schema.fields.get(key, ANYTHING)


def _apply_list_directives(
    merged: JsonObject, document: JsonObject, patch: JsonObject, schema: Schema
) -> JsonObject:
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            field = key.removeprefix(_DELETE_PRIMITIVES)
            gone = as_list(value)
            merged[field] = [item for item in as_list(merged.get(field)) if item not in gone]
        elif key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if field in merged:
                merged[field] = _ordered(
                    as_list(merged[field]),
                    as_list(document.get(field)),
                    as_list(value),
                    _schema_at(schema, field).merge_key or None,
                )
        elif key == _RETAIN_KEYS:
            merged = {field: kept for field, kept in merged.items() if field in as_list(value)}
    return merged


def _merged_list(old: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    merge_key = schema.merge_key
    if merge_key is None:
        return patch
    if not merge_key:  # a set of plain values
        return [*old, *(item for item in patch if item not in old)]
    changes = [as_object(item) for item in patch]
    if any(change.get(_DIRECTIVE) == "replace" for change in changes):
        return [change for change in changes if change.get(_DIRECTIVE) != "replace"]
    element = schema.items or ANYTHING
    return _merged_by_key(merge_key, [as_object(item) for item in old], changes, element)


def _merged_by_key(
    merge_key: str, old: list[JsonObject], changes: list[JsonObject], element: Schema
) -> list[Any]:
    # A key that is a map or list is no key: the element stays as it is.
    merged: dict[Any, JsonObject] = {
        key if isinstance(key := item.get(merge_key), str | int) else id(item): item for item in old
    }
    for change in changes:
        value = change.get(merge_key)
        if not isinstance(value, str | int):
            raise bad_request(f"map: {change} does not contain declared merge key: {merge_key}")
        if change.get(_DIRECTIVE) == "delete":
            merged.pop(value, None)
        else:
            merged[value] = strategic_merge_patch(merged.get(value, {}), change, element)
    return list(merged.values())


def _ordered(
    merged: list[Any], old: list[Any], order: list[Any], merge_key: str | None
) -> list[Any]:
    """The elements the patch names in its order; others keep their place among the old ones."""

    def identity(item: Any) -> Any:  # a JSON scalar: the merge key's value, or the item itself
        found = item if merge_key is None else as_object(item).get(merge_key)
        return repr(found) if is_object(found) or is_list(found) else found

    wanted = [identity(item) for item in order]
    place = {identity(item): position for position, item in enumerate(old)}
    elements = {identity(item): item for item in merged}
    named = [key for key in dict.fromkeys(wanted) if key in elements]
    unnamed = [key for key in elements if key not in wanted]
    keys: list[Any] = []
    for key in named:
        # An element that the patch does not name stays before those it preceded.
        while unnamed and key in place and place.get(unnamed[0], -1) < place[key]:
            keys.append(unnamed.pop(0))
        keys.append(key)
    return [elements[key] for key in (*keys, *unnamed)]
