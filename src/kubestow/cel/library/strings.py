"""The strings extension: parts of texts, and texts made of values."""

import re
from typing import Final

from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, metered, method
from kubestow.cel.library.standard import text_of
from kubestow.cel.meter import CostMeter
from kubestow.cel.static_types import DYN, INT, STRING, list_of
from kubestow.cel.values import (
    CelList,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    is_list,
    is_map,
    keys_of,
    type_name,
)

_LOWER: Final = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER: Final = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
_QUOTES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\\": r"\\", '"': r"\"",
}  # fmt: skip
_VERB_RULES: Final = {
    "b": "only integers and bools can be formatted as binary",
    "d": "decimal clause can only be used on integers",
    "e": "scientific clause can only be used on doubles",
    "f": "fixed-point clause can only be used on doubles",
    "o": "octal clause can only be used on integers",
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists,"
    " types, durations, and timestamps",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
}
_PRECISION_DIGITS_MAX: Final = 7
_ELEMENT_WORK: Final = 3  # for each element that `%s` writes
_VERB: Final = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]+))?(?P<verb>[a-zA-Z]))")


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    # Behind the end is no place to look back from, unlike the end of the last occurrence.
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    last = len(text) if end is None else end
    for index in (start, last):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:last]


def _join(texts: CelList, separator: str = "") -> str:
    if not all(isinstance(text, str) for text in texts):
        raise CelError("no such overload: join(list)")
    return separator.join(map(str, texts))


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> tuple[str, ...]:
    if limit == 0:
        return ()
    if not separator:  # into characters, the last piece takes the rest
        if limit < 0 or limit >= len(text):
            return tuple(text)
        return (*text[: limit - 1], text[limit - 1 :])
    return tuple(text.split(separator, limit - 1 if limit > 0 else -1))


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTES.get(character, character) for character in text) + '"'


# --- format -----------------------------------------------------------------------------------


def _format(meter: CostMeter, template: str, args: CelList) -> str:
    remaining = iter(args)
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match["percent"]:
            return "%"
        if count >= len(args):
            raise CelError(f"index {count} out of range")
        count += 1
        text = _formatted(meter, match["verb"], match["precision"], next(remaining))
        meter.make(len(text))
        return text

    return _VERB.sub(replace, template)


def _formatted(meter: CostMeter, verb: str, precision: str | None, value: Value) -> str:
    digits = 6 if precision is None else _precision(meter, precision)
    match verb:
        case "s":
            return _as_text(meter, value)
        case "d" if type(value) in (int, UInt):
            return str(value)
        case "f" | "e" if isinstance(value, float):
            return f"{value:.{digits}{verb}}"
        case "b" if isinstance(value, int):
            return f"{int(value):b}"
        case "o" if type(value) in (int, UInt):
            return f"{value:o}"
        case "x" | "X":
            return _hexadecimal(verb, value)
        case "d" | "f" | "e" | "b" | "o":
            raise _not_formattable(verb, value)
        case _:
            rule = f'unrecognized formatting clause "{verb}"'
            raise CelError(f"could not parse formatting clause: {rule}")


def _precision(meter: CostMeter, text: str) -> int:
    if len(text.lstrip("0")) > _PRECISION_DIGITS_MAX:
        raise CelError(f"error while converting precision to integer: {text[:80]}: out of range")
    meter.make(int(text))
    meter.work(int(text))  # far slower than copying
    return int(text)


def _hexadecimal(verb: str, value: Value) -> str:
    if type(value) in (int, UInt):
        return f"{value:{verb}}"
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value.hex().upper() if verb == "X" else value.hex()
    raise _not_formattable(verb, value)


def _not_formattable(verb: str, value: Value) -> CelError:
    rule = _VERB_RULES[verb.lower()]
    return CelError(f"error during formatting: {rule}, was given {type_name(value)}")


def _as_text(meter: CostMeter, value: Value) -> str:
    """The value as `%s` writes it, paid for: a short expression can make one of very many parts."""
    if value is None:
        return "null"
    if is_list(value):
        text = f"[{', '.join(_as_text(meter, element) for element in value)}]"
        meter.make(len(text))
        meter.work(_ELEMENT_WORK * len(value))
        return text
    if is_map(value):
        meter.work(_ELEMENT_WORK * len(value))
        entries = [
            f"{_as_text(meter, key)}: {_as_text(meter, entry)}"
            for key, entry in zip(keys_of(value), value.values(), strict=True)
        ]
        text = f"{{{', '.join(sorted(entries))}}}"
        meter.make(len(text))
        return text
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, str | bytes | bool | int | float | Timestamp | Duration):
        return text_of(value)
    raise _not_formattable("s", value)


STRINGS: Final[tuple[Overload, ...]] = (
    method("charAt", (STRING, INT), STRING, _char_at),
    method("indexOf", (STRING, STRING), INT, _index_of),
    method("indexOf", (STRING, STRING, INT), INT, _index_of),
    method("lastIndexOf", (STRING, STRING), INT, _last_index_of),
    method("lastIndexOf", (STRING, STRING, INT), INT, _last_index_of),
    method("join", (list_of(STRING),), STRING, _join),
    method("join", (list_of(STRING), STRING), STRING, _join),
    method("lowerAscii", (STRING,), STRING, _lower),
    method("upperAscii", (STRING,), STRING, _upper),
    method("replace", (STRING, STRING, STRING), STRING, _replace),
    method("replace", (STRING, STRING, STRING, INT), STRING, _replace),
    method("split", (STRING, STRING), list_of(STRING), _split),
    method("split", (STRING, STRING, INT), list_of(STRING), _split),
    method("substring", (STRING, INT), STRING, _substring),
    method("substring", (STRING, INT, INT), STRING, _substring),
    method("trim", (STRING,), STRING, str.strip),
    metered(method("format", (STRING, list_of(DYN)), STRING, _format)),
    function("strings.quote", (STRING,), STRING, _quote),
)
