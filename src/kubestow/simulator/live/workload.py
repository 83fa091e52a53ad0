"""The living workload of the demo: deployments that grow and shrink, jobs that come and end.

It acts as users of a cluster do, by creating and scaling objects; controllers, scheduler and
kubelets do the rest. With the same seed and speed it does the same again.
"""

import asyncio
import math
from contextlib import suppress
from typing import Final

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.errors import ApiError
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
WEB_REPLICAS: Final = 9
WEB_SWING: Final = 5
URGENT_EVERY: Final = 20
TRAINING_EVERY: Final = 12
# How long a job is there after its end.
_TTL_S: Final = 5
_ZONES: Final = 3
_POOLS: Final = ("usual", "usual", "large")


def first_nodes() -> list[JsonObject]:
    """Nine nodes in three zones and two pools, and one with GPUs."""
    documents: list[JsonObject] = []
    for index in range(len(_POOLS) * _ZONES):
        pool = _POOLS[index // _ZONES]
        capacity = {"cpu": "8", "memory": "32Gi"} if pool == "large" else {}
        shape = NodeShape(capacity=capacity, labels={"pool": pool})
        documents.append(node_document(f"node-{index}", index, shape))
    gpu = node_document("gpu-0", 0, NodeShape(capacity={GPU: "4"}, labels={"pool": "gpu"}))
    gpu["spec"] = {"taints": [{"key": GPU_TAINT, "value": "only", "effect": "NoSchedule"}]}
    return [*documents, gpu]


def first_objects() -> list[JsonObject]:
    """The namespace, the priorities and the services that are there from the beginning."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _priority_class(BATCH, -10),
        _priority_class(URGENT, 1000),
        _deployment("web", WEB_REPLICAS),
        _deployment("cache", 6),
        _deployment("database", 1),
        _deployment("scratch", 2),
    ]


class LivingWorkload:
    """Runs until it is stopped; objects that were deleted by hand stay deleted."""

    def __init__(self, store: MemoryCluster, clock: Clock, *, seed: int = 0) -> None:
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
        self._start_job("batch", int(self._rng.integers(1, 4)), float(self._rng.integers(10, 30)))
        if step % URGENT_EVERY == URGENT_EVERY - 1:
            self._start_job("urgent", 3, 12.0)
        if step % TRAINING_EVERY == TRAINING_EVERY // 2:
            self._start_job("training", 2, 20.0)
        share = math.sin(2 * math.pi * self._clock.monotonic_s() / DAY_S)
        self._scale_web(WEB_REPLICAS + round(WEB_SWING * share))

    def _start_job(self, app: str, count: int, run_seconds: float) -> None:
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
