"""Documents of small clusters for tests of rebalancing."""

from typing import Any

from kubestow.api.files import Document
from kubestow.simulator.rebalance import RebalanceOptions, RebalancePlan, make_plan, read_goal

Raw = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"


def node(name: str, cpu: str = "4", labels: Raw | None = None, **spec: Any) -> Raw:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20", "example.com/gpu": "4"}
    metadata = {"name": name, "uid": name, "labels": {HOSTNAME: name, **(labels or {})}}
    status = {"capacity": amounts, "allocatable": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def owner(name: str, replicas: int, kind: str = "ReplicaSet", cpu: str = "1", **spec: Any) -> Raw:
    labels = {"app": name}
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"{kind}-{name}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            **spec,
        },
    }


def pod(
    name: str,
    on: str,
    cpu: str = "1",
    kind: str = "ReplicaSet",
    annotations: Raw | None = None,
    requests: Raw | None = None,
    **spec: Any,
) -> Raw:
    app = name.rpartition("-")[0]
    metadata: Raw = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    if annotations:
        metadata["annotations"] = annotations
    if kind:
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": app, "uid": f"{kind}-{app}"}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    container = {
        "name": "c",
        "image": "c",
        "resources": {"requests": {"cpu": cpu, **(requests or {})}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": on,
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "containers": [container],
            **spec,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def budget(app: str, **limit: Any) -> Raw:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default", "uid": f"budget-{app}"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **limit},
    }


def apart(app: str, skew: int = 1, when: str = "ScheduleAnyway") -> list[Raw]:
    """A spread constraint over nodes."""
    return [
        {
            "maxSkew": skew,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]


def documents(*raw: Raw) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def planned(goal: str, *raw: Raw, **options: Any) -> RebalancePlan:
    return make_plan(documents(*raw), read_goal(goal), RebalanceOptions(**options))


def moves(plan: RebalancePlan) -> list[tuple[str, str, str]]:
    """Pods, from which node, and to which."""
    return [(step.pod.name, step.node, step.to_node) for step in plan.steps if step.pod is not None]
