"""How an object is deleted: at once, after its grace period, or after its finalizers.

    stored ──delete──► terminating (deletionTimestamp set) ──┬─ kubelet ends it, grace 0 ──► gone
       │                                                     └─ last finalizer removed ───► gone
       └──delete, nothing to wait for──────────────────────────────────────────────────────► gone

Pure: computes what is left of a document; `memory` does the writing.
"""

from datetime import datetime, timedelta

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, is_terminal
from kubestow.clock import NANOSECONDS
from kubestow.cluster.documents import as_list, as_object, value_at, whole_seconds
from kubestow.cluster.resources import PODS, ApiResource


def after_delete(
    resource: ApiResource,
    document: JsonObject,
    *,
    grace_period_s: int | None,
    now_ns: int,
    finalizer: str = "",
    is_held: bool = False,
) -> JsonObject | None:
    """The document after a delete request: None if the object is removed at once.

    The same document is returned if the request changes nothing, as is usual for a second one.
    `finalizer` is added to the object by this request; `is_held`: something besides finalizers
    keeps the object.
    """
    metadata = as_object(document.get("metadata"))
    finalizers = as_list(metadata.get("finalizers"))
    if finalizer and finalizer not in finalizers:
        finalizers = [*finalizers, finalizer]
        metadata: JsonObject = {**metadata, "finalizers": finalizers}
        document = {**document, "metadata": metadata}
    grace_s = _grace_s(resource, document, grace_period_s)
    if grace_s == 0 and not finalizers and not is_held:
        return None
    if "deletionTimestamp" not in metadata:
        return _marked(document, metadata, grace_s, now_ns)
    current_s: int = metadata.get("deletionGracePeriodSeconds") or 0
    if grace_s >= current_s:
        return document
    return _shortened(document, metadata, current_s, grace_s)


def is_removed_at_once(pod: Pod, grace_period_s: int | None) -> bool:
    """Whether `after_delete` of the pod's document would be None, without making the document."""
    if pod.metadata.finalizers:
        return False
    if not pod.spec.node_name or is_terminal(pod):
        return True
    return grace_period_s == 0


def is_finished(metadata: JsonObject) -> bool:
    """Whether a terminating object has nothing left to wait for."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _grace_s(resource: ApiResource, document: JsonObject, requested_s: int | None) -> int:
    """Only a pod that a kubelet may be running has a grace period."""
    if resource is not PODS or not value_at(document, "spec", "nodeName"):
        return 0
    if value_at(document, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    if requested_s is None:
        own_s: int | None = value_at(document, "spec", "terminationGracePeriodSeconds")
        requested_s = own_s or 0
    return requested_s if requested_s >= 0 else 1


def _marked(document: JsonObject, metadata: JsonObject, grace_s: int, now_ns: int) -> JsonObject:
    marked = {
        **metadata,
        "deletionTimestamp": whole_seconds(now_ns + grace_s * NANOSECONDS),
        "deletionGracePeriodSeconds": grace_s,
    }
    # Deletion changes the desired state of the object, as a change of its spec would.
    if generation := metadata.get("generation"):
        marked["generation"] = generation + 1
    return {**document, "metadata": marked}


def _shortened(
    document: JsonObject, metadata: JsonObject, current_s: int, grace_s: int
) -> JsonObject:
    ends_at = datetime.fromisoformat(metadata["deletionTimestamp"])
    ends_at -= timedelta(seconds=current_s - grace_s)
    shortened = {
        **metadata,
        "deletionTimestamp": ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "deletionGracePeriodSeconds": grace_s,
    }
    return {**document, "metadata": shortened}
