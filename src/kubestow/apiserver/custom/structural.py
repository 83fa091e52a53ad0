"""The schema in a definition: which fields its objects keep, and which are filled in."""

from typing import Final

from kubestow.api.meta import Json, JsonObject
from kubestow.apiserver.schema.builtin import object_meta
from kubestow.apiserver.schema.types import Schema, Shape
from kubestow.cluster.documents import as_list, as_object, is_list, is_object

_SHAPES: Final = {
    "object": Shape.OBJECT,
    "array": Shape.LIST,
    "string": Shape.STRING,
    "integer": Shape.INTEGER,
    "number": Shape.NUMBER,
    "boolean": Shape.BOOLEAN,
}
_TYPE_NAMES: Final = {Shape.INTEGER: "int64", Shape.NUMBER: "float64", Shape.BOOLEAN: "bool"}
_KEEPS_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"


def root_schema(openapi: JsonObject, *, keeps_unknown: bool = False) -> Schema:
    """The schema of whole objects; `keeps_unknown` keeps every field that it does not name."""
    schema = structural_schema({"type": "object", **openapi})
    schema.shape = Shape.OBJECT
    schema.fields |= _resource_fields()
    schema.keeps_unknown |= keeps_unknown
    schema.type_name = "unstructured.Unstructured"
    return schema


def structural_schema(openapi: JsonObject) -> Schema:
    """The schema of a value of a custom resource."""
    schema = Schema(
        shape=_shape(openapi),
        is_custom=True,
        is_atomic=openapi.get("x-kubernetes-map-type") == "atomic",
        keeps_unknown=openapi.get(_KEEPS_UNKNOWN) is True,
        default=openapi.get("default"),
        is_nullable=openapi.get("nullable") is True,
        required=frozenset(as_list(openapi.get("required"))),
    )
    schema.type_name = _TYPE_NAMES.get(schema.shape, schema.shape.value)
    match schema.shape:
        case Shape.OBJECT:
            properties = as_object(openapi.get("properties"))
            schema.fields = {
                name: structural_schema(as_object(below)) for name, below in properties.items()
            }
            if openapi.get("x-kubernetes-embedded-resource") is True:
                schema.fields |= _resource_fields()
        case Shape.MAP:
            schema.items = structural_schema(as_object(openapi.get("additionalProperties")))
        case Shape.LIST:
            schema.items = structural_schema(as_object(openapi.get("items")))
            _set_list_type(schema, openapi)
        case _:
            pass
    return schema


def with_defaults(value: Json, schema: Schema) -> Json:
    """The value with the defaults of its schema; the same one if it lacks nothing."""
    if is_list(value) and schema.items is not None:
        items = [with_defaults(item, schema.items) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else items
    if not is_object(value):
        return value
    filled: JsonObject = {
        name: with_defaults(field.default, field)
        for name, field in schema.fields.items()
        if field.default is not None and name not in value
    }
    for name, below in value.items():
        field = schema.items if schema.shape is Shape.MAP else schema.fields.get(name)
        if field is not None and field.is_custom:
            filled_below = with_defaults(below, field)
            if filled_below is not below:
                filled[name] = filled_below
    return {**value, **filled} if filled else value


def _shape(openapi: JsonObject) -> Shape:
    if openapi.get("x-kubernetes-int-or-string") is True:
        return Shape.INT_OR_STRING
    shape = _SHAPES.get(str(openapi.get("type")), Shape.ANYTHING)
    if shape is Shape.ANYTHING and openapi.get("properties"):
        shape = Shape.OBJECT
    if shape is Shape.OBJECT and not openapi.get("properties"):
        more = openapi.get("additionalProperties")
        if more is True or is_object(more):
            return Shape.MAP
        if openapi.get(_KEEPS_UNKNOWN) is True and "x-kubernetes-embedded-resource" not in openapi:
            return Shape.ANYTHING
    return shape


def _set_list_type(schema: Schema, openapi: JsonObject) -> None:
    match openapi.get("x-kubernetes-list-type"):
        case "map":
            schema.list_keys = tuple(as_list(openapi.get("x-kubernetes-list-map-keys")))
        case "set":
            schema.is_set = True
        case _:
            schema.is_atomic = True


def _resource_fields() -> dict[str, Schema]:
    text = Schema(shape=Shape.STRING, type_name="string")
    return {"apiVersion": text, "kind": text, "metadata": object_meta()}
