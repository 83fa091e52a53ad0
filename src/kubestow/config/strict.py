"""Strict decoding of documents to structs: unknown and duplicate fields are errors.

The fields are those of the structs. A null counts as absent. A value of the wrong type ends the
decoding; unknown and duplicate fields are collected (spec 09 §3.1).
"""

import re
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from kubestow.api.decode import is_list, is_map, quoted
from kubestow.api.plain_types import plain
from kubestow.config.documents import FieldMap
from kubestow.config.scalars import Duration
from kubestow.errors import ConfigError
from kubestow.redaction import redacted

T = TypeVar("T", bound=msgspec.Struct)

STRICT_ERRORS_MAX: Final = 100  # of one decoding; upstream stops counting there

_ERROR_TEXT: Final = re.compile(
    r"(?P<what>.*?)(?: - at (?:`key` in )?`(?P<path>\$.*)`)?", re.DOTALL
)
_PATH_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


class Cleaned(NamedTuple):
    """A document without the fields that its type lacks, and the errors of these fields."""

    document: Any
    errors: list[str]


def clean(document: object, cls: type[msgspec.Struct]) -> Cleaned:
    errors: list[str] = []
    cleaned = _clean(document, _type_info(cls), "", errors)
    return Cleaned(cleaned, list(dict.fromkeys(errors))[:STRICT_ERRORS_MAX])


def convert(document: object, cls: type[T], *, kind: str) -> T:
    """The struct of a cleaned document; raises ConfigError with the field and its value."""
    try:
        return msgspec.convert(document, cls, dec_hook=_read_scalar)
    except msgspec.ValidationError as error:
        raise ConfigError(f"cannot decode {kind}: {_explain(document, str(error))}") from error


@cache
def _type_info(cls: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(cls)


def _clean(value: object, kind: inspect.Type, path: str, errors: list[str]) -> object:
    match kind:
        case inspect.UnionType():
            # Only `X | None` occurs.
            chosen = next(entry for entry in kind.types if not isinstance(entry, inspect.NoneType))
            return _clean(value, chosen, path, errors)
        case inspect.StructType() if is_map(value):
            return _clean_fields(value, kind, path, errors)
        case inspect.DictType() if is_map(value):
            return {
                key: _clean_entry(entry, kind.value_type, _child(path, key), errors)
                for key, entry in value.items()
            }
        case inspect.VarTupleType() if is_list(value):
            return [
                _clean_entry(entry, kind.item_type, f"{path}[{index}]", errors)
                for index, entry in enumerate(value)
            ]
        case _:
            return value


def _clean_fields(
    value: dict[str, Any], kind: inspect.StructType, path: str, errors: list[str]
) -> dict[str, object]:
    kinds = {field.encode_name: field.type for field in kind.fields}
    cleaned: dict[str, object] = {}
    seen: set[str] = set()
    # In the order of the document, which is that of the errors.
    for key in value.written_keys if isinstance(value, FieldMap) else value:
        if key not in kinds:
            errors.append(f'unknown field "{_child(path, key)}"')
        elif key in seen:
            errors.append(f'duplicate field "{_child(path, key)}"')
        elif value[key] is not None:
            cleaned[key] = _clean(value[key], kinds[key], _child(path, key), errors)
        seen.add(key)
    return cleaned


def _clean_entry(value: object, kind: inspect.Type, path: str, errors: list[str]) -> object:
    if value is not None:
        return _clean(value, kind, path, errors)
    match kind:  # In a list or a map null is the zero value.
        case inspect.StrType():
            return ""
        case inspect.StructType():
            return {}
        case _:
            return None


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _read_scalar(kind: type, value: object) -> object:
    """msgspec's hook for other types."""
    if kind is not Duration:
        return value
    if isinstance(value, Duration):
        return value
    if not isinstance(value, str):
        raise ValueError('expected a duration such as "15s"')
    return Duration.parse(value)


def _explain(document: object, error_text: str) -> str:
    parts = _ERROR_TEXT.fullmatch(error_text)
    assert parts is not None, error_text
    what = plain(parts["what"])
    shown, name, value = "", "", document
    for key, index in _PATH_STEP.findall(parts["path"] or ""):
        shown = f"{shown}[{index}]" if index else _child(shown, key)
        name, value = key or name, _step(value, key, index)
    value = redacted({name: value})[name]
    return f"{shown} is {quoted(value)}: {what}" if shown else f"found {quoted(value)}: {what}"


def _step(value: object, key: str, index: str) -> object:
    if index.isdigit():
        return value[int(index)] if is_list(value) else None
    return value.get(key) if is_map(value) else None
