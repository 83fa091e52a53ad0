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
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import Registry, build_profiles
from kubestow.framework.handle import Handle
from kubestow.framework.profile import Profile
from kubestow.plugins.registry import REGISTRY
from kubestow.queue.nominator import Nominator
from kubestow.testing.clock import ManualClock
from kubestow.testing.handles import RecordedEvents, make_handle
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
        self.snapshot = Snapshot()
        self.clock = ManualClock(now_s)
        self.events = RecordedEvents()
        self.activated: list[Pod] = []
        self._work: list[Coroutine[Any, Any, None]] = []
        self._waiting: dict[str, PodInfo] = {}
        self.nominator = Nominator(find=self._waiting.get, pod_lister=self.objects.pods.get)
        for pod in waiting:
            self.wait(pod)
        self.handle = self._make_handle(client, gates)
        self.profile = self._make_profile(plugins, plugin_config, registry, gates)
        self.decider = Decider(self.snapshot, self.nominator, percentage_of_nodes_to_score=100)
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

    def _make_handle(self, client: ClusterClient | None, gates: FeatureGates) -> Handle:
        handle = make_handle(
            self.snapshot,
            objects=self.objects,
            clock=self.clock,
            client=client,
            events=self.events,
            feature_gates=gates,
        )
        handle.nominator = self.nominator
        handle.activate = self.activated.extend
        handle.spawn = self._work.append
        return handle

    def _make_profile(
        self,
        plugins: Iterable[str],
        plugin_config: Iterable[PluginConfig],
        registry: Registry,
        gates: FeatureGates,
    ) -> Profile:
        # Every profile needs these two.
        names = dict.fromkeys(("PrioritySort", *plugins, "DefaultBinder"))
        config = ProfileConfig(
            plugins=Plugins(
                multi_point=PluginSet(
                    enabled=tuple(PluginRef(name) for name in names), disabled=(PluginRef("*"),)
                )
            ),
            plugin_config=tuple(plugin_config),
        )
        profiles = build_profiles([config], registry, lambda name: self.handle, gates)
        return profiles[config.scheduler_name]
