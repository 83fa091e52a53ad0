"""Sets of fields, in the notation of `managedFields`: the fields each manager owns.

    {"f:spec": {"f:replicas": {}, "f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}}}}}

`f:` is a member of an object, `k:` an element of a list by its keys, `v:` an element of a set of
plain values, `.` the element itself. Lists without keys and some small objects are owned whole.

Invariant: functions return new sets and documents; none is modified.
Not here: conflicts between managers (`server_side_apply`).
"""

import json
from collections.abc import Iterator
from typing import Final

from kubestow.api.meta import Json, JsonObject
from kubestow.apiserver.schema.types import ANYTHING, Schema, Shape
from kubestow.cluster.documents import as_list, as_object, is_list, is_object

# Any: a JSON value of any type.
# Nested objects whose leaves are empty.
FieldSet = JsonObject
Path = tuple[str, ...]

SELF: Final = "."

# Of elements that are identified by a field which a client may leave out.
_KEY_DEFAULTS: Final = {"protocol": "TCP"}


def fields_of(value: Json, schema: Schema) -> FieldSet:
    """The set of all fields in a value; a leaf for a plain value."""
    if schema.is_atomic:
        return {}
    if is_object(value):
        return {
            f"f:{name}": fields_of(below, _below(schema, name)) for name, below in value.items()
        }
    if is_list(value):
        if schema.is_set:
            return {f"v:{_compact(item)}": {} for item in value}
        keys = _keys_of(schema, value)
        if keys:
            element = schema.items or ANYTHING
            return {
                _element(item, keys): {SELF: {}, **fields_of(item, element)}
                for item in map(as_object, value)
            }
    return {}


def _below(schema: Schema, name: str) -> Schema:
    if schema.shape is Shape.MAP:
        return schema.items or ANYTHING
    return schema.fields.get(name, ANYTHING)


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    merged = dict(left)
    for step, below in right.items():
        merged[step] = union(as_object(merged.get(step)), as_object(below))
    return merged


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The leaves of the left set that the right one does not have."""
    left_over: FieldSet = {}
    for step, below in left.items():
        if step not in right:
            left_over[step] = below
        elif as_object(below):
            rest = difference(as_object(below), as_object(right[step]))
            if rest:
                left_over[step] = rest
    return left_over


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What both sets have."""
    both: FieldSet = {}
    for step, below in left.items():
        if step not in right:
            continue
        common = intersection(as_object(below), as_object(right[step]))
        # A field both own as a whole, or of which they own something in common.
        if common or not below or not right[step]:
            both[step] = common
    return both


def leaves(fields: FieldSet, path: Path = ()) -> Iterator[Path]:
    for step, below in fields.items():
        if below:
            yield from leaves(as_object(below), (*path, step))
        else:
            yield (*path, step)


def value_of(document: Json, path: Path) -> Json:
    """The value at a path of a set; None if there is none."""
    value = document
    for step in path:
        if step == SELF:
            continue
        kind, _, name = step.partition(":")
        if kind == "f":
            value = as_object(value).get(name)
        elif kind == "k":
            value = _find_element(as_list(value), json.loads(name))
        else:
            wanted = json.loads(name)
            value = wanted if wanted in as_list(value) else None
        if value is None:
            return None
    return value


def merged(live: Json, applied: Json, schema: Schema) -> Json:
    """The live value with all fields of the applied one."""
    if schema.is_atomic:
        return applied
    if is_object(live) and is_object(applied):
        return live | {
            name: merged(live.get(name), below, _below(schema, name))
            for name, below in applied.items()
        }
    if is_list(live) and is_list(applied):
        if schema.is_set:
            return [*live, *(item for item in applied if item not in live)]
        keys = _keys_of(schema, applied)
        if keys and _keys_of(schema, live):
            return _merged_elements(live, applied, keys, schema.items or ANYTHING)
    return applied


def without(value: Json, gone: FieldSet) -> Json:
    """The value without the fields of a set; parts that become empty are removed too."""
    if is_object(value):
        return _object_without(value, gone)
    if is_list(value):
        return _list_without(value, gone)
    return value


def path_text(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="main"].image`."""
    text = ""
    for step in path:
        kind, _, name = step.partition(":")
        if kind == "f":
            text += f".{name}"
        elif kind == "k":
            pairs = (f"{key}={_compact(value)}" for key, value in json.loads(name).items())
            text += f"[{','.join(pairs)}]"
        elif kind == "v":
            text += f"[={name}]"
    return text


def _object_without(value: JsonObject, gone: FieldSet) -> JsonObject:
    kept = dict(value)
    for step, below in gone.items():
        name = step.removeprefix("f:")
        if step == SELF or name not in kept:
            continue
        rest = without(kept[name], as_object(below)) if below else None
        if rest is None or (below and rest in ({}, [])):
            del kept[name]
        else:
            kept[name] = rest
    return kept


def _list_without(value: list[Json], gone: FieldSet) -> list[Json]:
    kept: list[Json] = []
    by_element = {step: as_object(below) for step, below in gone.items()}
    for item in value:
        below = by_element.get(f"v:{_compact(item)}")
        if below is not None:
            continue
        step = next((step for step in by_element if _is_element(item, step)), None)
        if step is None:
            kept.append(item)
        elif SELF not in by_element[step]:
            kept.append(without(item, by_element[step]))
    return kept


def _is_element(item: Json, step: str) -> bool:
    if not step.startswith("k:"):
        return False
    return _find_element([item], json.loads(step.removeprefix("k:"))) is not None


def _keys_of(schema: Schema, items: list[Json]) -> tuple[str, ...]:
    """The keys of a list's elements; empty if it is owned as a whole."""
    keys = schema.list_keys
    has_keys = all(
        is_object(item) and all(key in item or key in _KEY_DEFAULTS for key in keys)
        for item in items
    )
    return keys if has_keys else ()


def _element(item: JsonObject, keys: tuple[str, ...]) -> str:
    return f"k:{_compact(_identity(item, keys))}"


def _identity(item: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in keys}


def _find_element(items: list[Json], identity: JsonObject) -> Json:
    keys = tuple(identity)
    return next((item for item in items if _identity(as_object(item), keys) == identity), None)


def _merged_elements(
    live: list[Json], applied: list[Json], keys: tuple[str, ...], schema: Schema
) -> list[Json]:
    elements = {_element(item, keys): item for item in live}
    for item in applied:
        name = _element(item, keys)
        elements[name] = merged(elements.get(name), item, schema)
    return list(elements.values())


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
