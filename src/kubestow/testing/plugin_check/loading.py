"""The plugin under check, in a profile with the default ones, as a configuration makes it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.deciding import DecidingHalf, NoQueue
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import Registry
from kubestow.errors import ConfigError
from kubestow.framework.hints import build_hint_map
from kubestow.framework.plugin import Plugin
from kubestow.plugins.loading import load_plugins
from kubestow.plugins.priority_sort import PrioritySort
from kubestow.testing.clock import ManualClock


class Loaded(NamedTuple):
    """A configuration that enables the plugin beside the default ones."""

    name: str
    config: SchedulerConfig
    registry: Registry


def load(reference: str, args: object) -> Loaded:
    """Raises ConfigError where a scheduler with this plugin would not start."""
    profile = ProfileConfig(
        plugins=Plugins(multi_point=PluginSet(enabled=(PluginRef(reference),))),
        plugin_config=() if args is None else (PluginConfig(name=reference, args=args),),
    )
    config, registry = load_plugins(SchedulerConfig(profiles=(profile,)))
    name = config.profiles[0].plugins.multi_point.enabled[0].name
    if name not in registry:
        raise ConfigError(f'there is no plugin "{name}"; name its class as module:Class')
    if hasattr(registry.get(name), "less") and name != PrioritySort.name:
        config = _without_other_order(config)
    loaded = Loaded(name, config, registry)
    build_hint_map(Side(loaded, reuses_answers=False).profile.plugins.values())
    return loaded


def _without_other_order(config: SchedulerConfig) -> SchedulerConfig:
    """There is one queue, so a plugin that orders it replaces the default one."""
    disabled = PluginSet(disabled=(PluginRef(PrioritySort.name),))
    profile = config.profiles[0]
    plugins = msgspec.structs.replace(profile.plugins, queue_sort=disabled)
    profile = msgspec.structs.replace(profile, plugins=plugins)
    return msgspec.structs.replace(config, profiles=(profile,))


class Side:
    """A scheduler's deciding half, on its own snapshot of a cluster that may change."""

    def __init__(self, loaded: Loaded, *, reuses_answers: bool) -> None:
        self.objects = ClusterObjects()
        clock = ManualClock()
        deciding = DecidingHalf(
            config=loaded.config,
            objects=self.objects,
            clock=clock,
            client=MemoryClient(MemoryCluster(clock)),
            make_queue=lambda _: NoQueue(self.objects),
            registry=loaded.registry,
            reuses_answers=reuses_answers,
        )
        self.snapshot, self._decider = deciding.snapshot, deciding.decider
        self.profile = next(iter(deciding.profiles.values()))
        self.plugin: Plugin = self.profile.plugins[loaded.name]

    def decide(self, cache: Cache, pod: PodInfo) -> Decision:
        self.snapshot.refresh(cache)
        return self.decide_again(pod)

    def decide_again(self, pod: PodInfo) -> Decision:
        """On the snapshot as it is."""
        return self._decider.decide(self.profile, pod)

    def show(self, cache: Cache, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        """Bring snapshot and stores to the state of the cache, with these pods to be scheduled."""
        self.objects.put(*nodes, *pods)
        self.snapshot.refresh(cache)
