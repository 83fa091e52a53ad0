"""What a command-line flag is, and the kinds of its values: parsing and formatting (spec 09 §2).

The error texts are those of upstream's flag library and Go's number parsers, because users search
for them.
"""

import csv
import ipaddress
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from kubestow.api.quantity import parse_quantity
from kubestow.config.scalars import Duration, parse_bool

FlagValue = str | bool | int | float | Duration | tuple[str, ...] | Mapping[str, str]

_NUMBER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[1-9][0-9]*|0)")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FLOAT32_MAX: Final = 3.4028235677973366e38


class FlagKind(NamedTuple):
    """`parse` gets the text and the value of earlier uses of the flag, None at the first; it raises
    ValueError."""

    # The name in the usage; empty for switches.
    label: str
    parse: Callable[[str, FlagValue | None], FlagValue]
    # The value of a flag without one; empty if it needs one.
    bare: str = ""


class Section(StrEnum):
    """The headings of the usage, in this order."""

    MISC = "Misc"
    SECURE_SERVING = "Secure serving"
    AUTHENTICATION = "Authentication"
    AUTHORIZATION = "Authorization"
    DEPRECATED = "Deprecated"
    LEADER_ELECTION = "Leader election"
    FEATURE_GATE = "Feature gate"
    METRICS = "Metrics"
    LOGS = "Logs"
    OLDER = "Older schedulers"
    GLOBAL = "Global"


class Flag(NamedTuple):
    section: Section
    name: str
    kind: FlagKind
    default: FlagValue
    help: str
    shorthand: str = ""


def format_value(value: FlagValue) -> str:
    """A value as the log of all flags and `/flagz` print it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(value)}]"
    if isinstance(value, Mapping):
        return f"[{','.join(f'{key}={value[key]}' for key in sorted(value))}]"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _single(parse: Callable[[str], FlagValue]) -> Callable[[str, FlagValue | None], FlagValue]:
    """A reader for flags of which the last value counts, if they are given several times."""
    return lambda text, _: parse(text)


def _integer(bits: int, *, signed: bool = True) -> Callable[[str], int]:
    name = "ParseInt" if signed else "ParseUint"
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def parse(text: str) -> int:
        if not _NUMBER.fullmatch(text) or (not signed and text[:1] in ("+", "-")):
            raise ValueError(f'strconv.{name}: parsing "{text}": invalid syntax')
        octal = re.fullmatch(r"([+-]?)0([0-7]+)", text)
        number = int(f"{octal[1]}0o{octal[2]}", 0) if octal else int(text, 0)
        if not lowest <= number <= highest:
            raise ValueError(f'strconv.{name}: parsing "{text}": value out of range')
        return number

    return parse


def _float(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    number = float(text)
    if abs(number) > _FLOAT32_MAX:
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": value out of range')
    return number


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError as error:
        raise ValueError(f'failed to parse IP: "{text}"') from error


def _quantity(text: str) -> str:
    return str(parse_quantity(text))


def _fields(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated text; quoted parts may have commas."""
    try:
        return tuple(next(csv.reader([text]))) if text else ()
    except csv.Error as error:
        raise ValueError(f"invalid list: {error}") from error


def _texts(text: str, earlier: FlagValue | None) -> FlagValue:
    return (*(earlier if isinstance(earlier, tuple) else ()), *_fields(text))


def _numbers(text: str, earlier: FlagValue | None) -> FlagValue:
    parse = _integer(32)
    numbers = tuple(str(parse(part.strip())) for part in text.split(","))
    return (*(earlier if isinstance(earlier, tuple) else ()), *numbers)


def _whole_texts(text: str, earlier: FlagValue | None) -> FlagValue:
    return (*(earlier if isinstance(earlier, tuple) else ()), text)


def _cert_keys(text: str, earlier: FlagValue | None) -> FlagValue:
    if text.partition(":")[0].count(",") != 1:
        raise ValueError("expected comma separated certificate and key file paths")
    return _whole_texts(text, earlier)


def _pairs(text: str, earlier: FlagValue | None) -> FlagValue:
    # A single pair may have commas in key and value: `metric,label=v1,v2`.
    entries = (text.strip('"'),) if text.count("=") == 1 else _fields(text)
    pairs = dict(earlier) if isinstance(earlier, Mapping) else {}
    for entry in entries:
        key, separator, value = entry.partition("=")
        if not separator:
            raise ValueError(f"{entry} must be formatted as key=value")
        pairs[key] = value
    return pairs


def _module_levels(text: str) -> str:
    parse = _integer(32, signed=False)
    for entry in text.split(",") if text else ():
        pattern, separator, level = entry.partition("=")
        if not pattern or not separator or not level:
            raise ValueError(f"{entry!r} does not have the pattern=N format")
        parse(level)
    return text


def _version(text: str) -> str:
    """`false`, `true`, `raw`, or a version to report."""
    if text == "raw" or text.startswith("v"):
        return text
    return str(parse_bool(text)).lower()


BOOL: Final = FlagKind("", _single(parse_bool), bare="true")
STRING: Final = FlagKind("string", _single(str))
IP: Final = FlagKind("ip", _single(_address))
INT: Final = FlagKind("int", _single(_integer(64)))
INT32: Final = FlagKind("int32", _single(_integer(32)))
LEVEL: Final = FlagKind("Level", _single(_integer(32, signed=False)))
FLOAT32: Final = FlagKind("float", _single(_float))
DURATION: Final = FlagKind("duration", _single(Duration.parse))
QUANTITY: Final = FlagKind("quantity", _single(_quantity))
STRINGS: Final = FlagKind("strings", _texts)
INT32_LIST: Final = FlagKind("int32Slice", _numbers)
# Every use is kept unparsed.
REPEATED: Final = FlagKind("string", _whole_texts)
CERT_KEYS: Final = FlagKind("namedCertKey", _cert_keys)
PAIRS: Final = FlagKind("stringToString", _pairs)
MODULE_LEVELS: Final = FlagKind("pattern=N,...", _single(_module_levels))
VERSION: Final = FlagKind("version[=true]", _single(_version), bare="true")
