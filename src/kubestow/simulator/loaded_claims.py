"""Claims and volumes that were read from another cluster, together with what refers to them.

New objects get UIDs when they are created here, so references to them have to follow: otherwise the
pods of a claim, or the claim of a volume, would seem to have been replaced. Claims would be taken
back, and volumes released. An object that keeps its UID is referred to as it was.
"""

from collections.abc import Set

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    ApiResource,
)

# A volume in one of these phases was bound to a claim that is gone, also if one has its name now.
_ENDED = ("Released", "Failed")


def relink_claims(store: MemoryCluster, standing: Set[str] = frozenset()) -> None:
    """Let claims refer to the pods, and volumes to the claims, of the names they refer to.

    `standing` are UIDs of objects that kept theirs.
    """
    for resource in (RESOURCE_CLAIMS, PERSISTENT_VOLUME_CLAIMS):
        for stored in list(store.objects_of(resource)):
            _replace(store, stored, _with_pods(store, stored, standing))
    for stored in list(store.objects_of(PERSISTENT_VOLUMES)):
        _replace(store, stored, _with_claim(store, stored.document, standing))


def _with_pods(store: MemoryCluster, claim: StoredObject, standing: Set[str]) -> JsonObject:
    document = claim.document
    for path, kind_field, kind in (
        (("metadata", "ownerReferences"), "kind", "Pod"),
        (("status", "reservedFor"), "resource", "pods"),
    ):
        references = objects_in(value_at(document, *path))
        linked = [
            _linked(store, PODS, claim.key[0], each, standing)
            if each.get(kind_field) == kind
            else each
            for each in references
        ]
        if linked != references:
            document = replaced_at(document, path, linked)
    return document


def _with_claim(store: MemoryCluster, volume: JsonObject, standing: Set[str]) -> JsonObject:
    path = ("spec", "claimRef")
    reference = as_object(value_at(volume, *path))
    # Without a UID it is reserved for any claim of that name.
    if not reference.get("uid") or value_at(volume, "status", "phase") in _ENDED:
        return volume
    namespace: str = reference.get("namespace") or ""
    claim = store.find(PERSISTENT_VOLUME_CLAIMS, namespace, reference.get("name") or "")
    bound_to = None if claim is None else value_at(claim.document, "spec", "volumeName")
    if bound_to and bound_to != volume["metadata"]["name"]:
        return volume
    linked = _linked(store, PERSISTENT_VOLUME_CLAIMS, namespace, reference, standing)
    return volume if linked == reference else replaced_at(volume, path, linked)


def _linked(
    store: MemoryCluster,
    resource: ApiResource,
    namespace: str,
    reference: JsonObject,
    standing: Set[str],
) -> JsonObject:
    found = store.find(resource, namespace, reference.get("name") or "")
    if found is None or found.uid in standing:
        return reference
    return {**reference, "uid": found.uid}


def _replace(store: MemoryCluster, stored: StoredObject, document: JsonObject) -> None:
    if document is not stored.document:
        store.replace(stored.resource, document)
