"""What plans of evictions cost in a large cluster, from its documents on."""

import gc
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock, process_cpu_s
from kubestow.simulator.bench.measure import peak_memory_mib
from kubestow.simulator.rebalance import RebalanceOptions, make_plan, read_goal

GOALS: Final = (
    "balance",
    "spread",
    "empty-nodes",
    "defragment=cpu:62",
    "violations",
    "spread + 10 * balance",
)
# One node of this many has a taint, which came after its pods.
TAINTED: Final = 25
PODS_PER_WORKLOAD: Final = 50
ZONES: Final = 3
_TIME_LIMIT_S: Final = 600.0


class RebalanceTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Seconds on the clock and of CPU time, the reading of the documents included."""

    goal: str
    nodes: int
    pods: int
    moves: int
    trials: int
    figure_before: float
    figure_after: float
    total_s: float
    cpu_s: float
    peak_memory_mib: float


def measure_rebalancing(nodes: int, pods: int, moves: int) -> Iterator[RebalanceTimes]:
    """A plan for each goal."""
    documents = [Document(raw, "bench") for raw in _documents(nodes, pods)]
    clock = SystemClock()
    for goal in GOALS:
        # The plan before it would count as memory of this one.
        gc.collect()
        started_s, cpu_s = clock.monotonic_s(), process_cpu_s()
        options = RebalanceOptions(max_moves=moves, time_limit_s=_TIME_LIMIT_S)
        plan = make_plan(documents, read_goal(goal), options, clock=clock)
        yield RebalanceTimes(
            goal=goal,
            nodes=nodes,
            pods=pods,
            moves=plan.moves,
            trials=plan.trials,
            figure_before=plan.figure_before,
            figure_after=plan.figure_after,
            total_s=clock.monotonic_s() - started_s,
            cpu_s=process_cpu_s() - cpu_s,
            peak_memory_mib=peak_memory_mib(),
        )


def _documents(nodes: int, pods: int) -> Iterator[JsonObject]:
    rng = np.random.default_rng(1)
    # The first nodes have more pods than the last ones.
    rows = np.minimum((rng.beta(1, 2, pods) * nodes).astype(np.int64), nodes - 1)
    workloads = -(-pods // PODS_PER_WORKLOAD)
    sizes = rng.integers(1, 5, workloads)
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    for index in range(nodes):
        name = f"node-{index}"
        labels = {"kubernetes.io/hostname": name}
        labels["topology.kubernetes.io/zone"] = f"zone-{index % ZONES}"
        metadata = {"name": name, "uid": name, "labels": labels}
        status = {"capacity": amounts, "allocatable": amounts}
        taints = [] if index % TAINTED else [{"key": "leaving", "effect": "NoSchedule"}]
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "spec": {"taints": taints},
            "status": status,
        }
    counts = np.bincount(np.arange(pods) // PODS_PER_WORKLOAD, minlength=workloads)
    for number in range(workloads):
        yield _owner(f"app-{number}", int(counts[number]))
    for index in range(pods):
        number = index // PODS_PER_WORKLOAD
        yield _pod(index, f"app-{number}", f"node-{rows[index]}", int(sizes[number]))


def _owner(name: str, replicas: int) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def _pod(index: int, app: str, node: str, size: int) -> JsonObject:
    name = f"{app}-{index}"
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app}
    requests = {"cpu": f"{250 * size}m", "memory": f"{size}Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": app},
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
