"""The binding subresource of a pod (spec 05 §12).

Binding is the most frequent write of a scheduler. The new typed pod is derived from the old one.
The new document, which copies only the dicts on the changed path, is made when it is read.

Invariant: the typed pod is what the document would convert to.
"""

import msgspec

from kubestow.api.meta import Condition, JsonObject
from kubestow.api.pod import Pod, PodStatus
from kubestow.apiserver.refusals import conflict, invalid, precondition_failed
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes.names import subdomain_problem
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
    return stored.edited(
        version,
        _Bound(node_name, now_ns),
        spec=msgspec.structs.replace(pod.spec, node_name=node_name),
        status=_bound_status(pod, now_ns),
    )


def require_node_name(pod_name: str, node_name: str) -> None:
    """InvalidError unless the target of a binding can be the name of a node (v1.37)."""
    problem = subdomain_problem(node_name)
    if problem is not None:
        detail = f'target.name: Invalid value: "{node_name}": {problem}'
        raise invalid("Binding", pod_name, [detail])


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


class _Bound:
    """The edit of a pod that is bound.

    It is kept as long as the pod: a function with what it refers to would be more objects.
    """

    __slots__ = ("_node_name", "_now_ns")

    def __init__(self, node_name: str, now_ns: int) -> None:
        self._node_name = node_name
        self._now_ns = now_ns

    def __call__(self, document: JsonObject) -> JsonObject:
        return _bound_document(document, self._node_name, self._now_ns)


def _bound_document(document: JsonObject, node_name: str, now_ns: int) -> JsonObject:
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
        "spec": {**(document.get("spec") or {}), "nodeName": node_name},
        "status": new_status,
    }


def _with_condition(conditions: list[JsonObject], condition: JsonObject) -> list[JsonObject]:
    for index, old in enumerate(conditions):
        if old.get("type") == POD_SCHEDULED:
            return [*conditions[:index], condition, *conditions[index + 1 :]]
    return [*conditions, condition]


def _bound_status(pod: Pod, now_ns: int) -> PodStatus:
    condition = Condition(
        type=POD_SCHEDULED,
        status="True",
        observed_generation=pod.metadata.generation,
        last_transition_time=whole_seconds_at(now_ns),
    )
    conditions = pod.status.conditions
    for index, old in enumerate(conditions):
        if old.type == POD_SCHEDULED:
            conditions = (*conditions[:index], condition, *conditions[index + 1 :])
            break
    else:
        conditions = (*conditions, condition)
    return msgspec.structs.replace(pod.status, conditions=conditions, nominated_node_name="")
