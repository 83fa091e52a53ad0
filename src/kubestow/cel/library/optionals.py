"""Values that may be missing."""

from operator import attrgetter
from typing import Final

from kubestow.cel.functions import Overload, function, method
from kubestow.cel.static_types import BOOL, A, list_of, optional_of
from kubestow.cel.values import (
    NONE,
    CelList,
    OptionalValue,
    Value,
    is_list,
    is_map,
)


def _is_zero(value: Value) -> bool:
    if is_list(value) or is_map(value):
        return not value
    return value is None or value in (False, 0, 0.0, "", b"")


def _none() -> OptionalValue:
    return NONE


def _of_non_zero(value: Value) -> OptionalValue:
    return NONE if _is_zero(value) else OptionalValue(value)


def _or(first: OptionalValue, second: OptionalValue) -> OptionalValue:
    return first if first.has_value else second


def _or_value(optional: OptionalValue, other: Value) -> Value:
    return optional.value if optional.has_value else other


def _unwrap(optionals: CelList) -> CelList:
    return tuple(
        optional.value
        for optional in optionals
        if isinstance(optional, OptionalValue) and optional.has_value
    )


def _first(elements: CelList) -> OptionalValue:
    return OptionalValue(elements[0]) if elements else NONE


def _last(elements: CelList) -> OptionalValue:
    return OptionalValue(elements[-1]) if elements else NONE


OPTIONALS: Final[tuple[Overload, ...]] = (
    function("optional.of", (A,), optional_of(A), OptionalValue),
    function("optional.ofNonZeroValue", (A,), optional_of(A), _of_non_zero),
    function("optional.none", (), optional_of(A), _none),
    function("optional.unwrap", (list_of(optional_of(A)),), list_of(A), _unwrap),
    method("unwrapOpt", (list_of(optional_of(A)),), list_of(A), _unwrap),
    method("hasValue", (optional_of(A),), BOOL, attrgetter("has_value")),
    method("value", (optional_of(A),), A, attrgetter("value")),
    method("or", (optional_of(A), optional_of(A)), optional_of(A), _or),
    method("orValue", (optional_of(A), A), A, _or_value),
    method("first", (list_of(A),), optional_of(A), _first),
    method("last", (list_of(A),), optional_of(A), _last),
)
