"""What happens to the cluster during a soak: pods and nodes of ever new shapes come and go.

Names of pods and nodes are always new, so what is kept by such a name must be dropped again. Shapes
(labels, requests, selectors) change, too, but come back: what is kept by shape has a limit, which
ever new shapes would take many hours to reach. The number of nodes and pods stays.
"""

import asyncio
from collections import deque
from typing import Final

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import EVENTS, NAMESPACES, NODES, PODS
from kubestow.errors import NotFoundError

PODS_PER_NODE: Final = 20
TICK_S: Final = 0.05
# One node is replaced each time this many pods were created.
PODS_PER_NEW_NODE: Final = 100
# An API server drops events after an hour; in a soak the newest are enough.
EVENTS_KEPT_MAX: Final = 1_000
# Shapes are those of this many applications, of others after this many pods, then the first again.
APPS: Final = 20
PODS_PER_GENERATION: Final = 200
GENERATIONS: Final = 20


class Churn:
    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        rng: np.random.Generator,
        *,
        nodes: int,
        pods_per_s: int,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._rng = rng
        self._pods_per_s = pods_per_s
        self._live: deque[str] = deque()
        self.live_max: Final = nodes * PODS_PER_NODE
        self._nodes: deque[str] = deque()
        self._node_count = 0
        self.created_count = 0
        # When each pod that is not bound yet was created.
        self.created_s: dict[str, float] = {}
        cluster.create(NAMESPACES, {"metadata": {"name": "default"}})
        for _ in range(nodes):
            self._add_node()

    async def run(self) -> None:
        """Go on until cancelled."""
        started_s = self._clock.monotonic_s()
        while True:
            due = int((self._clock.monotonic_s() - started_s) * self._pods_per_s)
            while self.created_count < due:
                self._add_pod()
                if self.created_count % PODS_PER_NEW_NODE == 0:
                    self._replace_node()
                    self._drop_events()
                await asyncio.sleep(0)
            await asyncio.sleep(TICK_S)

    # --- pods ---

    def _add_pod(self) -> None:
        name = f"pod-{self.created_count}"
        self.created_count += 1
        self.created_s[name] = self._clock.monotonic_s()
        self._cluster.create(PODS, self._pod(name))
        self._live.append(name)
        if len(self._live) > self.live_max:
            self._delete_pod(self._live.popleft())

    def _delete_pod(self, name: str) -> None:
        self.created_s.pop(name, None)
        try:
            self._cluster.delete(PODS, "default", name, grace_period_s=0)
        except NotFoundError:
            return  # evicted for another pod

    def _pod(self, name: str) -> JsonObject:
        generation = self.created_count // PODS_PER_GENERATION % GENERATIONS
        number = int(self._rng.integers(APPS))
        app = f"app-{generation}-{number}"
        labels = {"app": app, f"team-{generation}": str(number % 3)}
        size = (generation * APPS + number) % 40 + 1
        requests = {"cpu": f"{size * 25}m", "memory": f"{size * 16}Mi"}
        spec: JsonObject = {
            "containers": [{"name": "main", "image": app, "resources": {"requests": requests}}],
            "tolerations": [{"key": f"taint-{generation}", "operator": "Exists"}],
        }
        selector = {"matchLabels": {"app": app}}
        match number % 6:
            case 0:
                constraint = {
                    "maxSkew": number % 4 + 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
                spec["topologySpreadConstraints"] = [constraint]
            case 1:
                term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
                required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
                spec["affinity"] = {"podAntiAffinity": required}
            case 2:
                spec["nodeSelector"] = {"zone": f"zone-{number % 4}"}
            case 3:
                # No node has it: the pod waits until it is deleted.
                if self._rng.random() < 0.05:
                    spec["nodeSelector"] = {f"missing-{generation}": "true"}
            case 4:
                spec["priority"] = number
            case _:
                pass
        metadata = {"name": name, "namespace": "default", "labels": labels}
        return {"metadata": metadata, "spec": spec}

    # --- nodes ---

    def _add_node(self) -> None:
        name = f"node-{self._node_count}"
        self._node_count += 1
        resources = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        labels = {
            "kubernetes.io/hostname": name,
            "zone": f"zone-{self._node_count % 4}",
            f"pool-{self._node_count // 100}": "true",
        }
        taint = {"key": f"soft-{self._node_count % 7}", "effect": "PreferNoSchedule"}
        self._cluster.create(
            NODES,
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": [taint]},
                "status": {"capacity": resources, "allocatable": resources},
            },
        )
        self._nodes.append(name)

    def _replace_node(self) -> None:
        """The oldest node goes with its pods, as when its pool is upgraded."""
        oldest = self._nodes.popleft()
        for stored in [*self._cluster.objects_of(PODS)]:
            if value_at(stored.document, "spec", "nodeName") == oldest:
                self._delete_pod(stored.key[1])
        self._cluster.delete(NODES, "", oldest)
        self._add_node()

    def _drop_events(self) -> None:
        stored = sorted(self._cluster.objects_of(EVENTS), key=lambda event: event.version)
        for event in stored[:-EVENTS_KEPT_MAX]:
            self._cluster.delete(EVENTS, *event.key)
