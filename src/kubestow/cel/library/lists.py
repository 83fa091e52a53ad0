"""Functions on lists: Kubernetes' own, the lists extension, and lists as sets."""

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from kubestow.cel import operators
from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, metered, method
from kubestow.cel.meter import CostMeter
from kubestow.cel.operators import less, ordering
from kubestow.cel.static_types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
)
from kubestow.cel.values import CelList, Duration, UInt, Value, equal, is_list

_SORTABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_ZEROS: Final[dict[Type, Value]] = {
    INT: 0,
    UINT: UInt(0),
    DOUBLE: 0.0,
    DURATION: Duration(0),
}
RANGE_MAX: Final = 1_000_000


# --- Kubernetes' lists ------------------------------------------------------------------------


def _is_sorted(elements: CelList) -> bool:
    return not any(less(second, first) for first, second in pairwise(elements))


def _sum_from(zero: Value) -> Callable[[CostMeter, CelList], Value]:
    def total(meter: CostMeter, elements: CelList) -> Value:
        # An empty list sums to the zero of its static type; others start with an element.
        result = zero if not elements else elements[0]
        for element in elements[1:]:
            result = operators.add(meter, result, element)
        return result

    return total


def _extreme(name: str, is_better: Callable[[Value, Value], bool]) -> Callable[[CelList], Value]:
    def pick(elements: CelList) -> Value:
        if not elements:
            raise CelError(f"{name} called on empty list")
        best = elements[0]
        for element in elements[1:]:
            if is_better(element, best):
                best = element
        return best

    return pick


def _index_of(meter: CostMeter, elements: CelList, wanted: Value) -> int:
    return next((i for i, element in enumerate(elements) if equal(meter, element, wanted)), -1)


def _last_index_of(meter: CostMeter, elements: CelList, wanted: Value) -> int:
    found = _index_of(meter, elements[::-1], wanted)
    return -1 if found < 0 else len(elements) - 1 - found


# --- The lists extension ----------------------------------------------------------------------


def _distinct(meter: CostMeter, elements: CelList) -> CelList:
    kept: list[Value] = []
    for element in elements:
        if not any(equal(meter, element, other) for other in kept):
            kept.append(element)
    return tuple(kept)


def _flatten(meter: CostMeter, elements: CelList, depth: int = 1) -> CelList:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Value] = []
    meter.work(len(elements) + 1)
    for element in elements:
        if is_list(element) and depth > 0:
            flat.extend(_flatten(meter, element, depth - 1))
        else:
            flat.append(element)
    return tuple(flat)


def _range(count: int) -> CelList:
    if count > RANGE_MAX:
        raise CelError(f"range exceeds maximum allowed size: {RANGE_MAX}")
    return tuple(range(count))


def _reverse(elements: CelList) -> CelList:
    return elements[::-1]


def _slice(elements: CelList, start: int, end: int) -> CelList:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal")
    if end > len(elements):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def _sort(elements: CelList) -> CelList:
    return tuple(sorted(elements, key=cmp_to_key(ordering)))


# --- Lists as sets ----------------------------------------------------------------------------


def _contains_all(meter: CostMeter, elements: CelList, others: CelList) -> bool:
    return all(operators.contains(meter, other, elements) for other in others)


def _equivalent(meter: CostMeter, first: CelList, second: CelList) -> bool:
    return _contains_all(meter, first, second) and _contains_all(meter, second, first)


def _intersects(meter: CostMeter, first: CelList, second: CelList) -> bool:
    return any(operators.contains(meter, element, second) for element in first)


def _for_each(
    name: str, kinds: tuple[Type, ...], code: Callable[..., Value], result: Type | None = None
) -> list[Overload]:
    return [method(name, (list_of(kind),), result or kind, code) for kind in kinds]


LISTS: Final[tuple[Overload, ...]] = (
    *_for_each("isSorted", _SORTABLE, _is_sorted, BOOL),
    *(
        metered(method("sum", (list_of(kind),), kind, _sum_from(zero)))
        for kind, zero in _ZEROS.items()
    ),
    *_for_each("min", _SORTABLE, _extreme("min", less)),
    *_for_each("max", _SORTABLE, _extreme("max", operators.greater)),
    metered(method("indexOf", (list_of(A), A), INT, _index_of)),
    metered(method("lastIndexOf", (list_of(A), A), INT, _last_index_of)),
    metered(method("distinct", (list_of(A),), list_of(A), _distinct)),
    metered(method("flatten", (list_of(list_of(A)),), list_of(A), _flatten)),
    metered(method("flatten", (list_of(DYN), INT), list_of(DYN), _flatten)),
    function("lists.range", (INT,), list_of(INT), _range),
    method("reverse", (list_of(A),), list_of(A), _reverse),
    method("slice", (list_of(A), INT, INT), list_of(A), _slice),
    *(method("sort", (list_of(kind),), list_of(kind), _sort) for kind in _SORTABLE),
    metered(function("sets.contains", (list_of(A), list_of(A)), BOOL, _contains_all)),
    metered(function("sets.equivalent", (list_of(A), list_of(A)), BOOL, _equivalent)),
    metered(function("sets.intersects", (list_of(A), list_of(A)), BOOL, _intersects)),
)
