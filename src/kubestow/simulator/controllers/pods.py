"""What controllers ask of pods, and how they make them of a template.

Pure functions of documents. Not here: when a pod is wanted (`replica_set`, `job`).
"""

from collections.abc import Iterable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object, objects_in, seconds_of, value_at
from kubestow.simulator.controllers.owner_controller import owner_reference

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_TERMINAL: Final = ("Succeeded", "Failed")
_PHASE_RANK: Final = {"Pending": 0, "Unknown": 1}


def is_terminating(pod: StoredObject) -> bool:
    return "deletionTimestamp" in pod.metadata


def is_finished(pod: StoredObject) -> bool:
    return value_at(pod.document, "status", "phase") in _TERMINAL


def is_active(pod: StoredObject) -> bool:
    """Whether the pod counts towards what its owner wants."""
    return not is_terminating(pod) and not is_finished(pod)


def ready_since_s(pod: StoredObject) -> float | None:
    """When the pod became ready; None if it is not."""
    for condition in objects_in(value_at(pod.document, "status", "conditions")):
        if condition.get("type") == "Ready":
            if condition.get("status") != "True":
                return None
            return seconds_of(condition.get("lastTransitionTime")) or 0.0
    return None


def pod_from_template(
    owner: StoredObject,
    template: JsonObject,
    *,
    prefix: str = "",
    metadata: JsonObject | None = None,
) -> JsonObject:
    """A pod as its owner's template describes it, to be created under a generated name."""
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


def least_missed(pods: Iterable[StoredObject], count: int) -> list[StoredObject]:
    """The pods to give up first: waiting before running, cheap before dear, young before old."""
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
        # On a node that has several of them, one is missed less.
        -on_node[node] if node else 0,
        -(ready_s or 0.0),
        -(seconds_of(pod.metadata.get("creationTimestamp")) or 0.0),
        pod.name,
    )


def _deletion_cost(pod: StoredObject) -> int:
    text = as_object(pod.metadata.get("annotations")).get(DELETION_COST, "0")
    return int(text) if text.removeprefix("-").isdecimal() else 0
