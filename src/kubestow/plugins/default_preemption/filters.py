"""The filters that take part in a trial, and what their verdicts depend on.

A trial removes pods from nodes and puts some back. How often a filter is called depends on what it
declares (`framework.reuse`):

    Reads.NODE      once: pods do not change its answer
    Reads.NUMBERS   at every step, for all nodes at once
    Reads.PODS      at every step, node by node; the same for a filter that declares nothing, or
                    whose state follows pods that are added and removed
"""

from typing import NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import FilterPlugin
from kubestow.framework.profile import FilterStep, Profile, plugin_name
from kubestow.framework.reuse import Reads


class TrialFilter(NamedTuple):
    """One filter in one attempt.

    follows_pods   its state has to be changed when pods are added or removed in the simulation
    is_reused      its verdict on a node holds for all pods of the shape
    """

    step: FilterStep
    reads: Reads
    follows_pods: bool
    is_reused: bool

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def plugin(self) -> FilterPlugin:
        return self.step.plugin


class FilterTable:
    """The filters of a profile."""

    def __init__(self, profile: Profile) -> None:
        stateful = frozenset(map(plugin_name, profile.pre_filter_extensions))
        self._steps = [(step, step.name in stateful) for step in profile.filter_steps]

    def of_attempt(self, state: CycleState, pod: PodInfo) -> list[TrialFilter]:
        """The filters that PreFilter left in the attempt, in their order; without those that are
        known to pass every node, whatever pods are on it."""
        skipped = state.skip_filter
        found = [
            _trial_filter(step, follows_pods, state, pod)
            for step, follows_pods in self._steps
            if step.name not in skipped
        ]
        return [each for each in found if not _is_passed(each, state, pod)]


def _is_passed(each: TrialFilter, state: CycleState, pod: PodInfo) -> bool:
    passes = each.step.reuse.passes
    return each.reads is Reads.NODE and passes is not None and passes(state, pod)


def _trial_filter(
    step: FilterStep, follows_pods: bool, state: CycleState, pod: PodInfo
) -> TrialFilter:
    reuse = step.reuse
    if follows_pods or reuse.filter is None:
        return TrialFilter(step, Reads.PODS, follows_pods, is_reused=False)
    ignores_pods = reuse.ignores_pods is not None and reuse.ignores_pods(state, pod)
    return TrialFilter(
        step,
        Reads.NODE if ignores_pods else reuse.filter,
        follows_pods,
        is_reused=reuse.concerns is None and (reuse.unless is None or not reuse.unless(pod)),
    )
