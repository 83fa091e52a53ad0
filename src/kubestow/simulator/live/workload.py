"""The living workload of the demo: deployments that grow and shrink, jobs that come and end.

It acts as users of a cluster do, by creating and scaling objects; controllers, scheduler and
kubelets do the rest. With the same seed and speed it does the same again.

The workload grows with the nodes: about half of any cluster is used. How much changes in a second
grows with it only up to a limit, so that a large cluster can be followed on one core; jobs of a
cluster beyond it run longer instead, and some are there from the beginning.
"""

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.api.quantity import parse_quantity
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.documents import value_at
from kubestow.errors import ApiError
from kubestow.simulator.defaults import NODE_COUNT
from kubestow.simulator.live.templates import (
    BATCH,
    GPU,
    GPU_TAINT,
    NAMESPACE,
    TEMPLATES,
    URGENT,
    TemplateChoice,
    pod_metadata,
    pod_spec,
)
from kubestow.simulator.node_shapes import NodeShape, node_document

STEP_S: Final = 2.0
# The web servers follow the time of day, which is short here.
DAY_S: Final = 120.0
# Numbers for the cluster of `first_nodes`.
WEB_REPLICAS: Final = 9
WEB_SWING: Final = 5
CACHE_REPLICAS: Final = 6
# Of each job: how many pods, and for how many seconds; from, and up to but without.
BATCH_PODS: Final = (1, 4)
BATCH_S: Final = (10, 30)
TRAINING_PODS: Final = 2
TRAINING_S: Final = 20.0
# What its nodes have: the GPUs, and of the others all that any pod may use.
_GPUS: Final = 4
_CPU_MILLI: Final = 48_000
_MEMORY_BYTES: Final = 192 << 30
URGENT_EVERY: Final = 20
TRAINING_EVERY: Final = 12
# How much more may change in a second than in the cluster of `first_nodes`.
CHURN_MAX: Final = 10.0
# Jobs that a large cluster begins with; each ends at another time.
_FIRST_JOBS: Final = 10
# How long a job is there after its end.
_TTL_S: Final = 5
_ZONES: Final = 3
_POOLS: Final = ("usual", "usual", "large")
# Of this many nodes one has GPUs.
_NODES_PER_GPU: Final = 10


def first_nodes(count: int = NODE_COUNT) -> list[JsonObject]:
    """Nodes in three zones and three pools: of ten, six are usual, three large, one has GPUs."""
    gpu_count = max(count // _NODES_PER_GPU, 1) if count > 1 else 0
    documents: list[JsonObject] = []
    for index in range(count - gpu_count):
        pool = _POOLS[index // _ZONES % len(_POOLS)]
        capacity = {"cpu": "8", "memory": "32Gi"} if pool == "large" else {}
        shape = NodeShape(capacity=capacity, labels={"pool": pool})
        documents.append(node_document(f"node-{index}", index, shape))
    for index in range(gpu_count):
        shape = NodeShape(capacity={GPU: str(_GPUS)}, labels={"pool": "gpu"})
        gpu = node_document(f"gpu-{index}", index, shape)
        gpu["spec"] = {"taints": [{"key": GPU_TAINT, "value": "only", "effect": "NoSchedule"}]}
        documents.append(gpu)
    return documents


class WorkloadSize(NamedTuple):
    """How large the workload is to be, in multiples of that for `first_nodes`.

    usual   of what any pod may use
    gpu     of GPUs; 0 without any
    nodes   how many nodes any pod may use
    """

    usual: float
    gpu: float
    nodes: int


def size_for(nodes: Iterable[JsonObject]) -> WorkloadSize:
    """The workload that uses about half of these nodes."""
    cpu_milli = memory_bytes = gpus = count = 0
    for node in nodes:
        capacity = node["status"]["capacity"]
        gpus += parse_quantity(capacity.get(GPU, "0")).value()
        if not value_at(node, "spec", "taints"):
            cpu_milli += parse_quantity(capacity["cpu"]).milli_value()
            memory_bytes += parse_quantity(capacity["memory"]).value()
            count += 1
    usual = min(cpu_milli / _CPU_MILLI, memory_bytes / _MEMORY_BYTES)
    # Without nodes, pods wait for those that are added by hand.
    return WorkloadSize(usual or 1.0, gpus / _GPUS, count)


def first_objects(size: WorkloadSize) -> list[JsonObject]:
    """The namespace, the priorities and the services that are there from the beginning."""
    cache_count = max(min(round(CACHE_REPLICAS * size.usual), size.nodes), 1)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _priority_class(BATCH, -10),
        _priority_class(URGENT, 1000),
        _deployment("web", max(round(WEB_REPLICAS * size.usual), 1)),
        _deployment("cache", cache_count),
        _deployment("database", 1),
        _deployment("scratch", 2),
    ]


class LivingWorkload:
    """Runs until it is stopped; objects that were deleted by hand stay deleted."""

    def __init__(
        self, store: MemoryCluster, clock: Clock, size: WorkloadSize, *, seed: int = 0
    ) -> None:
        self._size = size
        self._store = store
        self._clock = clock
        self._rng = np.random.default_rng(seed)
        self._is_stopped = False
        self._job_count = 0

    def stop(self) -> None:
        """End it, as when another cluster is loaded."""
        self._is_stopped = True

    async def run(self) -> None:
        step = 0
        while not self._is_stopped:
            # Refused is what cannot be done any more: the namespace was deleted, for example.
            with suppress(ApiError):
                self._act(step)
            step += 1
            await asyncio.sleep(STEP_S)

    def _act(self, step: int) -> None:
        usual, gpu = self._size.usual, self._size.gpu
        if step == 0:
            self._begin("batch", usual, per_s=_mean(BATCH_PODS) / STEP_S, run_s=_mean(BATCH_S))
            per_s = TRAINING_PODS / (TRAINING_EVERY * STEP_S)
            self._begin("training", gpu, per_s=per_s, run_s=TRAINING_S)
        count, run_s = self._rng.integers(*BATCH_PODS), self._rng.integers(*BATCH_S)
        self._start_job("batch", float(count), float(run_s), usual)
        if step % URGENT_EVERY == URGENT_EVERY - 1:
            # They are short in any cluster: others are evicted for them.
            self._start_job("urgent", 3, 12.0, min(usual, CHURN_MAX))
        if step % TRAINING_EVERY == TRAINING_EVERY // 2 and gpu:
            self._start_job("training", TRAINING_PODS, TRAINING_S, gpu)
        share = math.sin(2 * math.pi * self._clock.monotonic_s() / DAY_S)
        swing = WEB_SWING * min(usual, CHURN_MAX) * share
        self._scale_web(max(round(WEB_REPLICAS * usual + swing), 1))

    def _begin(self, app: str, size: float, *, per_s: float, run_s: float) -> None:
        """Start with the jobs that a large cluster would take long to get."""
        if size <= CHURN_MAX:
            return
        for number in range(_FIRST_JOBS):
            # `_start_job` has as many pods as are added in a second, and lets them run longer.
            count = per_s * run_s * size / min(size, CHURN_MAX) / _FIRST_JOBS
            self._start_job(app, count, run_s * (number + 1) / _FIRST_JOBS, size)

    def _start_job(self, app: str, count: float, run_s: float, size: float) -> None:
        """Start a job that has as many times the pods, up to a limit, beyond which it runs as many
        times as long."""
        more = min(size, CHURN_MAX)
        self._create_job(app, max(round(count * more), 1), run_s * size / more)

    def _create_job(self, app: str, count: int, run_seconds: float) -> None:
        self._job_count += 1
        choice = TemplateChoice(run_seconds=run_seconds)
        template: JsonObject = {
            "metadata": pod_metadata(app, choice),
            "spec": pod_spec(TEMPLATES[app], app, choice),
        }
        self._store.load(
            [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": f"{app}-{self._job_count}", "namespace": NAMESPACE},
                    "spec": {
                        "parallelism": count,
                        "completions": count,
                        # Pods that are evicted for urgent ones are made again.
                        "backoffLimit": 100,
                        "ttlSecondsAfterFinished": _TTL_S,
                        "template": template,
                    },
                }
            ]
        )

    def _scale_web(self, replicas: int) -> None:
        deployments = self._store.resources.named("deployments.apps")
        patch: JsonObject = {"spec": {"replicas": replicas}}
        self._store.patch(deployments, NAMESPACE, "web", patch, "merge")


def _mean(limits: tuple[int, int]) -> float:
    """The mean of numbers from the first limit up to but without the second."""
    return (limits[0] + limits[1] - 1) / 2


def _deployment(app: str, replicas: int) -> JsonObject:
    choice = TemplateChoice()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": pod_metadata(app, choice),
                "spec": pod_spec(TEMPLATES[app], app, choice),
            },
        },
    }


def _priority_class(name: str, value: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
