"""Reads a document against a schema, as a server decodes what a client sends.

Wrong types are refused in the words of a server; fields that the kind does not have are left out
and listed; null means absent. Parts that need no change stay the same objects.

Not here: values of the right type that are not allowed (`writes.validation`).
"""

import base64
import binascii
import re
from datetime import datetime
from typing import Final, NamedTuple, NoReturn

from kubestow.api.duration import parse_duration
from kubestow.api.meta import Json, JsonObject
from kubestow.api.quantity import FORMAT_ERROR, parse_quantity
from kubestow.apiserver.schema.types import INTEGER_BITS, Schema, Shape
from kubestow.cluster.documents import is_list, is_object
from kubestow.errors import InputError

UNKNOWN_MAX: Final = 100  # unknown fields that are listed, as by a server
_TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)

# Names of fields, numbers of elements, and keys of maps as one-element tuples.
Step = str | int | tuple[str]
Path = tuple[Step, ...]


class ReadDocument(NamedTuple):
    document: JsonObject
    # The paths of the fields that were left out: `spec.containers[0].imag`.
    unknown: list[str]


class TypeMismatchError(InputError):
    """A value that its field cannot have; the text is that of a server's decoder."""

    def __init__(self, message: str, path: Path, problem: str) -> None:
        super().__init__(message)
        # `.spec.replicas: expected numeric, got string`: how the refusal of an apply begins.
        self.path: Final = path
        self.problem: Final = problem


def read(document: JsonObject, schema: Schema) -> ReadDocument:
    """The document with only the fields of its schema; raises TypeMismatchError."""
    reader = _Reader()
    return ReadDocument(reader.value(document, schema, (), ""), reader.unknown)


def path_text(path: Path) -> str:
    """A path as warnings write it."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if isinstance(step, str) else step[0]
            text += f".{name}" if text else name
    return text


class _Reader:
    def __init__(self) -> None:
        self.unknown: list[str] = []

    def value(self, value: Json, schema: Schema, path: Path, struct: str) -> Json:
        """The value as it may be stored; `struct` is the type that has the field."""
        if schema.is_custom and not _is_container(value, schema.shape):
            return value
        match schema.shape:
            case Shape.OBJECT:
                if not is_object(value):
                    _refuse(value, schema.type_name, path, struct, "map")
                return self._object(value, schema, path)
            case Shape.LIST:
                return self._list(value, schema, path, struct)
            case Shape.MAP:
                return self._map(value, schema, path, struct)
            case Shape.ANYTHING:
                return value
            case _:
                _check_plain(value, schema, path, struct)
                return value

    def _object(self, value: JsonObject, schema: Schema, path: Path) -> JsonObject:
        fields, struct = schema.fields, schema.struct_name
        changed: JsonObject = {}
        dropped: set[str] = set()
        for name, below in value.items():
            field = fields.get(name)
            if field is None:
                if schema.keeps_unknown:
                    continue
                dropped.add(name)
                if len(self.unknown) < UNKNOWN_MAX:
                    self.unknown.append(path_text((*path, name)))
            elif below is None:
                if not field.is_nullable:
                    dropped.add(name)
            else:
                read_below = self.value(below, field, (*path, name), struct)
                if read_below is not below:
                    changed[name] = read_below
        if not changed and not dropped:
            return value
        return {
            name: changed.get(name, below) for name, below in value.items() if name not in dropped
        }

    def _list(self, value: Json, schema: Schema, path: Path, struct: str) -> Json:
        if not is_list(value):
            _refuse(value, schema.type_name, path, struct, "list")
        items = schema.items
        assert items is not None
        read_items = [
            _null(items) if item is None else self.value(item, items, (*path, index), struct)
            for index, item in enumerate(value)
        ]
        is_same = all(new is old for new, old in zip(read_items, value, strict=True))
        return value if is_same else read_items

    def _map(self, value: Json, schema: Schema, path: Path, struct: str) -> Json:
        if not is_object(value):
            _refuse(value, schema.type_name, path, struct, "map")
        items = schema.items
        assert items is not None
        read_items = {
            key: _null(items)
            if below is None
            else self.value(below, items, (*path, (key,)), struct)
            for key, below in value.items()
        }
        is_same = all(read_items[key] is below for key, below in value.items())
        return value if is_same else read_items


def _is_container(value: Json, shape: Shape) -> bool:
    """Whether the value has parts that the schema describes."""
    match shape:
        case Shape.OBJECT | Shape.MAP:
            return is_object(value)
        case Shape.LIST:
            return is_list(value)
        case _:
            return False


def _check_plain(value: Json, schema: Schema, path: Path, struct: str) -> None:
    match schema.shape:
        case Shape.STRING:
            if not isinstance(value, str):
                _refuse(value, schema.type_name, path, struct, "string")
        case Shape.BOOLEAN:
            if not isinstance(value, bool):
                _refuse(value, schema.type_name, path, struct, "boolean")
        case Shape.INTEGER:
            _check_integer(value, schema.type_name, path, struct)
        case Shape.NUMBER:
            if not _is_number(value):
                _refuse(value, schema.type_name, path, struct, "numeric (int or float)")
        case Shape.INT_OR_STRING:
            if not isinstance(value, str):
                _check_integer(value, schema.type_name, path, struct)
        case Shape.QUANTITY:
            _check_quantity(value, path)
        case Shape.BYTES:
            _check_bytes(value, schema.type_name, path, struct)
        case _:
            _check_time(value, schema, path, struct)


def _check_integer(value: Json, type_name: str, path: Path, struct: str) -> None:
    bits = INTEGER_BITS[type_name]
    lowest, highest = (0, (1 << bits) - 1) if bits == 8 else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        _refuse(value, type_name, path, struct, "numeric (int or float)")


def _check_quantity(value: Json, path: Path) -> None:
    if not isinstance(value, str) and not _is_number(value):
        _refuse_text(FORMAT_ERROR, path)
    try:
        parse_quantity(value.strip() if isinstance(value, str) else value)
    except ValueError as error:
        _refuse_text(str(error), path)


def _check_bytes(value: Json, type_name: str, path: Path, struct: str) -> None:
    if not isinstance(value, str):
        _refuse(value, type_name, path, struct, "string")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        _refuse_text(f"illegal base64 data at input byte {_first_wrong_byte(value)}", path)


def _first_wrong_byte(text: str) -> int:
    found = re.search(r"[^A-Za-z0-9+/]", text)
    return len(text) - len(text) % 4 if found is None else found.start()


def _check_time(value: Json, schema: Schema, path: Path, struct: str) -> None:
    if not isinstance(value, str):
        _refuse(value, schema.type_name, path, struct, "string")
    try:
        if schema.shape is Shape.DURATION:
            parse_duration(value)
        elif not _RFC3339.fullmatch(value):
            raise ValueError(f'parsing time "{value}" as "{_TIME_LAYOUT}": cannot parse "{value}"')
        else:
            datetime.fromisoformat(value)
    except ValueError as error:
        _refuse_text(str(error), path)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(value: Json, type_name: str, path: Path, struct: str, expected: str) -> NoReturn:
    # Elements and keys are not part of the place that a decoder names.
    names = [step for step in path if isinstance(step, str)]
    found = _json_type(value)
    is_out_of_range = found == "number" and expected.startswith("numeric")
    shown = f"number {value}" if is_out_of_range else found
    where = f"Go struct field {struct}.{'.'.join(names)}" if names else "Go value"
    message = f"json: cannot unmarshal {shown} into {where} of type {type_name}"
    raise TypeMismatchError(message, path, f"expected {expected}, got {found}")


def _refuse_text(problem: str, path: Path) -> NoReturn:
    # A real server does not name the field here; without it the message would be of no use.
    raise TypeMismatchError(f"{problem} (field {path_text(path)})", path, problem)


def _json_type(value: Json) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _null(schema: Schema) -> Json:
    """What null means as an element of a list or map."""
    if schema.is_custom:
        return None
    match schema.shape:
        case Shape.OBJECT | Shape.MAP:
            return {}
        case Shape.LIST:
            return []
        case Shape.BOOLEAN:
            return False
        case Shape.INTEGER | Shape.NUMBER | Shape.INT_OR_STRING:
            return 0
        case Shape.ANYTHING:
            return None
        case Shape.QUANTITY:
            return "0"
        case _:
            return ""
