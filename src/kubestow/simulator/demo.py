"""The scenes of the demo: a small cluster and a mixed workload.

Three zones of nodes, web servers that spread, caches that avoid each other, batch jobs that fill
the rest, a database that fits on no node, jobs that wait for a disk no node has yet, and urgent
pods that preempt others. Everything is made of ordinary objects, so `scenes` can be read as
manifests.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject

ZONES: Final = ("zone-a", "zone-b", "zone-c")
NODES_PER_ZONE: Final = 3
NAMESPACE: Final = "demo"


class Scene(NamedTuple):
    """The objects created at one time."""

    at_s: float
    title: str
    documents: Sequence[JsonObject]


def scenes() -> list[Scene]:
    return [
        Scene(0, "nine nodes in three zones, and one with a GPU", _cluster()),
        Scene(
            1,
            "web servers spread over the zones, caches keep apart, batch fills the rest",
            [*_web(), *_cache(), *_batch()],
        ),
        Scene(
            4,
            "a database too large for any node, and jobs that need an NVMe disk",
            [*_database(), *_scratch()],
        ),
        Scene(8, "training needs the GPU, whose taint only it tolerates", _training()),
        Scene(12, "urgent pods preempt less important ones", _urgent()),
        Scene(20, "a node with NVMe arrives: the jobs that waited for it run", [_nvme_node()]),
    ]


def _cluster() -> list[JsonObject]:
    documents: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _priority_class("batch", -10),
        _priority_class("urgent", 1000),
    ]
    for index in range(len(ZONES) * NODES_PER_ZONE):
        zone = ZONES[index % len(ZONES)]
        documents.append(_node(f"{zone}-{index // len(ZONES)}", zone))
    gpu = _node("gpu-0", ZONES[0], {"nvidia.com/gpu": "4"})
    gpu["spec"] = {"taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]}
    return [*documents, gpu]


def _nvme_node() -> JsonObject:
    return _node("zone-b-nvme", "zone-b", labels={"disk": "nvme"})


def _web() -> list[JsonObject]:
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return _pods("web", 9, cpu="500m", memory="512Mi", spec={"topologySpreadConstraints": [spread]})


def _cache() -> list[JsonObject]:
    term = {
        "labelSelector": {"matchLabels": {"app": "cache"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    anti_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return _pods(
        "cache",
        6,
        cpu="250m",
        memory="2Gi",
        spec={"affinity": {"podAntiAffinity": anti_affinity}},
    )


def _batch() -> list[JsonObject]:
    return _pods("batch", 26, cpu="1", memory="1Gi", spec={"priorityClassName": "batch"})


def _database() -> list[JsonObject]:
    return _pods("database", 1, cpu="6", memory="24Gi")


def _scratch() -> list[JsonObject]:
    return _pods("scratch", 2, cpu="500m", memory="1Gi", spec={"nodeSelector": {"disk": "nvme"}})


def _training() -> list[JsonObject]:
    toleration = {"key": "gpu", "operator": "Exists"}
    return _pods(
        "training",
        2,
        cpu="1",
        memory="4Gi",
        resources={"nvidia.com/gpu": "1"},
        spec={"tolerations": [toleration]},
    )


def _urgent() -> list[JsonObject]:
    return _pods("urgent", 3, cpu="2", memory="2Gi", spec={"priorityClassName": "urgent"})


def _node(
    name: str,
    zone: str,
    resources: Mapping[str, str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
) -> JsonObject:
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110", **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": zone,
                **(labels or {}),
            },
        },
        "status": {
            "capacity": capacity,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _priority_class(name: str, value: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _pods(
    app: str,
    count: int,
    *,
    cpu: str,
    memory: str,
    resources: Mapping[str, str] | None = None,
    spec: JsonObject | None = None,
) -> list[JsonObject]:
    requests = {"cpu": cpu, "memory": memory, **(resources or {})}
    container = {
        "name": "main",
        "image": f"registry.example/{app}:v1",
        "resources": {"requests": requests, "limits": dict(resources or {})},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{app}-{i}", "namespace": NAMESPACE, "labels": {"app": app}},
            "spec": {
                "containers": [container],
                "terminationGracePeriodSeconds": 2,
                **(spec or {}),
            },
        }
        for i in range(count)
    ]
