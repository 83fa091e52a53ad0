"""Named formats that texts can be checked against."""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Final
from uuid import UUID

from kubestow.api.labels import label_value_errors, qualified_name_errors
from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, method
from kubestow.cel.library.net import parse_url
from kubestow.cel.static_types import FORMAT, STRING, list_of, optional_of
from kubestow.cel.values import NONE, OptionalValue, name_type

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OLD_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_LENGTH_MAX: Final = 63
_SUBDOMAIN_LENGTH_MAX: Final = 253

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


def _shape(pattern: str, length_max: int) -> Validate:
    """A format given by a pattern and a maximum length."""
    shape = re.compile(pattern)

    def validate(text: str) -> list[str]:
        errors: list[str] = []
        if len(text) > length_max:
            errors.append(f"must be no more than {length_max} characters")
        if shape.fullmatch(text) is None:
            errors.append(f"must match the regular expression '{pattern}'")
        return errors

    return validate


def _prefix(validate: Validate) -> Validate:
    """A prefix of a generated name may end in a dash, because a suffix follows."""
    return lambda text: validate(f"{text[:-1]}a" if text.endswith("-") else text)


def _convertible(convert: Callable[[str], object], what: str) -> Validate:
    def validate(text: str) -> list[str]:
        try:
            convert(text)
        except (ValueError, CelError, binascii.Error):
            return [f"invalid {what}"]
        return []

    return validate


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_LABEL_FORMAT: Final = _shape(_LABEL, _LABEL_LENGTH_MAX)
_OLD_LABEL_FORMAT: Final = _shape(_OLD_LABEL, _LABEL_LENGTH_MAX)
_SUBDOMAIN_FORMAT: Final = _shape(rf"{_LABEL}(\.{_LABEL})*", _SUBDOMAIN_LENGTH_MAX)
_FORMATS: Final[dict[str, Format]] = {
    name: Format(name, pattern_size, validate)
    for name, pattern_size, validate in (
        ("dns1123Label", 30, _LABEL_FORMAT),
        ("dns1123Subdomain", 60, _SUBDOMAIN_FORMAT),
        ("dns1035Label", 30, _OLD_LABEL_FORMAT),
        ("dns1123LabelPrefix", 30, _prefix(_LABEL_FORMAT)),
        ("dns1123SubdomainPrefix", 60, _prefix(_SUBDOMAIN_FORMAT)),
        ("dns1035LabelPrefix", 30, _prefix(_OLD_LABEL_FORMAT)),
        ("qualifiedName", 60, qualified_name_errors),
        ("labelValue", 40, label_value_errors),
        ("uri", 1103, _convertible(parse_url, "URI")),
        ("uuid", 70, _convertible(UUID, "UUID")),
        ("byte", 84, _convertible(_base64, "base64")),
        ("date", 71, _convertible(date.fromisoformat, "date")),
        ("datetime", 71, _convertible(datetime.fromisoformat, "datetime")),
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
