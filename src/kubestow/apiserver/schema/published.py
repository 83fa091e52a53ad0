"""Schemas as OpenAPI v3, for `kubectl explain` and for clients that check types themselves."""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.types import Schema, Shape

_PLAIN: Final[dict[Shape, JsonObject]] = {
    Shape.STRING: {"type": "string"},
    Shape.BOOLEAN: {"type": "boolean"},
    Shape.INTEGER: {"type": "integer"},
    Shape.NUMBER: {"type": "number", "format": "double"},
    Shape.TIME: {"type": "string", "format": "date-time"},
    Shape.MICRO_TIME: {"type": "string", "format": "date-time"},
    Shape.DURATION: {"type": "string"},
    Shape.QUANTITY: {"type": "string"},
    Shape.INT_OR_STRING: {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    Shape.BYTES: {"type": "string", "format": "byte"},
    Shape.ANYTHING: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


class PublishedSchemas:
    """The schemas of one document, each named structure once."""

    def __init__(self) -> None:
        self.by_name: dict[str, JsonObject] = {}
        self._names: dict[int, str] = {}

    def add(self, name: str, schema: Schema, kind: JsonObject) -> str:
        """Publish the schema of a whole object; return the reference to it."""
        self._names[id(schema)] = name
        self.by_name[name] = {}
        published = self._structure(schema) if schema.fields else {"type": "object"}
        self.by_name[name] = published | {"x-kubernetes-group-version-kind": [kind]}
        return _reference(name)

    def _reference_to(self, schema: Schema) -> JsonObject:
        name = self._names.get(id(schema))
        if name is None:
            # Structures of the same name in two packages get different names.
            name = schema.type_name
            while name in self.by_name:
                name += "_"
            self._names[id(schema)] = name
            self.by_name[name] = {}  # reserved: a structure may contain itself
            self.by_name[name] = self._structure(schema)
        return {"allOf": [{"$ref": _reference(name)}]}

    def _published(self, schema: Schema) -> JsonObject:
        match schema.shape:
            case Shape.OBJECT:
                return self._structure(schema) if schema.is_custom else self._reference_to(schema)
            case Shape.LIST:
                assert schema.items is not None
                return {"type": "array", "items": self._published(schema.items), **_merging(schema)}
            case Shape.MAP:
                assert schema.items is not None
                return {"type": "object", "additionalProperties": self._published(schema.items)}
            case Shape.INTEGER if schema.type_name in ("int32", "int64"):
                return {"type": "integer", "format": schema.type_name}
            case _:
                return _PLAIN[schema.shape]

    def _structure(self, schema: Schema) -> JsonObject:
        fields = {name: self._published(field) for name, field in schema.fields.items()}
        structure: JsonObject = {"type": "object"}
        if fields:
            structure["properties"] = fields
        if schema.required:
            structure["required"] = sorted(schema.required)
        if schema.keeps_unknown:
            structure["x-kubernetes-preserve-unknown-fields"] = True
        return structure


def _merging(schema: Schema) -> JsonObject:
    """How the list merges, as clients read it."""
    if schema.list_keys:
        merging: JsonObject = {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": schema.list_keys,
        }
    else:
        merging = {"x-kubernetes-list-type": "set" if schema.is_set else "atomic"}
    if schema.merge_key is not None:
        merging["x-kubernetes-patch-strategy"] = "merge"
        if schema.merge_key:
            merging["x-kubernetes-patch-merge-key"] = schema.merge_key
    return merging


def _reference(name: str) -> str:
    return f"#/components/schemas/{name}"
