"""Documents (the JSON of API objects, as dicts) that change by copying along the changed path.

Stored documents are shared by every version, watcher and reader, so they are never modified. A part
that a change does not touch stays the same dict: comparing two versions part by part can test `is`
first, and ten thousand bindings do not copy ten thousand pod specs.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeGuard

from kubestow.api.meta import JsonObject
from kubestow.clock import NANOSECONDS

Path = tuple[str, ...]


def is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:  # of any JSON values
    return isinstance(value, list)


# These two run many times for every write, so they call no other function. A document comes from
# JSON: a dict in it has texts as keys.
def as_object(value: object) -> JsonObject:
    """The value if it is a JSON object, else an empty one: null and absent mean the same."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: object) -> list[Any]:  # of any JSON values
    """The value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def objects_in(value: object) -> list[JsonObject]:
    """The value as an array of objects, such as a pod's containers; anything else in it is {}."""
    return [as_object(item) for item in as_list(value)]


def value_at(document: JsonObject, *path: str) -> Any:  # any JSON value
    """The value at the path; None where a step is missing or null."""
    value: Any = document
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value  # pyright: ignore[reportUnknownVariableType]


def condition_of(document: JsonObject, type: str) -> JsonObject:
    """The condition of a type in the status; empty if there is none."""
    for condition in objects_in(value_at(document, "status", "conditions")):
        if condition.get("type") == type:
            return condition
    return {}


def namespace_of(document: JsonObject) -> str:
    """The namespace of an object that has one; "default" where it is left out."""
    return value_at(document, "metadata", "namespace") or "default"


def replaced_at(document: JsonObject, path: Path, value: object) -> JsonObject:
    """The document with another value at the path; missing steps become objects."""
    step, rest = path[0], path[1:]
    if rest:
        value = replaced_at(as_object(document.get(step)), rest, value)
    return {**document, step: value}


def removed_at(document: JsonObject, path: Path) -> JsonObject:
    """The document without the value at the path; the same document if there is none."""
    step, rest = path[0], path[1:]
    if step not in document:
        return document
    if not rest:
        return {key: value for key, value in document.items() if key != step}
    below = as_object(document[step])
    remaining = removed_at(below, rest)
    return document if remaining is below else {**document, step: remaining}


def filled_at(document: JsonObject, path: Path, value: object) -> JsonObject:
    """The document with a value at the path unless it has one there already."""
    return document if value_at(document, *path) is not None else replaced_at(document, path, value)


def whole_seconds(now_ns: int) -> str:
    """A time as metadata and conditions carry it: RFC 3339 in UTC, cut to the second."""
    return _format_second(now_ns // NANOSECONDS)


def whole_seconds_at(now_ns: int) -> datetime:
    """A time as typed structs carry it, cut to the second."""
    return _second(now_ns // NANOSECONDS)


def microseconds_at(now_ns: int) -> datetime:
    """A time as events and leases carry it: cut to the microsecond."""
    second, rest_ns = divmod(now_ns, NANOSECONDS)
    return _second(second).replace(microsecond=rest_ns // 1000)


def seconds_of(timestamp: object) -> float | None:
    """Seconds since 1970 of a time as documents write it; None if there is none."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None


# Thousands of writes happen within the same second.
@lru_cache(64)
def _second(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@lru_cache(64)
def _format_second(second: int) -> str:
    # Several times as fast as `isoformat` of the time: in a day without bursts few seconds repeat.
    day, rest = divmod(second, 86_400)
    return f"{_format_day(day)}T{rest // 3_600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"


@lru_cache(64)
def _format_day(day: int) -> str:
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()
