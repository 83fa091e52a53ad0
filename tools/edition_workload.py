"""A cluster and 200 mixed pods, for comparing older schedulers as services with simulations.

Nodes differ in size, zone, labels and taints, and pods in requests, selectors, affinity and
tolerations. Some pods fit nowhere. Pods are in the order of their names, in which an API server
lists them.
"""

from collections.abc import Iterator
from typing import Final

from kubestow.api.meta import JsonObject

NODE_COUNT: Final = 12
POD_COUNT: Final = 200


def older_nodes() -> list[JsonObject]:
    return [_node(index) for index in range(NODE_COUNT)]


def older_pods(count: int = POD_COUNT, *, prefers_nodes: bool = False) -> list[JsonObject]:
    """With `prefers_nodes` each pod prefers every node by another weight, so that v1.17 and v1.20,
    which choose at random among the best nodes, have one best node for each."""
    pods = [_pod(index) for index in range(count)]
    if prefers_nodes:
        for index, pod in enumerate(pods):
            affinity = pod["spec"].setdefault("affinity", {})
            affinity["nodeAffinity"] = {_PREFERRED: list(_preferences(index))}
    return pods


def _node(index: int) -> JsonObject:
    name = f"node-{index:02d}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
        "topology.kubernetes.io/region": "region",
        "disk": "ssd" if index % 4 == 0 else "hdd",
    }
    resources = {
        # Sizes without a common step, so that few nodes score the same.
        "cpu": f"{8000 + 1117 * index}m",
        "memory": f"{16384 + 1733 * index}Mi",
        "pods": "40",
    }
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if index == NODE_COUNT - 1 else {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(index: int) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{index:03d}",
            "namespace": "default",
            "labels": {"app": f"app-{index % 7}"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "pause", "resources": _resources(index)}],
            "terminationGracePeriodSeconds": 0,
            **_placement(index),
        },
    }


def _resources(index: int) -> JsonObject:
    if index % 40 == 39:
        return {"requests": {"cpu": "100"}}  # fits nowhere
    return {
        "requests": {"cpu": f"{100 + 17 * (index % 11)}m", "memory": f"{64 + 53 * (index % 13)}Mi"}
    }


def _placement(index: int) -> JsonObject:
    match index % 10:
        case 3:
            return {"nodeSelector": {"disk": "ssd"}}
        case 5:
            return {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
        case 7:
            return {"affinity": {"podAntiAffinity": {_REQUIRED: list(_terms(index))}}}
        case _:
            return {}


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _preferences(index: int) -> Iterator[JsonObject]:
    for node_index in range(NODE_COUNT):
        names = [f"node-{node_index:02d}"]
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": names}
        yield {
            # In the order of the nodes, begun elsewhere for each pod; the last weighs 100.
            "weight": 1 + 9 * ((node_index + 7 * index) % NODE_COUNT),
            "preference": {"matchExpressions": [expression]},
        }


def _terms(index: int) -> Iterator[JsonObject]:
    if index < 80:  # More pods than nodes would repel each other otherwise.
        yield {
            "labelSelector": {"matchLabels": {"app": f"app-{index % 7}"}},
            "topologyKey": "kubernetes.io/hostname",
        }
