"""Operators on values whose types are known only at evaluation (spec 08 B8).

A wrong type is a `no such overload` without the types, unlike with functions.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from kubestow.cel import syntax
from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function
from kubestow.cel.meter import CostMeter
from kubestow.cel.static_types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kubestow.cel.values import (
    INT_MAX,
    NO_OVERLOAD,
    NONE,
    DefaultMap,
    Duration,
    OptionalValue,
    Timestamp,
    UInt,
    Value,
    checked_duration,
    checked_int,
    checked_timestamp,
    checked_uint,
    equal,
    find,
    is_list,
    is_map,
    is_number,
    map_key,
    shown,
    type_name,
)

# Any: the types are known only at evaluation.
Compare = Callable[[Any, Any], bool]


def no_overload() -> CelError:
    return CelError(NO_OVERLOAD)


# --- Arithmetic -------------------------------------------------------------------------------


def add(meter: CostMeter, first: Value, second: Value) -> Value:
    if is_list(first) and is_list(second):
        # Upstream, a list of two lists is made at no cost.
        meter.work((len(first) + len(second)) >> 1)
        return first + second
    return _arithmetic(_ADDITIONS, first, second)


def subtract(first: Value, second: Value) -> Value:
    return _arithmetic(_SUBTRACTIONS, first, second)


def multiply(first: Value, second: Value) -> Value:
    return _arithmetic(_MULTIPLICATIONS, first, second)


def divide(first: Value, second: Value) -> Value:
    return _arithmetic(_DIVISIONS, first, second)


def modulo(first: Value, second: Value) -> Value:
    return _arithmetic(_REMAINDERS, first, second)


def negate(value: Value) -> Value:
    if type(value) is int:
        return checked_int(-value)
    if type(value) is float:
        return -value
    raise no_overload()


_Rules = dict[tuple[type, type], Callable[..., Value]]


def _arithmetic(rules: _Rules, first: Value, second: Value) -> Value:
    rule = rules.get((type(first), type(second)))
    if rule is None:
        raise no_overload()
    return rule(first, second)


def _on_ints(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda first, second: checked_int(compute(first, second))


def _on_uints(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda first, second: UInt(checked_uint(compute(int(first), int(second))))


def _times(
    checked: Callable[[int], int], compute: Callable[[int, int], int]
) -> Callable[[int, int], int]:
    return lambda first, second: checked(compute(int(first), int(second)))


def _quotient(first: int, second: int) -> int:
    """Truncated towards zero, unlike Python's."""
    if second == 0:
        raise CelError("division by zero")
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def _remainder(first: int, second: int) -> int:
    """The remainder has the sign of the dividend, unlike Python's `%`."""
    if second == 0:
        raise CelError("modulus by zero")
    return int(math.copysign(1, first)) * (abs(first) % abs(second))


def _divide_doubles(first: float, second: float) -> float:
    if second != 0:
        return first / second
    if first == 0 or math.isnan(first):
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1, second)


_ADDITIONS: Final[_Rules] = {
    (int, int): _on_ints(operator.add),
    (UInt, UInt): _on_uints(operator.add),
    (float, float): operator.add,
    (str, str): operator.add,
    (bytes, bytes): operator.add,
    (Timestamp, Duration): _times(checked_timestamp, operator.add),
    (Duration, Timestamp): _times(checked_timestamp, operator.add),
    (Duration, Duration): _times(checked_duration, operator.add),
}
_SUBTRACTIONS: Final[_Rules] = {
    (int, int): _on_ints(operator.sub),
    (UInt, UInt): _on_uints(operator.sub),
    (float, float): operator.sub,
    (Timestamp, Timestamp): _times(checked_duration, operator.sub),
    (Timestamp, Duration): _times(checked_timestamp, operator.sub),
    (Duration, Duration): _times(checked_duration, operator.sub),
}
_MULTIPLICATIONS: Final[_Rules] = {
    (int, int): _on_ints(operator.mul),
    (UInt, UInt): _on_uints(operator.mul),
    (float, float): operator.mul,
}
_DIVISIONS: Final[_Rules] = {
    (int, int): _on_ints(_quotient),
    (UInt, UInt): _on_uints(_quotient),
    (float, float): _divide_doubles,
}
_REMAINDERS: Final[_Rules] = {
    (int, int): _on_ints(_remainder),
    (UInt, UInt): _on_uints(_remainder),
}


# --- Comparison -------------------------------------------------------------------------------

_ORDERED: Final = frozenset((bool, str, bytes, Timestamp, Duration))


def compare(test: Compare, first: Value, second: Value) -> bool:
    """Numbers of any types compare with each other, other values only with their own type."""
    if is_number(first) and is_number(second):
        if math.isnan(first) or math.isnan(second):
            raise CelError("NaN values cannot be ordered")
        return test(first, second)
    if type(first) is type(second) and type(first) in _ORDERED:
        return test(first, second)
    raise no_overload()


def less(first: Value, second: Value) -> bool:
    return compare(operator.lt, first, second)


def less_equals(first: Value, second: Value) -> bool:
    return compare(operator.le, first, second)


def greater(first: Value, second: Value) -> bool:
    return compare(operator.gt, first, second)


def greater_equals(first: Value, second: Value) -> bool:
    return compare(operator.ge, first, second)


def ordering(first: Value, second: Value) -> int:
    """Negative, zero or positive, for `cmp_to_key`."""
    if less(first, second):
        return -1
    return 1 if less(second, first) else 0


def not_equal(meter: CostMeter, first: Value, second: Value) -> bool:
    return not equal(meter, first, second)


def contains(meter: CostMeter, element: Value, container: Value) -> bool:
    """The operator `in`."""
    if is_list(container):
        return any(equal(meter, element, other) for other in container)
    if is_map(container):
        return map_key(element) in container
    raise no_overload()


# --- Fields and elements ----------------------------------------------------------------------


def select(operand: Value, key: Value) -> Value:
    """A field or the element at an index; of an optional value, an optional value."""
    if is_map(operand):
        hashed = map_key(key)
        try:
            return operand[hashed]
        except KeyError:
            if isinstance(operand, DefaultMap):
                return operand.default
            raise CelError(f"no such key: {shown(key)}") from None
    if is_list(operand):
        index = _list_index(key)
        if not 0 <= index < len(operand):
            raise CelError(f"index out of bounds: {shown(key)}")
        return operand[index]
    if isinstance(operand, OptionalValue):
        return select_optionally(operand, key)
    raise CelError(f"no such key: {shown(key)}")


def select_optionally(operand: Value, key: Value) -> OptionalValue:
    """A field or element as an optional value, empty if there is no such one."""
    if isinstance(operand, OptionalValue):
        return select_optionally(operand.value, key) if operand.has_value else NONE
    if is_map(operand):
        return find(operand, key)
    if is_list(operand):
        index = _list_index(key)
        return OptionalValue(operand[index]) if 0 <= index < len(operand) else NONE
    return NONE


def has(operand: Value, key: Value) -> bool:
    return select_optionally(operand, key).has_value


def _list_index(key: Value) -> int:
    if not is_number(key):
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    if not math.isfinite(key) or int(key) != key or key > INT_MAX:
        raise CelError(f"unsupported index value {shown(key)} in list")
    return int(key)


# --- Signatures, for the checker --------------------------------------------------------------

_NUMERIC: Final = (INT, UINT, DOUBLE)
_COMPARABLE: Final = (BOOL, *_NUMERIC, STRING, BYTES, TIMESTAMP, DURATION)


def _same(name: str, code: Callable[..., Value], *kinds: Type) -> list[Overload]:
    return [function(name, (kind, kind), kind, code) for kind in kinds]


def _relation(name: str, code: Callable[..., Value]) -> list[Overload]:
    same = [function(name, (kind, kind), BOOL, code) for kind in _COMPARABLE]
    mixed = [
        function(name, (first, second), BOOL, code)
        for first in _NUMERIC
        for second in _NUMERIC
        if first != second
    ]
    return same + mixed


OPERATORS: Final[tuple[Overload, ...]] = (
    *_same(syntax.ADD, add, *_NUMERIC, STRING, BYTES, list_of(A), DURATION),
    function(syntax.ADD, (TIMESTAMP, DURATION), TIMESTAMP, add),
    function(syntax.ADD, (DURATION, TIMESTAMP), TIMESTAMP, add),
    *_same(syntax.SUBTRACT, subtract, *_NUMERIC, DURATION),
    function(syntax.SUBTRACT, (TIMESTAMP, TIMESTAMP), DURATION, subtract),
    function(syntax.SUBTRACT, (TIMESTAMP, DURATION), TIMESTAMP, subtract),
    *_same(syntax.MULTIPLY, multiply, *_NUMERIC),
    *_same(syntax.DIVIDE, divide, *_NUMERIC),
    *_same(syntax.MODULO, modulo, INT, UINT),
    function(syntax.NEGATE, (INT,), INT, negate),
    function(syntax.NEGATE, (DOUBLE,), DOUBLE, negate),
    function(syntax.EQUALS, (A, A), BOOL, equal),
    function(syntax.NOT_EQUALS, (A, A), BOOL, not_equal),
    *_relation(syntax.LESS, less),
    *_relation(syntax.LESS_EQUALS, less_equals),
    *_relation(syntax.GREATER, greater),
    *_relation(syntax.GREATER_EQUALS, greater_equals),
    function(syntax.IN, (A, list_of(A)), BOOL, contains),
    function(syntax.IN, (A, map_of(A, B)), BOOL, contains),
    function(syntax.INDEX, (list_of(A), INT), A, select),
    function(syntax.INDEX, (map_of(A, B), A), B, select),
    function(syntax.INDEX, (optional_of(list_of(A)), INT), optional_of(A), select),
    function(syntax.INDEX, (optional_of(map_of(A, B)), A), optional_of(B), select),
    function(syntax.OPTIONAL_INDEX, (list_of(A), INT), optional_of(A), select_optionally),
    function(syntax.OPTIONAL_INDEX, (map_of(A, B), A), optional_of(B), select_optionally),
    function(
        syntax.OPTIONAL_INDEX, (optional_of(list_of(A)), INT), optional_of(A), select_optionally
    ),
    function(
        syntax.OPTIONAL_INDEX, (optional_of(map_of(A, B)), A), optional_of(B), select_optionally
    ),
)
