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


def older_pods(count: int = POD_COUNT, *, scheduler_name: str = "") -> list[JsonObject]:
    return [_pod(index, scheduler_name) for index in range(count)]


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


def _pod(index: int, scheduler_name: str) -> JsonObject:
    spec: JsonObject = {
        "containers": [{"name": "main", "image": "pause", "resources": _resources(index)}],
        **_placement(index),
    }
    if scheduler_name:
        spec["schedulerName"] = scheduler_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{index:03d}",
            "namespace": "default",
            "labels": {"app": f"app-{index % 7}"},
        },
        "spec": spec,
    }


def _resources(index: int) -> JsonObject:
    if index % 40 == 39:
        return {"requests": {"cpu": "100"}}  # fits nowhere
    return {
        "requests": {"cpu": f"{100 + 37 * (index % 11)}m", "memory": f"{64 + 53 * (index % 13)}Mi"}
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


def _terms(index: int) -> Iterator[JsonObject]:
    if index < 80:  # More pods than nodes would repel each other otherwise.
        yield {
            "labelSelector": {"matchLabels": {"app": f"app-{index % 7}"}},
            "topologyKey": "kubernetes.io/hostname",
        }
