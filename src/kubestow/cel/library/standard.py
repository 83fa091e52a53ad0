"""The standard functions: sizes, conversions between types, texts, times."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubestow.api.duration import parse_duration
from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, method
from kubestow.cel.static_types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
)
from kubestow.cel.values import (
    INT_MAX,
    INT_MIN,
    NANOSECONDS,
    UINT_MAX,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    checked_int,
    checked_timestamp,
    checked_uint,
    type_name,
)

_DIGITS_MAX: Final = 20  # of a 64-bit number; Python refuses to convert very many
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_UNSIGNED: Final = re.compile(r"[0-9]+")
_FLOAT: Final = re.compile(
    r"[+-]?(?:inf(?:inity)?|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE
)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII
)
_OFFSET_PART: Final = re.compile(r"[+-]?[0-9]{1,9}")


# --- Conversions ------------------------------------------------------------------------------


def conversion_error(value: Value, kind: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{kind}'")


def _int_of_string(text: str) -> int:
    digits = text.lstrip("+-0") or "0"
    if _INTEGER.fullmatch(text) and len(digits) <= _DIGITS_MAX:
        number = -int(digits) if text[0] == "-" else int(digits)
        if INT_MIN <= number <= INT_MAX:
            return number
    raise conversion_error(text, "int")


def _int_of_uint(number: UInt) -> int:
    return checked_int(int(number))


def _seconds_of_timestamp(moment: Timestamp) -> int:
    return int(moment) // NANOSECONDS


def _int_of_double(number: float) -> int:
    if not math.isfinite(number) or not -(2.0**63) < number < 2.0**63:
        raise CelError("integer overflow")
    return int(number)


def _uint_of_int(number: int) -> UInt:
    return UInt(checked_uint(number))


def _uint_of_string(text: str) -> UInt:
    digits = text.lstrip("0") or "0"
    if _UNSIGNED.fullmatch(text) and len(digits) <= _DIGITS_MAX and int(digits) <= UINT_MAX:
        return UInt(digits)
    raise conversion_error(text, "uint")


def _uint_of_double(number: float) -> UInt:
    if not math.isfinite(number) or not 0 <= number < 2.0**64:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def _double_of_string(text: str) -> float:
    if _FLOAT.fullmatch(text):
        return float(text)
    raise conversion_error(text, "double")


def _bool_of_string(text: str) -> bool:
    if text in _BOOLS:
        return _BOOLS[text]
    raise conversion_error(text, "bool")


def _string_of_double(number: float) -> str:
    """All digits, never an exponent."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == int(number):
        sign = "-" if math.copysign(1, number) < 0 and number == 0 else ""
        return sign + _without_exponent(repr(number)).removesuffix(".0")
    return _without_exponent(repr(number))


def _without_exponent(text: str) -> str:
    """Python's shortest digits, with the decimal point in place of the exponent."""
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text.removeprefix("-") if text == "-0.0" else text
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits, point = whole + fraction, len(whole) + int(exponent)
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits.ljust(point, '0')[:point]}"


def _string_of_bytes(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error


def _string_of_bool(value: bool) -> str:
    return "true" if value else "false"


def _string_of_timestamp(moment: Timestamp) -> str:
    seconds, nanos = divmod(int(moment), NANOSECONDS)
    text = _utc(seconds).strftime("%Y-%m-%dT%H:%M:%S")
    return text + (f".{nanos:09}".rstrip("0") if nanos else "") + "Z"


def _string_of_duration(duration: Duration) -> str:
    return f"{_string_of_double(int(duration) / NANOSECONDS)}s"


_TO_STRING: Final[dict[type, Callable[..., str]]] = {
    str: str,
    bool: _string_of_bool,
    int: str,
    UInt: str,
    float: _string_of_double,
    bytes: _string_of_bytes,
    Timestamp: _string_of_timestamp,
    Duration: _string_of_duration,
}


def text_of(value: Value) -> str:
    """The result of `string(value)`, for the types that have this conversion."""
    return _TO_STRING[type(value)](value)


def _timestamp_of_string(text: str) -> Timestamp:
    match = _TIME.fullmatch(text)
    if match is None:
        raise conversion_error(text, "google.protobuf.Timestamp")
    try:
        whole = datetime.fromisoformat(match[1] + match[3])
    except ValueError as error:
        raise conversion_error(text, "google.protobuf.Timestamp") from error
    nanos = int((match[2] or "0").ljust(9, "0")[:9])
    return checked_timestamp(int(whole.timestamp()) * NANOSECONDS + nanos)


def _timestamp_of_int(seconds: int) -> Timestamp:
    return checked_timestamp(seconds * NANOSECONDS)


def _duration_of_string(text: str) -> Duration:
    try:
        return Duration(parse_duration(text))
    except ValueError as error:
        raise conversion_error(text, "google.protobuf.Duration") from error


def _same(value: Value) -> Value:
    return value


def _type_of(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


def _conversion(name: str, result: Type, rules: dict[Type, Callable[..., Value]]) -> list[Overload]:
    return [function(name, (kind,), result, code) for kind, code in rules.items()]


_CONVERSIONS: Final[tuple[Overload, ...]] = (
    *_conversion(
        "int",
        INT,
        {
            INT: _same,
            UINT: _int_of_uint,
            DOUBLE: _int_of_double,
            STRING: _int_of_string,
            TIMESTAMP: _seconds_of_timestamp,
            DURATION: int,
        },
    ),
    *_conversion(
        "uint",
        UINT,
        {
            UINT: _same,
            INT: _uint_of_int,
            DOUBLE: _uint_of_double,
            STRING: _uint_of_string,
        },
    ),
    *_conversion(
        "double", DOUBLE, {DOUBLE: _same, INT: float, UINT: float, STRING: _double_of_string}
    ),
    *_conversion("bool", BOOL, {BOOL: _same, STRING: _bool_of_string}),
    *_conversion(
        "string",
        STRING,
        dict.fromkeys((STRING, BOOL, INT, UINT, DOUBLE, BYTES, TIMESTAMP, DURATION), text_of),
    ),
    *_conversion("bytes", BYTES, {BYTES: _same, STRING: str.encode}),
    *_conversion(
        "timestamp",
        TIMESTAMP,
        {
            TIMESTAMP: _same,
            STRING: _timestamp_of_string,
            INT: _timestamp_of_int,
        },
    ),
    *_conversion(
        "duration", DURATION, {DURATION: _same, STRING: _duration_of_string, INT: Duration}
    ),
    function("dyn", (A,), DYN, _same),
    function("type", (A,), TYPE, _type_of),
)


# --- Texts and sizes --------------------------------------------------------------------------


def _sizes() -> list[Overload]:
    kinds = (STRING, BYTES, list_of(A), map_of(A, B))
    return [make("size", (kind,), INT, len) for make in (function, method) for kind in kinds]


def _text_test(name: str, code: Callable[[str, str], bool]) -> Overload:
    return method(name, (STRING, STRING), BOOL, code)


_TEXTS: Final[tuple[Overload, ...]] = (
    *_sizes(),
    _text_test("startsWith", str.startswith),
    _text_test("endsWith", str.endswith),
    _text_test("contains", lambda text, part: part in text),
)


# --- Times ------------------------------------------------------------------------------------


def _utc(seconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _in_zone(moment: Timestamp, zone: str) -> datetime:
    """The moment on the clocks of a zone: one with a name, or an offset of any size."""
    try:
        if ":" in zone:
            return _utc(int(moment) // NANOSECONDS) + _offset(zone)
        return _utc(int(moment) // NANOSECONDS).astimezone(_named_zone(zone))
    except OverflowError as error:
        raise CelError("timestamp overflow") from error


def _offset(zone: str) -> timedelta:
    hours, _, minutes = zone.partition(":")
    for part in (hours, minutes):
        if not _OFFSET_PART.fullmatch(part):
            raise CelError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    sign = -1 if zone.startswith("-") else 1
    return timedelta(minutes=int(hours) * 60 + sign * int(minutes))


def _named_zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    # OSError: the name of a folder, or one that is too long.
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CelError(f"unknown time zone {name}") from error


def _day_of_year(moment: datetime) -> int:
    return moment.timetuple().tm_yday - 1


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": _day_of_year,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}
_DURATION_UNITS: Final = {
    "getHours": 3600 * NANOSECONDS,
    "getMinutes": 60 * NANOSECONDS,
    "getSeconds": NANOSECONDS,
    "getMilliseconds": 1_000_000,
}


def _part(name: str, read: Callable[[datetime], int]) -> list[Overload]:
    def in_utc(moment: Timestamp) -> int:
        return read(_utc(int(moment) // NANOSECONDS))

    def in_zone(moment: Timestamp, zone: str) -> int:
        return read(_in_zone(moment, zone))

    return [
        method(name, (TIMESTAMP,), INT, in_utc),
        method(name, (TIMESTAMP, STRING), INT, in_zone),
    ]


def _milliseconds(moment: Timestamp, *_: str) -> int:
    return int(moment) % NANOSECONDS // 1_000_000


def _duration_part(name: str, unit: int) -> Overload:
    def read(duration: Duration) -> int:
        whole = abs(int(duration)) // unit
        return whole if duration >= 0 else -whole

    return method(name, (DURATION,), INT, read)


_TIMES: Final[tuple[Overload, ...]] = (
    *(overload for name, read in _PARTS.items() for overload in _part(name, read)),
    method("getMilliseconds", (TIMESTAMP,), INT, _milliseconds),
    method("getMilliseconds", (TIMESTAMP, STRING), INT, _milliseconds),
    *(_duration_part(name, unit) for name, unit in _DURATION_UNITS.items()),
)

STANDARD: Final[tuple[Overload, ...]] = (*_CONVERSIONS, *_TEXTS, *_TIMES)
