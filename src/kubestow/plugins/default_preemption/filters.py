"""The filters that take part in a trial, and what their verdicts depend on.

A trial moves pods off nodes and back again. Filters that do not look at pods need not be asked
twice, and what came of a trial may be kept for pods of the same shape if all the others share
(`framework.plugin.SharingPlugin`).
"""

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.cache.change_log import Depends
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import (
    ConditionallySharing,
    FilterPlugin,
    PodBlindFilter,
    SharingPlugin,
)
from kubestow.framework.profile import FilterStep, Profile, plugin_name


class TrialFilter(NamedTuple):
    """One filter in one attempt.

    ignores_pods   pods on a node change nothing in what it says of that node
    follows_pods   it has to be told of pods coming and going
    share          equal for pods of one shape that it treats alike; None for pods to be looked at
                   by themselves
    """

    filter_index: int
    name: str
    plugin: FilterPlugin
    evaluates_each_node: bool
    ignores_pods: bool
    follows_pods: bool
    share: Hashable | None


class FilterTable:
    """The filters of a profile, with what can be said of them before there is a pod."""

    def __init__(self, profile: Profile) -> None:
        stateful = frozenset(map(plugin_name, profile.pre_filter_extensions))
        self._traits = [_Traits.of(step, step.name in stateful) for step in profile.filter_steps]

    def of_attempt(self, state: CycleState, pod: PodInfo) -> list[TrialFilter]:
        """The filters that PreFilter left in the attempt, in their order."""
        skipped = state.skip_filter
        return [
            traits.of_attempt(state, pod)
            for traits in self._traits
            if traits.known.name not in skipped
        ]


# What a plugin that shares with all pods of a shape says.
_ALWAYS: Final = 0


class _Traits(NamedTuple):
    """What is known of a filter, and what it has to be asked about a pod."""

    known: TrialFilter
    ignores_pods: Callable[[CycleState, PodInfo], bool] | None
    share: Callable[[PodInfo], Hashable | None] | None

    @classmethod
    def of(cls, step: FilterStep, follows_pods: bool) -> "_Traits":
        plugin: object = step.plugin
        is_sharing = isinstance(plugin, SharingPlugin)
        depends = getattr(plugin, "filter_depends", None)
        ignores_pods = depends is Depends.NODE and not follows_pods
        return cls(
            TrialFilter(*step, ignores_pods, follows_pods, _ALWAYS if is_sharing else None),
            plugin.ignores_pods if isinstance(plugin, PodBlindFilter) else None,
            plugin.share if is_sharing and isinstance(plugin, ConditionallySharing) else None,
        )

    def of_attempt(self, state: CycleState, pod: PodInfo) -> TrialFilter:
        known = self.known
        if self.ignores_pods is not None:
            known = known._replace(ignores_pods=self.ignores_pods(state, pod))
        if self.share is not None:
            known = known._replace(share=self.share(pod))
        return known
