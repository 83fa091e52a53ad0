"""Bodies in the protobuf encoding of Kubernetes, turned into documents.

Go programs send it by default: every `kubectl create …` does, and so do schedulers and kubelets.
Answers are JSON, which all of them read. Only what clients send is decoded, so this is only a
reader: a wire format, an envelope, and the numbers in the table of fields (`schema`).

Invariant: a document has everything that was sent. A field that is not in the table is refused.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, NoReturn

import msgspec

from kubestow.api.meta import Json, JsonObject
from kubestow.apiserver.refusals import bad_request
from kubestow.apiserver.schema.builtin import delete_options, schema_of
from kubestow.apiserver.schema.types import ANYTHING, Schema, Shape, WireField
from kubestow.errors import ApiError

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT: Final = 0
_FIXED_64: Final = 1
_BYTES: Final = 2
_FIXED_32: Final = 5
_SIGN: Final = 1 << 63

# Any: a JSON value of any type.


def decode_protobuf(body: bytes) -> JsonObject:
    """The object in a body; 400 if it is not protobuf, 415 if it has unknown fields."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body of the request is not in the protobuf encoding of Kubernetes")
    envelope = dict(_wire_fields(body[len(_MAGIC) :]))
    type_meta = {number: _text(value) for number, value in _wire_fields(_raw(envelope.get(1, b"")))}
    api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
    group, _, version = api_version.rpartition("/")
    schema = schema_of(group, version, kind)
    if kind == "DeleteOptions":
        schema = delete_options()
    if not schema.wire:
        _refuse(f'kind "{kind}" in version "{api_version}"')
    document: JsonObject = {"apiVersion": api_version, "kind": kind}
    _read_message(document, _raw(envelope.get(2, b"")), schema, schema.wire)
    return document


def _read_message(
    document: JsonObject, raw: bytes, schema: Schema, numbers: dict[int, WireField]
) -> None:
    """Add the fields of a message, and of the messages embedded in it, to the document."""
    for number, value in _wire_fields(raw):
        field = numbers.get(number)
        if field is None:
            if value not in (b"", 0):
                _refuse(f'field {number} of "{schema.struct_name}"')
        elif field.embedded:
            _read_message(document, _raw(value), schema, field.embedded)
        else:
            _add(document, field, schema.fields[field.name], value)


def _add(document: JsonObject, field: WireField, schema: Schema, value: int | bytes) -> None:
    items = schema.items
    if schema.shape is Shape.MAP and items is not None:
        entry = dict(_wire_fields(_raw(value)))
        mapping: JsonObject = document.setdefault(field.name, {})
        mapping[_text(entry.get(1, b""))] = _value(items, entry.get(2, b""))
    elif schema.shape is Shape.LIST and items is not None:
        elements: list[Json] = document.setdefault(field.name, [])
        elements.append(_value(items, value))
    else:
        decoded = _value(schema, value)
        is_zero = decoded in ("", 0, False, {})
        if decoded is not None and (field.keeps_zero or not is_zero):
            document[field.name] = decoded


def _value(schema: Schema, value: int | bytes) -> Json:
    match schema.shape:
        case Shape.OBJECT:
            document: JsonObject = {}
            _read_message(document, _raw(value), schema, schema.wire)
            return document
        case Shape.LIST:
            # A named list in a map is a message of its own.
            items = schema.items or ANYTHING
            return [_value(items, part) for _, part in _wire_fields(_raw(value))]
        case _:
            return _PLAIN[schema.shape](value)


# --- Values -----------------------------------------------------------------------------------


def _integer(value: int | bytes) -> int:
    number = value if isinstance(value, int) else 0
    return number - (_SIGN << 1) if number >= _SIGN else number


def _text(value: int | bytes) -> str:
    try:
        return _raw(value).decode()
    except UnicodeDecodeError as error:
        raise bad_request(f"the protobuf body has a text that is not UTF-8: {error}") from error


def _base64(value: int | bytes) -> str:
    return base64.b64encode(_raw(value)).decode()


def _time(value: int | bytes) -> str | None:
    moment = _moment(value)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: int | bytes) -> str | None:
    moment = _moment(value)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(value: int | bytes) -> datetime | None:
    """A time; None for Go's zero time."""
    parts = {number: _integer(part) for number, part in _wire_fields(_raw(value))}
    seconds = parts.get(1, 0)
    if seconds <= 0:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=parts.get(2, 0) // 1000)


def _quantity(value: int | bytes) -> str:
    return _text(dict(_wire_fields(_raw(value))).get(1, b""))


def _integer_or_text(value: int | bytes) -> int | str:
    parts = dict(_wire_fields(_raw(value)))
    is_text = _integer(parts.get(1, 0)) == 1
    return _text(parts.get(3, b"")) if is_text else _integer(parts.get(2, 0))


def _number(value: int | bytes) -> float:
    raw = _raw(value)
    if len(raw) != 8:
        raise bad_request("the protobuf body has a number of the wrong length")
    return struct.unpack("<d", raw)[0]


def _duration(value: int | bytes) -> str:
    return f"{_integer(dict(_wire_fields(_raw(value))).get(1, 0))}ns"


def _json(value: int | bytes) -> Json:
    raw = _raw(dict(_wire_fields(_raw(value))).get(1, b""))
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the protobuf body has a field that is not JSON: {error}") from error


_PLAIN: Final[dict[Shape, Callable[[int | bytes], Json]]] = {
    Shape.STRING: _text,
    Shape.INTEGER: _integer,
    Shape.BOOLEAN: bool,
    Shape.NUMBER: _number,
    Shape.BYTES: _base64,
    Shape.TIME: _time,
    Shape.MICRO_TIME: _micro_time,
    Shape.DURATION: _duration,
    Shape.QUANTITY: _quantity,
    Shape.INT_OR_STRING: _integer_or_text,
    Shape.ANYTHING: _json,
}


# --- The wire ---------------------------------------------------------------------------------


def _wire_fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field, in the order they were written."""
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(raw, position)
            yield number, value
            continue
        length = {_FIXED_64: 8, _FIXED_32: 4}.get(kind)
        if length is None:
            if kind != _BYTES:
                raise bad_request(f"the protobuf body has a field of unknown wire type {kind}")
            length, position = _varint(raw, position)
        end = position + length
        if end > len(raw):
            raise bad_request("the protobuf body ends in the middle of a field")
        yield number, raw[position:end]
        position = end


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise bad_request("the protobuf body ends in the middle of a number")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _raw(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise bad_request("the protobuf body has a number where a text or message belongs")
    return value


def _refuse(what: str) -> NoReturn:
    raise ApiError(
        f"the embedded server cannot read {what} in protobuf; send it as application/json",
        code=415,
        reason="UnsupportedMediaType",
    )
