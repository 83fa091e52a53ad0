"""What a value may be: the schema of one field, or of a whole object.

Schemas refer to each other and may be recursive, so they are compared by identity.
"""

from enum import Enum
from typing import Any, Final

import msgspec


class Shape(Enum):
    """How a value is written in JSON, and read."""

    OBJECT = "object"
    MAP = "map"
    LIST = "list"
    STRING = "string"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TIME = "time"
    MICRO_TIME = "time with microseconds"
    DURATION = "duration"
    QUANTITY = "quantity"
    INT_OR_STRING = "int or string"
    BYTES = "bytes"
    ANYTHING = "anything"


class WireField(msgspec.Struct):
    """What a number means in a protobuf message: a field, or an embedded message."""

    name: str = ""
    keeps_zero: bool = False
    embedded: "dict[int, WireField]" = {}


class Schema(msgspec.Struct, eq=False):
    """The schema of a value. Complete once its table is read; not modified afterwards."""

    shape: Shape
    # The type as a server names it in messages: `int32`, `v1.PodSpec`, `[]v1.Container`.
    type_name: str = ""
    # Of an object: its fields by name, and those it must have.
    fields: dict[str, "Schema"] = {}
    required: frozenset[str] = frozenset()
    wire: dict[int, WireField] = {}
    # Of a list or map: its elements.
    items: "Schema | None" = None
    # Of a list, for apply: the fields that identify an element, or whether it is a set.
    list_keys: tuple[str, ...] = ()
    is_set: bool = False
    # Of an object, map or list: whether an apply owns it only as a whole.
    is_atomic: bool = False
    # Of a list, for strategic merge patches: None replaces, "" merges plain values.
    merge_key: str | None = None
    # --- Custom resources only: wrong types are left to validation.
    is_custom: bool = False
    # Of an object: whether it keeps fields that it does not name.
    keeps_unknown: bool = False
    # The value that is filled in where there is none.
    default: Any = None  # any JSON value
    # Whether null is a value.
    is_nullable: bool = False

    @property
    def struct_name(self) -> str:
        """The name without its package: `PodSpec`."""
        return self.type_name.rpartition(".")[2]


ANYTHING: Final = Schema(shape=Shape.ANYTHING)
INTEGER_BITS: Final = {"int": 64, "int32": 32, "int64": 64, "uint8": 8}
