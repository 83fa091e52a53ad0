"""The filters that take part in a trial, and what their verdicts depend on.

A trial removes pods from nodes and puts some back. How often a filter is called depends on what it
declares (`framework.reuse`):

    Reads.NODE      once: pods do not change its answer
    Reads.NUMBERS   at every step, for all nodes at once
    Reads.PODS      at every step, node by node; the same for a filter that declares nothing, or
                    whose state follows pods that are added and removed
"""

from collections.abc import Callable, Iterable
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.profile import FilterStep, Profile, plugin_name
from kubestow.framework.reuse import PodReads, Reads

# How many selections of filters are kept. Pods differ in which of some ten filters they skip.
_SELECTIONS_MAX: Final = 256


class TrialFilter:
    """One filter, as it takes part in an attempt.

    follows_pods   its state has to be changed when pods are added or removed in the simulation
    is_reused      its verdict on a node holds for all pods of the shape
    """

    __slots__ = ("follows_pods", "is_reused", "name", "plugin", "reads", "step")

    def __init__(
        self, step: FilterStep, reads: Reads, *, follows_pods: bool, is_reused: bool
    ) -> None:
        self.step = step
        self.name = step.name
        self.plugin = step.plugin
        self.reads = reads
        self.follows_pods = follows_pods
        self.is_reused = is_reused


class TrialFilters(tuple[TrialFilter, ...]):
    """The filters of an attempt, in their order.

    follow_pods       whether the state changes in the simulation
    reused            those whose verdicts are reused
    per_pod           the others, which are called for every pod
    allow_records     whether results for one pod hold for the next, but for filters that read no
                      pods
    read_all_of_pod   whether a reused verdict depends on more than the shape of the pod
    """

    def __init__(self, filters: Iterable[TrialFilter] = (), /) -> None:
        """`filters` are those of the tuple."""
        self.follow_pods = any(each.follows_pods for each in self)
        self.reused = tuple(each for each in self if each.is_reused)
        self.per_pod = tuple(each for each in self if not each.is_reused)
        self.reused_names = tuple(each.name for each in self.reused)
        self.allow_records = all(each.reads is Reads.NODE for each in self.per_pod)
        self.read_all_of_pod = any(each.step.reuse.pod is PodReads.ALL for each in self.reused)


# Gives the form in which a filter takes part in an attempt, where that differs between pods; None
# if it is known to pass every node, whatever pods are on it.
_Choose = Callable[[CycleState, PodInfo], TrialFilter | None]


class FilterTable:
    """The filters of a profile."""

    def __init__(self, profile: Profile) -> None:
        stateful = frozenset(map(plugin_name, profile.pre_filter_extensions))
        self._filters = [
            (step.name, _form_of(step, follows_pods=step.name in stateful))
            for step in profile.filter_steps
        ]
        self._other_followers = stateful - {step.name for step in profile.filter_steps}
        # By the filters that PreFilter skipped: the forms of the others.
        self._left: dict[frozenset[str], list[TrialFilter | _Choose]] = {}
        self._selections: dict[tuple[TrialFilter | None, ...], TrialFilters] = {}

    def of_attempt(self, state: CycleState, pod: PodInfo) -> TrialFilters:
        """The filters that PreFilter left in the attempt; without those that are known to pass
        every node, whatever pods are on it."""
        left = self._left.get(state.skip_filter)
        if left is None:
            left = self._forms_without(state.skip_filter)
        selected = tuple(
            [form if isinstance(form, TrialFilter) else form(state, pod) for form in left]
        )
        found = self._selections.get(selected)
        if found is None:
            if len(self._selections) >= _SELECTIONS_MAX:
                self._selections.clear()
            filters = [each for each in selected if each is not None]
            found = self._selections[selected] = TrialFilters(filters)
        return found

    def has_other_followers(self, state: CycleState) -> bool:
        """Whether a plugin that is no filter follows pods: a node on which it fails is no
        candidate, so it has to be called for every pod."""
        return bool(self._other_followers) and not self._other_followers <= state.skip_filter

    def _forms_without(self, skipped: frozenset[str]) -> list[TrialFilter | _Choose]:
        if len(self._left) >= _SELECTIONS_MAX:
            self._left.clear()
        left = self._left[skipped] = [form for name, form in self._filters if name not in skipped]
        return left


def _form_of(step: FilterStep, *, follows_pods: bool) -> TrialFilter | _Choose:
    reuse = step.reuse
    if follows_pods or reuse.filter is None:
        return TrialFilter(step, Reads.PODS, follows_pods=follows_pods, is_reused=False)
    is_reused, unless = reuse.concerns is None, reuse.unless
    ignores_pods, passes = reuse.ignores_pods, reuse.passes
    # By whether it ignores pods, and whether it is reused.
    forms = {
        (ignores, reused): TrialFilter(
            step, Reads.NODE if ignores else reuse.filter, follows_pods=False, is_reused=reused
        )
        for ignores in (False, True)
        for reused in (False, True)
    }
    if unless is None and ignores_pods is None and passes is None:
        return forms[False, is_reused]

    def choose(state: CycleState, pod: PodInfo) -> TrialFilter | None:
        ignores = ignores_pods is not None and bool(ignores_pods(state, pod))
        reads_node = ignores or reuse.filter is Reads.NODE
        if reads_node and passes is not None and passes(state, pod):
            return None
        return forms[ignores, is_reused and (unless is None or not unless(pod))]

    return choose
