"""An embedded cluster with groups, in virtual time, for tests that act on it while it runs."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS, ResourceTable
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.loading import load_cluster, pods_of
from kubestow.simulator.virtual_time import VirtualClock

GATES = ("GenericWorkload", "GangScheduling")


def own_profile(**args: object) -> JsonObject:
    return {
        "plugins": {"multiPoint": {"enabled": [{"name": "Gangs"}]}},
        "pluginConfig": [{"name": "Gangs", "args": args}],
    }


class GangCluster:
    """A cluster that runs; `settle` waits until nothing is left to do."""

    def __init__(
        self, profile: JsonObject, gates: Iterable[str], resources: ResourceTable | None
    ) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        enabled = FeatureGates(dict.fromkeys(gates, True))
        config = SchedulerConfig(profiles=(msgspec.convert(profile, ProfileConfig),))
        self.store = MemoryCluster(
            self.clock, gates=enabled, resources=resources, admission=resources is None
        )
        load_cluster(self.store, definitions_for(config, ()))
        self.embedded = EmbeddedCluster(
            self.store,
            config,
            self.clock,
            controllers=[FakeKubelets(self.store, self.clock, stop_s=2.0)],
            gates=enabled,
        )

    def load(self, *objects: ApiObject | JsonObject) -> None:
        documents = [each if isinstance(each, dict) else to_document(each) for each in objects]
        load_cluster(self.store, documents)

    def patch(self, pod: str, patch: JsonObject) -> None:
        self.store.patch(PODS, "default", pod, patch, "merge")

    def delete(self, *pods: str) -> None:
        for name in pods:
            if self.store.find(PODS, "default", name) is not None:
                self.store.delete(PODS, "default", name)

    async def settle(self, limit_s: float = 2000.0) -> None:
        # Twice: the first time a kubelet may have ended a pod at that very moment.
        for _ in range(2):
            await asyncio.sleep(0.07)
            assert await self.embedded.settle(limit_s=limit_s), "the cluster does not come to rest"

    def pods(self) -> list[Pod]:
        return pods_of(self.store)

    def nodes_of(self, *names: str) -> list[str]:
        nodes = {pod.metadata.name: pod.spec.node_name for pod in self.pods()}
        return [nodes.get(name, "gone") for name in names]

    def placed_counts(self) -> Counter[str]:
        """How many members of each group have a node, or have succeeded."""
        return Counter(
            pod.spec.scheduling_group.pod_group_name
            for pod in self.pods()
            if pod.spec.scheduling_group is not None and pod.spec.node_name
        )


@asynccontextmanager
async def gang_cluster(
    *objects: ApiObject | JsonObject,
    profile: JsonObject,
    gates: Iterable[str] = GATES,
    resources: ResourceTable | None = None,
) -> AsyncGenerator[GangCluster, Any]:
    """`resources` are those of a server of another version."""
    cluster = GangCluster(profile, gates, resources)
    cluster.load(*objects)
    async with cluster.embedded.running():
        yield cluster
