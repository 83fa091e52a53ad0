"""What msgspec says about a value that does not decode, in plain words.

Its texts have names of Python types: "Expected `str | null`, got `int`", "Expected `float` >= 0.0".
Not here: which field and value it is about.
"""

import re
from typing import Final

from kubestow.plural import counted

_TYPES: Final = re.compile(r"Expected `(?P<expected>.+?)`(?:, got `(?P<found>.+)`)?")
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (?P<sign><=|>=|<|>) (?P<limit>\S+)")
_LENGTH: Final = re.compile(
    r"Expected `(?P<type>str|array|object)` of length (?P<sign><=|>=|==) (?P<limit>\d+)"
)
_PATTERN: Final = re.compile(r"Expected `str` matching regex '(?P<pattern>.*)'", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_BAD_TIME: Final = "Invalid RFC3339 encoded datetime"
_NAMES: Final = {
    "array": "a list",
    "bool": "true or false",
    "datetime": "a time",
    "float": "a number",
    "int": "a whole number",
    "object": "a map",
    "str": "a string",
}
_SIGNS: Final = {
    "<=": "at most ",
    ">=": "at least ",
    "<": "less than ",
    ">": "more than ",
    "==": "",
}
_PARTS: Final = {"str": "character", "array": "entry", "object": "entry"}


def plain(what: str) -> str:
    """The text without its place, such as "expected a whole number"; unchanged if unknown."""
    if what == _BAD_TIME:
        return 'expected a time such as "2026-01-31T12:00:00Z"'
    if bound := _BOUND.fullmatch(what):
        return f"expected {_SIGNS[bound['sign']]}{float(bound['limit']):.17g}"
    if length := _LENGTH.fullmatch(what):
        count = counted(int(length["limit"]), _PARTS[length["type"]])
        return f"expected {_NAMES[length['type']]} of {_SIGNS[length['sign']]}{count}"
    if pattern := _PATTERN.fullmatch(what):
        return f"expected a string of the form {pattern['pattern']}"
    if unknown := _UNKNOWN.fullmatch(what):
        return f'there is no field "{unknown[1]}"'
    if missing := _MISSING.fullmatch(what):
        return f'the field "{missing[1]}" is missing'
    if types := _TYPES.fullmatch(what):
        return _expected(types["expected"], types["found"])
    return what


def _expected(expected: str, found: str | None) -> str:
    # A field that may be absent reads `str | null`; "null" would not help the user.
    names = [name for name in expected.split(" | ") if name != "null"]
    if "float" in names and "int" in names:
        names.remove("int")
    texts = [_NAMES.get(name, name) for name in names]
    text = f"expected {' or '.join(filter(None, (', '.join(texts[:-1]), texts[-1])))}"
    if names == ["str"] and found in ("bool", "int", "float"):
        # YAML reads yes, on and 1.10 as a bool or a number, not as text.
        text += "; put it in quotes"
    return text
