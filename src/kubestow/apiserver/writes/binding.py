"""The binding subresource of a pod (spec 05 §12).

Binding is the most frequent write of a scheduler. The new document copies only the dicts on the
changed path, and the new typed pod is derived from the old one instead of being converted again.

Invariant: the typed pod is what the document would convert to.
"""

import msgspec

from kubestow.api.meta import Condition, JsonObject, ObjectMeta
from kubestow.api.pod import Pod, PodStatus
from kubestow.apiserver.refusals import conflict, precondition_failed
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import whole_seconds, whole_seconds_at
from kubestow.cluster.resources import PODS

POD_SCHEDULED = "PodScheduled"


def bound(
    stored: StoredObject, node_name: str, *, uid: str, version: int, now_ns: int
) -> StoredObject:
    """The pod after a binding; ConflictError if it may not be bound."""
    pod = stored.typed
    assert isinstance(pod, Pod)
    _require_bindable(pod, uid)
    document = _bound_document(stored.document, node_name, version, now_ns)
    typed = _bound_pod(pod, node_name, version, now_ns)
    return StoredObject(PODS, document, version, typed, stored.key)


def _require_bindable(pod: Pod, uid: str) -> None:
    metadata, spec = pod.metadata, pod.spec
    name = metadata.name
    if uid and uid != metadata.uid:
        raise precondition_failed(
            PODS, name, field="UID", given=uid, found=metadata.uid, subresource="binding"
        )
    detail = ""
    if metadata.deletion_timestamp is not None:
        detail = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.node_name:
        detail = f'pod {name} is already assigned to node "{spec.node_name}"'
    elif spec.scheduling_gates:
        detail = f"pod {name} has non-empty .spec.schedulingGates"
    if detail:
        raise conflict(PODS, name, detail, "binding")


def _bound_document(document: JsonObject, node_name: str, version: int, now_ns: int) -> JsonObject:
    metadata: JsonObject = document["metadata"]
    status: JsonObject = document.get("status") or {}
    condition: JsonObject = {
        "type": POD_SCHEDULED,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": whole_seconds(now_ns),
    }
    if generation := metadata.get("generation"):
        condition["observedGeneration"] = generation
    conditions: list[JsonObject] = status.get("conditions") or []
    new_status = {**status, "conditions": _with_condition(conditions, condition)}
    new_status.pop("nominatedNodeName", None)
    return {
        **document,
        "metadata": {**metadata, "resourceVersion": str(version)},
        "spec": {**(document.get("spec") or {}), "nodeName": node_name},
        "status": new_status,
    }


def _with_condition(conditions: list[JsonObject], condition: JsonObject) -> list[JsonObject]:
    for index, old in enumerate(conditions):
        if old.get("type") == POD_SCHEDULED:
            return [*conditions[:index], condition, *conditions[index + 1 :]]
    return [*conditions, condition]


def _bound_pod(pod: Pod, node_name: str, version: int, now_ns: int) -> Pod:
    replace = msgspec.structs.replace
    metadata: ObjectMeta = replace(pod.metadata, resource_version=str(version))
    condition = Condition(
        type=POD_SCHEDULED,
        status="True",
        observed_generation=metadata.generation,
        last_transition_time=whole_seconds_at(now_ns),
    )
    conditions = pod.status.conditions
    for index, old in enumerate(conditions):
        if old.type == POD_SCHEDULED:
            conditions = (*conditions[:index], condition, *conditions[index + 1 :])
            break
    else:
        conditions = (*conditions, condition)
    status: PodStatus = replace(pod.status, conditions=conditions, nominated_node_name="")
    spec = replace(pod.spec, node_name=node_name)
    return replace(pod, metadata=metadata, spec=spec, status=status)
