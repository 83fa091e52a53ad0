"""Input of the page's forms: decoded into structs, so that a wrong field is named."""

from typing import TypeVar

import msgspec

from kubestow.api.decode import quoted
from kubestow.api.meta import JsonObject
from kubestow.api.plain_types import plain
from kubestow.errors import InputError

T = TypeVar("T")


class FormInput(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Base of the forms: a field that is misspelt is an error."""


class EmptyForm(FormInput, frozen=True, kw_only=True):
    pass


def form_of(cls: type[T], body: JsonObject) -> T:
    """The input of a form; InputError names the field."""
    try:
        return msgspec.convert(body, cls, strict=True)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$.")
        where = where.rstrip("`")
        given = f"{quoted(body[where])} is given, " if where in body else ""
        raise wrong(given + plain(text), where) from error


def wrong(message: str, where: str) -> InputError:
    error = InputError(message)
    error.where = where
    return error


def done(message: str, objects: int) -> JsonObject:
    return {"message": message, "objects": objects}
