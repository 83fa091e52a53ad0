"""States of pods that controllers read, and pods from a template.

Pure functions of documents. Not here: when to create a pod (`replica_set`, `job`).
"""

from collections.abc import Iterable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, is_terminal
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object, objects_in, replaced_at, seconds_of, value_at
from kubestow.simulator.controllers.owner_controller import owner_reference

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_RANK: Final = {"Pending": 0, "Unknown": 1}


def is_terminating(pod: StoredObject) -> bool:
    return pod.typed.metadata.deletion_timestamp is not None


def is_finished(pod: StoredObject) -> bool:
    return is_terminal(typed_pod(pod))


def typed_pod(pod: StoredObject) -> Pod:
    typed = pod.typed
    assert isinstance(typed, Pod), typed
    return typed


def labels_of(pod: StoredObject) -> JsonObject:
    return as_object(pod.metadata.get("labels"))


def is_active(pod: StoredObject) -> bool:
    """Whether the pod counts towards its owner's replicas."""
    return not is_terminating(pod) and not is_finished(pod)


def ready_since_s(pod: StoredObject) -> float | None:
    """When the pod became ready; None if it is not."""
    for condition in objects_in(value_at(pod.document, "status", "conditions")):
        if condition.get("type") == "Ready":
            if condition.get("status") != "True":
                return None
            return seconds_of(condition.get("lastTransitionTime")) or 0.0
    return None


def with_condition(pod: JsonObject, condition: JsonObject) -> JsonObject:
    """The pod's document with a condition added or replaced, by its type.

    The time of the last transition changes with the condition's status only.
    """
    before = objects_in(value_at(pod, "status", "conditions"))
    conditions: list[JsonObject] = []
    for known in before:
        if known.get("type") != condition["type"]:
            conditions.append(known)
        elif known.get("status") == condition["status"]:
            time = known.get("lastTransitionTime")
            condition = {**condition, "lastTransitionTime": time}
    return replaced_at(pod, ("status", "conditions"), [*conditions, condition])


def pod_from_template(
    owner: StoredObject,
    template: JsonObject,
    *,
    prefix: str = "",
    metadata: JsonObject | None = None,
) -> JsonObject:
    """A pod from its owner's template, to be created under a generated name."""
    given = as_object(template.get("metadata"))
    own: JsonObject = {
        key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **own,
            **(metadata or {}),
            "generateName": prefix or f"{owner.name}-",
            "namespace": owner.key[0],
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": as_object(template.get("spec")),
    }


def first_to_delete(pods: Iterable[StoredObject], count: int) -> list[StoredObject]:
    """The pods to delete first: waiting, then low deletion cost, then crowded nodes, then young."""
    pods = list(pods)
    on_node: dict[str, int] = {}
    for pod in pods:
        node: str = value_at(pod.document, "spec", "nodeName") or ""
        on_node[node] = on_node.get(node, 0) + 1
    return sorted(pods, key=lambda pod: _rank(pod, on_node))[:count]


def _rank(pod: StoredObject, on_node: dict[str, int]) -> tuple[object, ...]:
    node: str = value_at(pod.document, "spec", "nodeName") or ""
    phase = value_at(pod.document, "status", "phase")
    ready_s = ready_since_s(pod)
    return (
        bool(node),
        _PHASE_RANK.get(phase, 2),
        ready_s is not None,
        _deletion_cost(pod),
        # First those on a node with many of the pods.
        -on_node[node] if node else 0,
        -(ready_s or 0.0),
        -(seconds_of(pod.metadata.get("creationTimestamp")) or 0.0),
        pod.name,
    )


def _deletion_cost(pod: StoredObject) -> int:
    text = as_object(pod.metadata.get("annotations")).get(DELETION_COST, "0")
    return int(text) if text.removeprefix("-").isdecimal() else 0
