"""The schemas of the built-in kinds, read from `fields.txt`."""

from functools import cache
from importlib.resources import files
from typing import Final

from kubestow.apiserver.schema.types import ANYTHING, Schema, Shape, WireField

# Groups whose package is not called like the first part of the group.
_PACKAGES: Final = {"": "core", "rbac.authorization.k8s.io": "rbac"}
# Types with a form of their own in JSON: the Go type in messages, and the shape.
_SPECIAL: Final = {
    "string": ("string", Shape.STRING),
    "bool": ("bool", Shape.BOOLEAN),
    "int": ("int", Shape.INTEGER),
    "int32": ("int32", Shape.INTEGER),
    "int64": ("int64", Shape.INTEGER),
    "byte": ("uint8", Shape.INTEGER),
    "float64": ("float64", Shape.NUMBER),
    "bytes": ("[]uint8", Shape.BYTES),
    "Quantity": ("resource.Quantity", Shape.QUANTITY),
    "IntOrString": ("int32", Shape.INT_OR_STRING),
    "Time": ("string", Shape.TIME),
    "MicroTime": ("string", Shape.MICRO_TIME),
    "Duration": ("string", Shape.DURATION),
    "UID": ("types.UID", Shape.STRING),
    "NodeName": ("types.NodeName", Shape.STRING),
    "JSON": ("", Shape.ANYTHING),
    "RawExtension": ("", Shape.ANYTHING),
    "FieldsV1": ("", Shape.ANYTHING),
    # Each is a schema, or something else: which one is found out where definitions are read.
    "JSONSchemaPropsOrArray": ("", Shape.ANYTHING),
    "JSONSchemaPropsOrBool": ("", Shape.ANYTHING),
    "JSONSchemaPropsOrStringArray": ("", Shape.ANYTHING),
}


def schema_of(group: str, version: str, kind: str) -> Schema:
    """The schema of a built-in kind; one that allows anything for any other kind."""
    package = _PACKAGES.get(group) or group.partition(".")[0]
    return _schemas().get(f"{package}.{version}.{kind}", ANYTHING)


def object_meta() -> Schema:
    return _schemas()["meta.v1.ObjectMeta"]


def delete_options() -> Schema:
    """Sent in the version of the resource that is deleted, whichever that is."""
    return _schemas()["meta.v1.DeleteOptions"]


@cache
def _schemas() -> dict[str, Schema]:
    """Every type of the table, by package and name."""
    text = files("kubestow.apiserver.schema").joinpath("fields.txt").read_text(encoding="utf-8")
    return _Table(text).schemas


def _number(schema: Schema, number: str, field: WireField) -> None:
    """Give a field its number, or the numbers of the messages it is embedded in and its own."""
    *outer, last = (int(part) for part in number.split("."))
    numbers = schema.wire
    for part in outer:
        numbers = numbers.setdefault(part, WireField()).embedded
    numbers[last] = field


class _Table:
    """Reads the table: first the names of all types, then what they refer to."""

    def __init__(self, text: str) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[str, str] = {}
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        self._declare(lines)
        self._define(lines)

    def _declare(self, lines: list[str]) -> None:
        package = ""
        for line in lines:
            if line.startswith("["):
                package = line.strip("[]")
            elif not line.startswith(" "):
                name, _, rest = line.partition(" ")
                if rest.startswith("="):
                    self._names[f"{package}.{name}"] = rest.removeprefix("= ")
                else:
                    self.schemas[f"{package}.{name}"] = Schema(
                        shape=Shape.OBJECT,
                        type_name=f"{package.rpartition('.')[2]}.{name}",
                        is_atomic=rest == "atomic",
                    )

    def _define(self, lines: list[str]) -> None:
        package, current = "", ANYTHING
        for line in lines:
            if line.startswith("["):
                package = line.strip("[]")
            elif line.startswith(" "):
                name, type, *marks = line.split()
                field = name.removesuffix("!")
                keeps_zero, type = type.endswith("?"), type.removesuffix("?")
                if marks and marks[0][0].isdigit():
                    _number(current, marks.pop(0), WireField(name=field, keeps_zero=keeps_zero))
                current.fields[field] = self._field(package, type, marks)
                if field != name:
                    current.required |= {field}
            elif "=" not in line:
                current = self.schemas[f"{package}.{line.partition(' ')[0]}"]

    def _field(self, package: str, type: str, marks: list[str]) -> Schema:
        schema = self._type(package, type)
        if schema.shape is Shape.LIST:
            schema.is_atomic = True  # unless it has keys or is a set
        for mark in marks:
            if mark == "atomic" and schema.shape is not Shape.OBJECT:
                schema.is_atomic = True
            elif mark.startswith("{"):
                schema.list_keys = tuple(filter(None, mark.strip("{}").split(",")))
                schema.is_set = not schema.list_keys
                schema.is_atomic = False
            elif mark.startswith("merge="):
                schema.merge_key = mark.removeprefix("merge=")
        return schema

    def _type(self, package: str, type: str) -> Schema:
        """The schema of a type; a new one for everything but structs."""
        if type.startswith("[]"):
            items = self._type(package, type[2:])
            return Schema(shape=Shape.LIST, type_name=f"[]{items.type_name}", items=items)
        if type.startswith("map["):
            key, _, value = type.removeprefix("map[").partition("]")
            items = self._type(package, value)
            name = f"map[{self._type(package, key).type_name}]{items.type_name}"
            return Schema(shape=Shape.MAP, type_name=name, items=items)
        if type in _SPECIAL:
            name, shape = _SPECIAL[type]
            return Schema(shape=shape, type_name=name)
        full = type if "." in type else f"{package}.{type}"
        if full in self.schemas:
            return self.schemas[full]
        owner, _, name = full.rpartition(".")
        schema = self._type(owner, self._names[full])
        schema.type_name = f"{owner.rpartition('.')[2]}.{name}"
        return schema
