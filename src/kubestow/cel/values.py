"""The values of expressions, as Python values.

    null   None        bool    bool       int       int       uint   UInt      double   float
    string str         bytes   bytes      list      tuple     map    dict      type     TypeValue
    timestamp Timestamp   duration Duration   optional OptionalValue   others: their own classes

In a Python dictionary True and 1 are the same key, so keys of maps go through `map_key`.
"""

from collections.abc import Hashable, Iterable
from typing import Final, TypeGuard

from kubestow.cel.errors import CelError
from kubestow.cel.meter import CostMeter

Value = object
CelList = tuple[Value, ...]
CelMap = dict[Hashable, Value]

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1
NANOSECONDS: Final = 1_000_000_000
TIMESTAMP_MIN: Final = -62_135_596_800  # in seconds
TIMESTAMP_MAX: Final = 253_402_300_799
NO_OVERLOAD: Final = "no such overload"


class UInt(int):
    """An unsigned integer; a class of its own, to be distinguished from an int."""

    __slots__ = ()


class Timestamp(int):
    """Nanoseconds since 1970."""

    __slots__ = ()


class Duration(int):
    """Nanoseconds."""

    __slots__ = ()


class TypeValue:
    """A type as a value: the result of `type(x)`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class OptionalValue:
    """A value that may be missing."""

    __slots__ = ("_value", "has_value")

    def __init__(self, value: Value, has_value: bool = True) -> None:
        self._value = value
        self.has_value = has_value

    @property
    def value(self) -> Value:
        if not self.has_value:
            raise CelError("optional.none() dereference")
        return self._value


NONE: Final = OptionalValue(None, has_value=False)


class DefaultMap(dict[Hashable, Value]):
    """A map in which every key is found; a missing one has the default (spec 08 B8)."""

    __slots__ = ("default",)

    def __init__(self, entries: CelMap, default: Value) -> None:
        super().__init__(entries)
        self.default = default


class BoolKey:
    """A bool as the key of a map, where Python would treat it as 0 or 1."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoolKey) and self.value == other.value

    def __hash__(self) -> int:
        return hash((BoolKey, self.value))


# `name_type` adds further classes (quantities, versions, addresses).
_TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    tuple: "list",
    dict: "map",
    DefaultMap: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    OptionalValue: "optional_type",
}
_NUMBERS: Final = frozenset((int, UInt, float))
_KEYS: Final = frozenset((str, int, UInt, float))


def name_type(cls: type, name: str) -> None:
    """Give values of a further class a CEL type of that name."""
    _TYPE_NAMES[cls] = name


def type_name(value: Value) -> str:
    return _TYPE_NAMES[type(value)]


def checked_int(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise CelError("integer overflow")


def checked_uint(number: int) -> int:
    if 0 <= number <= UINT_MAX:
        return number
    raise CelError("unsigned integer overflow")


def checked_timestamp(nanoseconds: int) -> Timestamp:
    """A timestamp; CelError if it is not in the years 1 to 9999."""
    if TIMESTAMP_MIN <= nanoseconds // NANOSECONDS <= TIMESTAMP_MAX:
        return Timestamp(nanoseconds)
    raise CelError("timestamp overflow")


def checked_duration(nanoseconds: int) -> Duration:
    if INT_MIN <= nanoseconds <= INT_MAX:
        return Duration(nanoseconds)
    raise CelError("duration overflow")


def is_list(value: Value) -> TypeGuard[CelList]:
    return isinstance(value, tuple)


def is_map(value: Value) -> TypeGuard[CelMap]:
    return isinstance(value, dict)


def is_number(value: Value) -> TypeGuard[int | float]:
    return type(value) in _NUMBERS


def map_key(value: Value) -> Hashable:
    """The value as a key. Numbers of different types that are equal are one key."""
    if isinstance(value, bool):
        return BoolKey(value)
    if type(value) in _KEYS:
        return value
    raise CelError(f"unsupported key type: {type_name(value)}")


def keys_of(entries: CelMap) -> Iterable[Value]:
    """The keys as values."""
    return (key.value if isinstance(key, BoolKey) else key for key in entries)


def find(entries: CelMap, key: Value) -> OptionalValue:
    """The entry of that key, if there is one."""
    hashed = map_key(key)
    if hashed in entries:
        return OptionalValue(entries[hashed])
    if isinstance(entries, DefaultMap):
        return OptionalValue(entries.default)
    return NONE


def equal(meter: CostMeter, first: Value, second: Value) -> bool:
    """Whether two values are the same. Numbers compare by value, other types only to their own.

    The parts of lists and maps are charged: a short expression can make a value of very many.
    """
    if is_number(first) and is_number(second):
        return first == second
    if is_list(first) and is_list(second):
        if len(first) != len(second):
            return False
        return all(_equal_part(meter, *pair) for pair in zip(first, second, strict=True))
    if is_map(first) and is_map(second):
        return first.keys() == second.keys() and all(
            _equal_part(meter, value, second[key]) for key, value in first.items()
        )
    if isinstance(first, OptionalValue) and isinstance(second, OptionalValue):
        if not (first.has_value and second.has_value):
            return first.has_value is second.has_value
        return _equal_part(meter, first.value, second.value)
    return _TYPE_NAMES[type(first)] == _TYPE_NAMES[type(second)] and first == second


def _equal_part(meter: CostMeter, first: Value, second: Value) -> bool:
    meter.work(2)
    return equal(meter, first, second)


def shown(value: Value) -> str:
    """A value in an error message."""
    return str(value).lower() if isinstance(value, bool) else str(value)
