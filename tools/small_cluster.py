"""A small cluster with a profile, for tests of plugins that need other plugins.

There is no queue and no loop: the test calls `decide` for each pod, and spawned work is kept until
the test runs it.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.deciding import DecidingHalf, NoQueue
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import Registry
from kubestow.plugins.registry import REGISTRY
from kubestow.testing.clock import ManualClock
from kubestow.testing.handles import RecordedEvents
from kubestow.testing.snapshots import make_cache


class SmallCluster:
    """Nodes, pods on them, pods waiting, and the plugins named.

    `nodes` are visited in the order given. Of the waiting pods, those with a nominated node in
    their status are nominated to it.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Iterable[Pod] = (),
        *,
        plugins: Iterable[str],
        waiting: Iterable[Pod] = (),
        objects: Iterable[ApiObject] = (),
        registry: Registry = REGISTRY,
        plugin_config: Iterable[PluginConfig] = (),
        gates: FeatureGates = DEFAULT_GATES,
        client: ClusterClient | None = None,
        now_s: float = 1_700_000_000,
    ) -> None:
        pods = tuple(pods)
        self.objects = ClusterObjects()
        self.objects.put(*objects, *pods)
        self.cache = make_cache(nodes, pods)
        self.clock = ManualClock(now_s)
        self.events = RecordedEvents()
        self.activated: list[Pod] = []
        self._work: list[Coroutine[Any, Any, None]] = []
        queue = NoQueue(self.objects)
        self.nominator, self._waiting = queue.nominator, queue.waiting
        for pod in waiting:
            self.wait(pod)
        profile = _profile_of(plugins, plugin_config)
        deciding = DecidingHalf(
            config=SchedulerConfig(profiles=(profile,), percentage_of_nodes_to_score=100),
            objects=self.objects,
            clock=self.clock,
            client=client or MemoryClient(MemoryCluster(self.clock)),
            make_queue=lambda _: queue,
            registry=registry,
            gates=gates,
            cache=self.cache,
            events=lambda _: self.events,
            spawn=self._work.append,
        )
        self.handle = deciding.handles[profile.scheduler_name]
        self.handle.activate = self.activated.extend
        self.profile = deciding.profiles[profile.scheduler_name]
        self.snapshot, self.decider = deciding.snapshot, deciding.decider
        self.snapshot.refresh(self.cache)

    def wait(self, pod: Pod) -> PodInfo:
        """Add a waiting pod; it replaces an earlier version."""
        info = PodInfo(pod)
        self._waiting[info.key] = info
        self.objects.pods.put(pod)
        self.nominator.add(pod)
        return info

    def decide(self, pod: Pod) -> Decision:
        """Try the pod on the cluster as it is now."""
        info = self._waiting.get(PodInfo(pod).key)
        if info is None or info.pod is not pod:
            info = self.wait(pod)
        self.snapshot.refresh(self.cache)
        return self.decider.decide(self.profile, info)

    @property
    def pending_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        return self._work

    async def run_work(self) -> None:
        """Run the work that plugins spawned, all at the same time."""
        work = self._work.copy()
        self._work.clear()
        await asyncio.gather(*work)

    def drop_work(self) -> None:
        """Close the spawned work without running it."""
        for coroutine in self._work:
            coroutine.close()
        self._work.clear()


def _profile_of(plugins: Iterable[str], plugin_config: Iterable[PluginConfig]) -> ProfileConfig:
    # Every profile needs these two.
    names = dict.fromkeys(("PrioritySort", *plugins, "DefaultBinder"))
    return ProfileConfig(
        plugins=Plugins(
            multi_point=PluginSet(
                enabled=tuple(PluginRef(name) for name in names), disabled=(PluginRef("*"),)
            )
        ),
        plugin_config=tuple(plugin_config),
    )
