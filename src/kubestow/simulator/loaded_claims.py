"""Claims that were read from another cluster, together with the pods that use them.

Pods get new UIDs when they are created here, so the references of their claims have to follow:
otherwise the pods would seem to have been replaced, and their claims would be taken back.
"""

from kubestow.api.device import ResourceClaim
from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.documents import objects_in, replaced_at, value_at
from kubestow.cluster.resources import PODS, RESOURCE_CLAIMS


def relink_claims(store: MemoryCluster) -> None:
    """Let claims refer to the pods that have the names they refer to."""
    for stored in list(store.objects_of(RESOURCE_CLAIMS)):
        claim = stored.typed
        if not isinstance(claim, ResourceClaim):
            continue
        document = stored.document
        for path, kind_field, kind in (
            (("metadata", "ownerReferences"), "kind", "Pod"),
            (("status", "reservedFor"), "resource", "pods"),
        ):
            references = objects_in(value_at(document, *path))
            linked = [
                _linked(store, claim.metadata.namespace, each)
                if each.get(kind_field) == kind
                else each
                for each in references
            ]
            if linked != references:
                document = replaced_at(document, path, linked)
        if document is not stored.document:
            store.replace(RESOURCE_CLAIMS, document)


def _linked(store: MemoryCluster, namespace: str, reference: JsonObject) -> JsonObject:
    pod = store.find(PODS, namespace, reference.get("name") or "")
    return reference if pod is None else {**reference, "uid": pod.uid}
