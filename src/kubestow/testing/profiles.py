"""Profiles and plugins for tests: a plugin from a few functions, a profile from a few plugins."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from kubestow.api.pod_info import PodInfo
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import BindPlugin, Plugin, QueueEntry, QueueSortPlugin
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status


# Any: each extension point has its own function signatures.
def make_plugin(name: str, **methods: Callable[..., Any] | bool) -> Plugin:
    """A plugin with these methods, given as functions without `self`.

        make_plugin("Full", permit=lambda state, pod, node: (Status.unschedulable("full"), 0))

    It implements exactly the extension points whose methods are given.
    """
    members = {
        key: staticmethod(method) if callable(method) else method for key, method in methods.items()
    }
    return cast(Plugin, type(name, (), {"name": name, **members})())


def make_profile(
    *plugins: Plugin,
    name: str = "default-scheduler",
    weights: Mapping[str, int] | None = None,
    percentage_of_nodes_to_score: int | None = None,
) -> Profile:
    """A profile that runs these plugins in this order at every point they implement.

    Every profile needs a queue sort and a bind plugin: where none is given, pods are sorted by
    arrival, and binding always succeeds.
    """
    chosen = list(plugins)
    if not any(isinstance(plugin, QueueSortPlugin) for plugin in chosen):
        chosen.append(_ByArrival())
    if not any(isinstance(plugin, BindPlugin) for plugin in chosen):
        chosen.append(_BindsAnything())
    refs = [PluginRef(plugin.name, (weights or {}).get(plugin.name, 0)) for plugin in chosen]
    config = ProfileConfig(
        scheduler_name=name,
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
        plugins=Plugins(multi_point=PluginSet(enabled=tuple(refs))),
    )
    return Profile(config, {plugin.name: plugin for plugin in chosen})


class _ByArrival:
    name: ClassVar[str] = "ByArrival"

    def less(self, first: QueueEntry, second: QueueEntry) -> bool:
        return first.timestamp_ns < second.timestamp_ns


class _BindsAnything:
    name: ClassVar[str] = "BindsAnything"

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None
