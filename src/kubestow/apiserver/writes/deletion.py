"""How an object goes: at once, after its grace period, or when its finalizers are done.

    stored ──delete──► terminating (deletionTimestamp set) ──┬─ kubelet ends it, grace 0 ──► gone
       │                                                     └─ last finalizer removed ───► gone
       └──delete, nothing to wait for──────────────────────────────────────────────────────► gone

Pure: decides from the document what is left of it; `memory` does the writing.
"""

from datetime import datetime, timedelta

from kubestow.api.meta import JsonObject
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
    """What a delete request leaves: None if the object goes at once.

    The same document comes back if the request changes nothing, as a second one usually does.
    `finalizer` is put on the object by this request; `is_held` says that something besides
    finalizers keeps it.
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
    return _hurried(document, metadata, current_s, grace_s)


def is_finished(metadata: JsonObject) -> bool:
    """Whether a terminating object has nothing left to wait for."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _grace_s(resource: ApiResource, document: JsonObject, requested_s: int | None) -> int:
    """Only a pod that a kubelet may be running gets time to end."""
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
    # Being deleted changes what is wanted of the object, as a change of its spec would.
    if generation := metadata.get("generation"):
        marked["generation"] = generation + 1
    return {**document, "metadata": marked}


def _hurried(
    document: JsonObject, metadata: JsonObject, current_s: int, grace_s: int
) -> JsonObject:
    ends_at = datetime.fromisoformat(metadata["deletionTimestamp"])
    ends_at -= timedelta(seconds=current_s - grace_s)
    hurried = {
        **metadata,
        "deletionTimestamp": ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "deletionGracePeriodSeconds": grace_s,
    }
    return {**document, "metadata": hurried}
