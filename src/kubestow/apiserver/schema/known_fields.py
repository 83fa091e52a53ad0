"""Misspelt fields in what users write, with the field that was probably meant.

The structs of `api` declare the fields that the scheduler reads; a field they lack may be wrong
(`nodeSelectr`) or just not read (`livenessProbe`). The table of all fields has the answer.

Not here: the values of fields (`api.decode`, `api.check`), requests to a server (`reading`).
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.schema.types import Schema, Shape
from kubestow.cluster.documents import is_list, is_object
from kubestow.cluster.resources import NEWER_POD_GROUP_VERSION, default_resources


class UnknownField(NamedTuple):
    """A field that no version of its object has."""

    # As `spec.containers[0].imagee`.
    path: str
    # A known field with almost the same name; empty if there is none.
    similar: str


def unknown_fields(document: JsonObject) -> list[UnknownField]:
    """The fields that are unknown, in the order they are written; none for an unknown kind."""
    kind = document.get("kind")
    schemas = _schemas_by_kind()
    schema = schemas.get((document.get("apiVersion"), kind)) or schemas.get(("", kind))
    if schema is None or _is_known(document, schema):
        return []
    return list(_unknown_in(document, schema, ""))


# Loops, because a generator for each map and list would take longer than what it looks at.
def _is_known(value: object, schema: Schema) -> bool:
    """Whether all fields are known: the answer for almost every object, without paths."""
    shape, items = schema.shape, schema.items
    entries: Iterable[object] = ()
    if is_object(value):
        if shape is Shape.OBJECT:
            return value.keys() <= schema.fields.keys() and _are_known(value, _with_fields(schema))
        if shape is Shape.MAP:
            entries = value.values()
    elif is_list(value) and shape is Shape.LIST:
        entries = value
    if items is not None and _has_fields(items):
        for entry in entries:
            if not _is_known(entry, items):
                return False
    return True


def _are_known(fields: JsonObject, schemas: Mapping[str, Schema]) -> bool:
    for name in fields:
        if name in schemas and not _is_known(fields[name], schemas[name]):
            return False
    return True


@cache  # of a table that is read once
def _with_fields(schema: Schema) -> dict[str, Schema]:
    """The fields of an object in whose values a field can be unknown."""
    return {name: field for name, field in schema.fields.items() if _has_fields(field)}


def _has_fields(schema: Schema) -> bool:
    while schema.items is not None and schema.shape in (Shape.LIST, Shape.MAP):
        schema = schema.items
    return schema.shape is Shape.OBJECT


def _unknown_in(value: object, schema: Schema, path: str) -> Iterator[UnknownField]:
    items = schema.items
    if is_list(value) and schema.shape is Shape.LIST and items is not None:
        for index, item in enumerate(value):
            yield from _unknown_in(item, items, f"{path}[{index}]")
    elif is_object(value) and schema.shape is Shape.MAP and items is not None:
        for key, item in value.items():
            yield from _unknown_in(item, items, f'{path}["{key}"]')
    elif is_object(value) and schema.shape is Shape.OBJECT:
        for name, entry in value.items():
            below = f"{path}.{name}" if path else name
            if name in schema.fields:
                yield from _unknown_in(entry, schema.fields[name], below)
            else:
                similar = difflib.get_close_matches(name, schema.fields, n=1, cutoff=0.8)
                yield UnknownField(below, similar[0] if similar else "")


@cache
def _schemas_by_kind() -> dict[tuple[object, object], Schema]:
    """The schemas by API version and kind. Under a kind without a version is that of its oldest."""
    found: dict[tuple[object, object], Schema] = {}
    for table in (default_resources(), default_resources(NEWER_POD_GROUP_VERSION)):
        for resource in table:
            schema = schema_of(resource.group, resource.version, resource.kind)
            found[resource.api_version, resource.kind] = schema
            found.setdefault(("", resource.kind), schema)
    return found
