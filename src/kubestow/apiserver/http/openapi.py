"""As much OpenAPI as kubectl needs: which parameters a write accepts.

kubectl reads it before it sends `fieldValidation` or `dryRun`, and looks for both at the PATCH of
the kind. Schemas are not published: kubectl then uses its built-in merge keys, which are right for
the kinds served here, and `kubectl explain` shows nothing.
"""

import hashlib
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.served import ServedTable
from kubestow.apiserver.refusals import no_such_resource
from kubestow.cluster.resources import ApiResource

_ROOT: Final = "/openapi/v3"
_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
# Strategic merge patches are accepted too. They are left out because with them kubectl would look
# for the merge keys in the schema.
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

    def _group_versions(self) -> dict[str, list[ApiResource]]:
        found: dict[str, list[ApiResource]] = {}
        for served in self._served:
            resource = served.resource
            found.setdefault(_prefix(resource), []).append(resource)
        return found

    def _index(self) -> JsonObject:
        paths: JsonObject = {}
        for prefix, resources in self._group_versions().items():
            raw = msgspec.json.encode(self._document(resources))
            digest = hashlib.blake2b(raw, digest_size=16).hexdigest().upper()
            # Clients keep a document as long as its address stays the same.
            paths[prefix] = {"serverRelativeURL": f"{_ROOT}/{prefix}?hash={digest}"}
        return {"paths": paths}

    def _document(self, resources: list[ApiResource]) -> JsonObject:
        return {
            "openapi": "3.0.0",
            "info": {"title": "kubestow", "version": self._version},
            "paths": {_object_path(resource): _operations(resource) for resource in resources},
            "components": {"schemas": {}},
        }


def _prefix(resource: ApiResource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else "api/v1"


def _object_path(resource: ApiResource) -> str:
    inside = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{_prefix(resource)}{inside}/{resource.plural}/{{name}}"


def _operations(resource: ApiResource) -> JsonObject:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    any_object: JsonObject = {"schema": {"type": "object"}}
    return {
        "patch": {
            "operationId": f"patch{resource.kind}",
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS
            ],
            "requestBody": {"content": {type: any_object for type in _PATCH_TYPES}},
            "responses": {
                "200": {"description": "OK", "content": {"application/json": any_object}}
            },
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
        }
    }
