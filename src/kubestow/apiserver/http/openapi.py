"""OpenAPI v3: the parameters and the fields of each kind, by group and version.

kubectl reads it before it sends `fieldValidation` or `dryRun`, which it looks for at the PATCH of
the kind, and for `kubectl explain`. Fields have types and no descriptions.
"""

import hashlib
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import no_such_resource
from kubestow.apiserver.schema.published import PublishedSchemas
from kubestow.apiserver.served import ServedResource, ServedTable
from kubestow.cluster.resources import ApiResource

_ROOT: Final = "/openapi/v3"
_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
# Strategic merge patches of built-in kinds are accepted too. They are left out because with them
# kubectl would look for the merge keys in the schema, and not in its own table.
_PATCH_TYPES: Final = ("application/apply-patch+yaml", "application/json-patch+json")


class OpenApi:
    def __init__(self, served: ServedTable, *, version: str) -> None:
        self._served = served
        self._version = version

    def answer(self, path: str) -> JsonObject | None:
        """The document at an OpenAPI path; None for any other path."""
        if path.rstrip("/") == _ROOT:
            return self._index()
        if not path.startswith(f"{_ROOT}/"):
            return None
        found = self._group_versions().get(path.removeprefix(f"{_ROOT}/"))
        if found is None:
            raise no_such_resource()
        return self._document(found)

    def _group_versions(self) -> dict[str, list[ServedResource]]:
        found: dict[str, list[ServedResource]] = {}
        for served in self._served:
            found.setdefault(_prefix(served.resource), []).append(served)
        return found

    def _index(self) -> JsonObject:
        paths: JsonObject = {}
        for prefix, resources in self._group_versions().items():
            # Clients keep a document as long as its address stays the same. Only the schemas of
            # custom resources change while the server runs.
            custom = [id(one.custom_schema) for one in resources if one.custom_schema is not None]
            names = [one.resource.qualified_name for one in resources]
            raw = msgspec.json.encode((self._version, names, custom))
            digest = hashlib.blake2b(raw, digest_size=16).hexdigest().upper()
            paths[prefix] = {"serverRelativeURL": f"{_ROOT}/{prefix}?hash={digest}"}
        return {"paths": paths}

    def _document(self, resources: list[ServedResource]) -> JsonObject:
        schemas = PublishedSchemas()
        paths: JsonObject = {}
        for served in resources:
            resource = served.resource
            name = f"{resource.group or 'core'}.{resource.version}.{resource.kind}"
            reference = schemas.add(name, served.schema, _kind(resource))
            path = _object_path(resource)
            paths[path] = _operations(resource, reference)
            paths[path.removesuffix("/{name}")] = {"post": _operation(resource, "post", reference)}
        return {
            "openapi": "3.0.0",
            "info": {"title": "kubestow", "version": self._version},
            "paths": paths,
            "components": {"schemas": schemas.by_name},
        }


def _prefix(resource: ApiResource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else "api/v1"


def _object_path(resource: ApiResource) -> str:
    inside = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{_prefix(resource)}{inside}/{resource.plural}/{{name}}"


def _kind(resource: ApiResource) -> JsonObject:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _operations(resource: ApiResource, reference: str) -> JsonObject:
    any_object: JsonObject = {"schema": {"type": "object"}}
    patch = _operation(resource, "patch", reference)
    patch["requestBody"] = {"content": {type: any_object for type in _PATCH_TYPES}}
    return {
        "get": _operation(resource, "get", reference),
        "put": _operation(resource, "put", reference),
        "patch": patch,
    }


def _operation(resource: ApiResource, action: str, reference: str) -> JsonObject:
    content: JsonObject = {"application/json": {"schema": {"$ref": reference}}}
    operation: JsonObject = {
        "operationId": f"{action}{resource.kind}",
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(resource),
    }
    if action != "get":
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS
        ]
        operation["requestBody"] = {"content": content}
    return operation
