"""Plugins that are not built in, and wait for events that the other version does not have."""

from collections.abc import Iterator, Mapping, Set
from typing import Final

from kubestow.editions.choosing import rules_of
from kubestow.explain.cluster import StillCluster
from kubestow.framework.events import Resource
from kubestow.framework.hints import HintMap, build_hint_map
from kubestow.framework.plugin import Plugin
from kubestow.simulator.upgrade.pair import EditionPair
from kubestow.simulator.upgrade.report import Effect, UpgradeFinding

_TAINT_WAKING: Final = 5


def plugin_findings(pair: EditionPair, own: Set[str]) -> Iterator[UpgradeFinding]:
    """What becomes of the registrations of the user's plugins, which have these names."""
    for name, plugin in _enabled(pair.before, own).items():
        yield from _gone_events(pair, name, plugin)
        maps = [_hint_map(cluster, plugin) for cluster in (pair.older, pair.newer)]
        if len(maps[0]) != len(maps[1]):
            yield UpgradeFinding(
                effect=Effect.NOTE,
                where=f"plugin {name}",
                text="registered for new nodes, not for changes of taints; these wake its pods in "
                f"{_version(pair.older)} only",
                change=_TAINT_WAKING,
            )


def _enabled(cluster: StillCluster, own: Set[str]) -> Mapping[str, Plugin]:
    return {
        name: plugin
        for profile in cluster.scheduler.profiles.values()
        for name, plugin in profile.plugins.items()
        if name in own
    }


def _gone_events(pair: EditionPair, name: str, plugin: Plugin) -> Iterator[UpgradeFinding]:
    after = pair.older if pair.is_back else pair.newer
    here, there = _pod_resources(pair.before), _pod_resources(after)
    gone = here - there
    registered = {each.event.resource for each in _hint_map(pair.before, plugin)}
    for resource in sorted(registered & gone):
        yield UpgradeFinding(
            effect=Effect.WOKEN,
            where=f"plugin {name}",
            text=f"registered for events of {resource}, which {_version(after)} does not have; it "
            f"has {', '.join(sorted(there - here))}, and {Resource.POD} means all of them",
        )


def _hint_map(cluster: StillCluster, plugin: Plugin) -> HintMap:
    return build_hint_map((plugin,), adds_taint_events=cluster.adds_taint_events)


def _pod_resources(cluster: StillCluster) -> frozenset[str]:
    """The names that events of pods have."""
    events = rules_of(cluster.gates.edition).factory.pod_events
    return frozenset((Resource.ASSIGNED_POD, events.updated.resource, events.own))


def _version(cluster: StillCluster) -> str:
    return cluster.gates.edition.version
