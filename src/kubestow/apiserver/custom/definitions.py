"""Custom resources as the server serves them, made from their definitions.

Objects are stored in the storage version of their definition. The other versions differ in
`apiVersion` alone (conversion `None`), each with its own schema and columns.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.custom.rules import ESTABLISHED
from kubestow.apiserver.custom.structural import root_schema, with_defaults
from kubestow.apiserver.custom.validation import ERRORS_MAX, value_errors
from kubestow.apiserver.refusals import invalid
from kubestow.apiserver.schema.types import Schema
from kubestow.apiserver.served import PrinterColumn, ScalePaths, ServedResource, ServedTable
from kubestow.apiserver.store import Change, StoredObject
from kubestow.cluster.documents import as_list, as_object, is_object, objects_in, value_at
from kubestow.cluster.resources import ALL_VERBS, ApiResource

_WITHOUT_CREATE: Final = tuple(verb for verb in ALL_VERBS if verb != "create")


class Definitions:
    """Keeps the table of served resources in step with the stored definitions."""

    def __init__(self, served: ServedTable) -> None:
        self._served = served

    def follow(self, change: Change) -> None:
        """Serve what a definition describes, or no longer what a deleted one did."""
        if change.new is None:
            self._served.unregister(change.key[1])
        elif _is_established(change.new) and not self._served.is_built_in(change.new.name):
            self._served.register(*served_versions(change.new.document))


def _is_established(stored: StoredObject) -> bool:
    conditions = objects_in(value_at(stored.document, "status", "conditions"))
    return any(one.get("type") == ESTABLISHED and one.get("status") == "True" for one in conditions)


def served_versions(document: JsonObject) -> tuple[ApiResource, tuple[ServedResource, ...]]:
    """The resource as it is stored, and its served versions, best first."""
    versions = objects_in(value_at(document, "spec", "versions"))
    storage = next(version for version in versions if version.get("storage") is True)
    stored = _resource(document, storage)
    served = [
        _served(document, version, stored) for version in versions if version.get("served") is True
    ]
    served.sort(key=lambda one: version_order(one.resource.version))
    return stored, tuple(served)


def _resource(document: JsonObject, version: JsonObject) -> ApiResource:
    spec = as_object(document.get("spec"))
    names = as_object(spec.get("names"))
    is_terminating = "deletionTimestamp" in as_object(document.get("metadata"))
    subresources = as_object(version.get("subresources"))
    return ApiResource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
        has_status=is_object(subresources.get("status")),
        has_generation=True,
        is_scaled=is_object(subresources.get("scale")),
        short_names=tuple(as_list(names.get("shortNames"))),
        categories=tuple(as_list(names.get("categories"))),
        verbs=_WITHOUT_CREATE if is_terminating else ALL_VERBS,
        is_custom=True,
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or "",
    )


def _served(document: JsonObject, version: JsonObject, stored: ApiResource) -> ServedResource:
    resource = _resource(document, version)
    openapi = as_object(value_at(version, "schema", "openAPIV3Schema"))
    keeps_unknown = value_at(document, "spec", "preserveUnknownFields") is True
    schema = root_schema(openapi, keeps_unknown=keeps_unknown)
    scale = as_object(value_at(version, "subresources", "scale"))
    return ServedResource(
        resource=resource,
        stored=stored,
        to_client=_in_version(resource.api_version),
        to_store=_in_version(stored.api_version),
        admit=_admitting(resource, openapi, schema),
        custom_schema=schema,
        columns=tuple(
            PrinterColumn(
                column.get("name", ""),
                column.get("type", "string"),
                column.get("jsonPath", ""),
                column.get("priority") or 0,
            )
            for column in objects_in(version.get("additionalPrinterColumns"))
        ),
        scale=ScalePaths(
            spec=_path(scale.get("specReplicasPath")),
            status=_path(scale.get("statusReplicasPath")),
            selector=_path(scale.get("labelSelectorPath")),
        ),
    )


def _path(text: object) -> tuple[str, ...]:
    """The steps of `.spec.replicas`."""
    return tuple(filter(None, str(text or "").split(".")))


def _in_version(api_version: str) -> Callable[[JsonObject], JsonObject]:
    def converted(document: JsonObject) -> JsonObject:
        if document.get("apiVersion") == api_version:
            return document
        return {**document, "apiVersion": api_version}

    return converted


def _admitting(
    resource: ApiResource, openapi: JsonObject, schema: Schema
) -> Callable[[JsonObject], JsonObject]:
    def admitted(document: JsonObject) -> JsonObject:
        document = with_defaults(document, schema)
        content = {name: value for name, value in document.items() if name != "metadata"}
        errors = list(islice(value_errors(content, openapi), ERRORS_MAX))
        if errors:
            kind = f"{resource.kind}.{resource.group}"
            metadata = as_object(document.get("metadata"))
            raise invalid(kind, metadata.get("name") or metadata.get("generateName") or "", errors)
        return document

    return admitted


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts v2 before v1 before v1beta1 before v1alpha1 before anything else."""
    digits, stage, rest = version.removeprefix("v"), "", ""
    for name in ("alpha", "beta"):
        if name in digits:
            digits, stage, rest = digits.partition(name)
    if not version.startswith("v") or not digits.isdecimal() or not (rest or "0").isdecimal():
        return (3, 0, 0, version)
    rank = {"": 0, "beta": 1, "alpha": 2}[stage]
    return (rank, -int(digits), -int(rest or 0), version)
