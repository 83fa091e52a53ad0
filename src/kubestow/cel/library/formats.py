"""Named formats that texts can be checked against."""

import re
from collections.abc import Callable
from datetime import date
from typing import Final

from kubestow.api.labels import label_value_errors, qualified_name_errors
from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, method
from kubestow.cel.library.net import parse_url
from kubestow.cel.static_types import FORMAT, STRING, list_of, optional_of
from kubestow.cel.values import NONE, OptionalValue, name_type

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_ENDS: Final = "and must start and end with an alphanumeric character"
_LABEL_RULE: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
    f" (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
    f" '-' or '.', {_ENDS} (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_OLD_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character"
    f" (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_OLD_LABEL}')"
)
_LABEL_LENGTH_MAX: Final = 63
_SUBDOMAIN_LENGTH_MAX: Final = 253
_UUID: Final = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_BASE64: Final = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_DATE: Final = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")

Validate = Callable[[str], list[str]]


class Format:
    """A format by name; `validate` lists the errors of a text.

    `pattern_size` is what validating costs: as much as a pattern of this length.
    """

    __slots__ = ("name", "pattern_size", "validate")

    def __init__(self, name: str, pattern_size: int, validate: Validate) -> None:
        self.name = name
        self.pattern_size = pattern_size
        self.validate = validate


name_type(Format, FORMAT.name)


def _shape(pattern: str, rule: str, length_max: int) -> Validate:
    """A format given by a pattern and a maximum length in bytes."""
    shape = re.compile(pattern)

    def validate(text: str) -> list[str]:
        errors: list[str] = []
        if len(text.encode()) > length_max:
            errors.append(f"must be no more than {length_max} characters")
        if shape.fullmatch(text) is None:
            errors.append(rule)
        return errors

    return validate


_is_subdomain: Final = re.compile(_SUBDOMAIN).fullmatch
_label_errors: Final = _shape(_LABEL, _LABEL_RULE, _LABEL_LENGTH_MAX)
_old_label_errors: Final = _shape(_OLD_LABEL, _OLD_LABEL_RULE, _LABEL_LENGTH_MAX)
_subdomain_errors: Final = _shape(_SUBDOMAIN, _SUBDOMAIN_RULE, _SUBDOMAIN_LENGTH_MAX)


def _dotted_label_errors(text: str) -> list[str]:
    """The errors of a label; where it is wrong by its dots alone, only these are named."""
    errors = _label_errors(text)
    if _LABEL_RULE in errors and _is_subdomain(text):
        errors[-1] = "must not contain dots"
    return errors


def _prefix(validate: Validate) -> Validate:
    """A prefix of a generated name may end in a dash, because a suffix follows. As upstream the
    character before the dash is not looked at."""

    def masked(text: str) -> str:
        return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text

    return lambda text: validate(masked(text))


def _matching(matches: Callable[[str], object], error: str) -> Validate:
    return lambda text: [] if matches(text) else [error]


def _is_uri(text: str) -> bool:
    try:
        parse_url(text)
    except CelError:
        return False
    return True


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        date(400 + year % 400, month, day)  # the same calendar, and there is a year 0
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    """Whether a date and a time stand around the first T. A second of 60 is refused."""
    day, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    return (
        match is not None
        and _is_date(day)
        and match[1] <= "23"
        and match[2] <= "59"
        and match[3] <= "59"
    )


_FORMATS: Final[dict[str, Format]] = {
    name: Format(name, pattern_size, validate)
    for name, pattern_size, validate in (
        ("dns1123Label", 30, _dotted_label_errors),
        ("dns1123Subdomain", 60, _subdomain_errors),
        ("dns1035Label", 30, _old_label_errors),
        ("dns1123LabelPrefix", 30, _prefix(_dotted_label_errors)),
        ("dns1123SubdomainPrefix", 60, _prefix(_subdomain_errors)),
        ("dns1035LabelPrefix", 30, _prefix(_old_label_errors)),
        ("qualifiedName", 60, qualified_name_errors),
        ("labelValue", 40, label_value_errors),
        ("uri", 1103, _matching(_is_uri, "invalid URI")),
        ("uuid", 70, _matching(_UUID.fullmatch, "does not match the UUID format")),
        ("byte", 84, _matching(_BASE64.fullmatch, "invalid base64")),
        ("date", 71, _matching(_is_date, "invalid date")),
        ("datetime", 71, _matching(_is_datetime, "invalid datetime")),
    )
}


def _named(name: str) -> OptionalValue:
    found = _FORMATS.get(name)
    return NONE if found is None else OptionalValue(found)


def _validate(named_format: Format, text: str) -> OptionalValue:
    errors = named_format.validate(text)
    return OptionalValue(tuple(errors)) if errors else NONE


def _constant(found: Format) -> Overload:
    def get() -> Format:
        return found

    return function(f"format.{found.name}", (), FORMAT, get)


FORMATS: Final[tuple[Overload, ...]] = (
    function("format.named", (STRING,), optional_of(FORMAT), _named),
    method("validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate),
    *(_constant(found) for found in _FORMATS.values()),
)
