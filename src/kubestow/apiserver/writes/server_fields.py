"""Which parts of an object a write may change, and which only the server.

Pure: documents in, documents out.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import modified, precondition_failed
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object

# Metadata of the server: a write neither sets nor removes it.
SERVER_FIELDS: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def require_same(stored: StoredObject, *, uid: str, resource_version: str) -> None:
    """ConflictError unless the object has the UID and the version in the request."""
    if uid and uid != stored.uid:
        raise precondition_failed(
            stored.resource, stored.name, field="UID", given=uid, found=stored.uid
        )
    if resource_version and resource_version != str(stored.version):
        raise modified(stored.resource, stored.name)


def has_other_content(old: StoredObject, new: JsonObject) -> bool:
    """Whether anything differs besides metadata, and status where controllers write it."""
    ignored = ("metadata", "status") if old.resource.has_status else ("metadata",)
    before = old.document
    return any(
        new.get(field) != before.get(field)
        for field in new.keys() | before.keys()
        if field not in ignored
    )


def with_server_parts(old: StoredObject, wanted: JsonObject) -> JsonObject:
    """The wanted document with everything in it that only the server may change."""
    fixed = ("name", "namespace", *SERVER_FIELDS)
    given = {
        key: value
        for key, value in as_object(wanted.get("metadata")).items()
        if key not in fixed and value is not None
    }
    document = {
        **wanted,
        "apiVersion": old.document["apiVersion"],
        "kind": old.document["kind"],
        "metadata": {key: old.metadata[key] for key in fixed if key in old.metadata} | given,
    }
    if old.resource.has_status:
        document.pop("status", None)
        if "status" in old.document:
            document["status"] = old.document["status"]
    return document
