"""Which values the schema of a definition allows, in the words of an API server.

Works on the schema as it was written (`openAPIV3Schema`). Rules in CEL
(`x-kubernetes-validations`) are not evaluated.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from kubestow.api.meta import Json, JsonObject
from kubestow.cluster.documents import as_list, as_object, is_list, is_object
from kubestow.linear_regex import compiled

Errors = Iterator[str]

ERRORS_MAX: Final = 100  # reported for one object
_IN: Final = "in body"
_INTEGER_FORMATS: Final = {"int32": 32, "int64": 64}


def value_errors(value: Json, schema: JsonObject, path: str = "") -> Errors:
    """The errors of a value, each beginning with its path."""
    if value is None and schema.get("nullable") is True:
        return
    if not _has_type(value, schema):
        wanted = schema.get("type") or "integer,string"
        yield _type_error(path, value, wanted)
        return
    yield from _combination_errors(value, schema, path)
    if choices := as_list(schema.get("enum")):
        yield from _choice_errors(value, choices, path)
    match value:
        case bool() | None:
            pass
        case str():
            yield from _text_errors(value, schema, path)
        case int() | float():
            yield from _number_errors(value, schema, path)
        case list():
            yield from _list_errors(value, schema, path)  # pyright: ignore[reportUnknownArgumentType] - of JSON values
        case _:
            yield from _object_errors(as_object(value), schema, path)


def _has_type(value: Json, schema: JsonObject) -> bool:
    if schema.get("x-kubernetes-int-or-string") is True:
        return isinstance(value, str | int) and not isinstance(value, bool)
    match schema.get("type"):
        case "object":
            return is_object(value)
        case "array":
            return is_list(value)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_integer(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            # A value without a type may be anything, but null is one only where it is allowed.
            return True


def _is_integer(value: Json) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _type_error(path: str, value: Json, wanted: str) -> str:
    found = _type_of(value)
    name = f"{path} {_IN}" if path else ""
    detail = f'{name} must be of type {wanted}: "{found}"'.strip()
    return f'{path or "<nil>"}: Invalid value: "{found}": {detail}'


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _wrong(path: str, value: Json, rule: str) -> str:
    return f"{path}: Invalid value: {_shown(value)}: {path} {_IN} {rule}"


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _choice_errors(value: Json, choices: list[Json], path: str) -> Errors:
    # In Python True equals 1; in JSON it does not.
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        shown = ", ".join(_shown(choice) for choice in choices)
        yield f"{path}: Unsupported value: {_shown(value)}: supported values: {shown}"


def _text_errors(value: str, schema: JsonObject, path: str) -> Errors:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if isinstance(longest, int) and len(value) > longest:
        yield f"{path}: Too long: may not be more than {longest} bytes"
    if isinstance(shortest, int) and len(value) < shortest:
        yield _wrong(path, value, f"should be at least {shortest} chars long")
    if (pattern := schema.get("pattern")) and not compiled(pattern).is_in(value):
        yield _wrong(path, value, f"should match '{pattern}'")
    if schema.get("format") in ("date-time", "date") and not _is_time(value):
        yield _wrong(path, value, f'must be of type {schema["format"]}: "{value}"')


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _number_errors(value: float, schema: JsonObject, path: str) -> Errors:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if isinstance(highest, int | float):
        if schema.get("exclusiveMaximum") is True and value >= highest:
            yield _wrong(path, value, f"should be less than {_plain(highest)}")
        elif value > highest:
            yield _wrong(path, value, f"should be less than or equal to {_plain(highest)}")
    if isinstance(lowest, int | float):
        if schema.get("exclusiveMinimum") is True and value <= lowest:
            yield _wrong(path, value, f"should be greater than {_plain(lowest)}")
        elif value < lowest:
            yield _wrong(path, value, f"should be greater than or equal to {_plain(lowest)}")
    factor = schema.get("multipleOf")
    if isinstance(factor, int | float) and factor > 0 and value % factor:
        yield _wrong(path, value, f"should be a multiple of {_plain(factor)}")
    bits = _INTEGER_FORMATS.get(str(schema.get("format")))
    if bits is not None and not -(1 << bits - 1) <= value < 1 << bits - 1:
        yield _wrong(path, value, f"must be of type {schema['format']}: {_shown(value)}")


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _list_errors(value: list[Json], schema: JsonObject, path: str) -> Errors:
    most, fewest = schema.get("maxItems"), schema.get("minItems")
    if isinstance(most, int) and len(value) > most:
        yield f"{path}: Too many: {len(value)}: must have at most {most} items"
    if isinstance(fewest, int) and len(value) < fewest:
        yield _wrong(path, len(value), f"should have at least {fewest} items")
    yield from _repetition_errors(value, schema, path)
    items = schema.get("items")
    if is_object(items):
        for index, item in enumerate(value):
            yield from value_errors(item, items, f"{path}[{index}]")


def _repetition_errors(value: list[Json], schema: JsonObject, path: str) -> Errors:
    """Elements of sets and maps occur once."""
    list_type = schema.get("x-kubernetes-list-type")
    if schema.get("uniqueItems") is not True and list_type not in ("set", "map"):
        return
    keys = as_list(schema.get("x-kubernetes-list-map-keys"))
    seen: set[str] = set()
    for index, item in enumerate(value):
        identity = {key: as_object(item).get(key) for key in keys} if list_type == "map" else item
        text = json.dumps(identity, sort_keys=True)
        if text in seen:
            yield f"{path}[{index}]: Duplicate value: {_shown(identity)}"
        seen.add(text)


def _object_errors(value: JsonObject, schema: JsonObject, path: str) -> Errors:
    most, fewest = schema.get("maxProperties"), schema.get("minProperties")
    if isinstance(most, int) and len(value) > most:
        yield f"{path}: Too many: {len(value)}: must have at most {most} items"
    if isinstance(fewest, int) and len(value) < fewest:
        yield _wrong(path, value, f"should have at least {fewest} properties")
    for name in as_list(schema.get("required")):
        if name not in value:
            yield f"{_below(path, name)}: Required value"
    properties, others = as_object(schema.get("properties")), schema.get("additionalProperties")
    for name, below in value.items():
        if is_object(field := properties.get(name, others)):
            yield from value_errors(below, field, _below(path, name))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _combination_errors(value: Json, schema: JsonObject, path: str) -> Errors:
    for part in as_list(schema.get("allOf")):
        yield from value_errors(value, as_object(part), path)
    if (parts := as_list(schema.get("anyOf"))) and not _fitting(value, parts, path):
        yield _combined(path, "must validate at least one schema (anyOf)")
    if parts := as_list(schema.get("oneOf")):
        count = _fitting(value, parts, path)
        if count != 1:
            found = f"Found {count} valid alternatives" if count else "Found none valid"
            rule = f"must validate one and only one schema (oneOf). {found}"
            yield _combined(path, rule)
    excluded = schema.get("not")
    if is_object(excluded) and _fitting(value, [excluded], path):
        yield _combined(path, "must not validate the schema (not)")


def _combined(path: str, rule: str) -> str:
    return f'<nil>: Invalid value: "": "{path}" {rule}'


def _fitting(value: Json, parts: list[Json], path: str) -> int:
    return sum(next(value_errors(value, as_object(part), path), None) is None for part in parts)
