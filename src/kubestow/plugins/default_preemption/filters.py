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
from kubestow.framework.reuse import ASKED, PodReads, Reads, VersionedBasis

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
    read_pods         whether one has to be called node by node
    read_all_of_pod   whether a reused verdict depends on more than the shape of the pod
    """

    def __init__(self, filters: Iterable[TrialFilter] = (), /) -> None:
        """`filters` are those of the tuple."""
        self.follow_pods = any(each.follows_pods for each in self)
        self.reused = tuple(each for each in self if each.is_reused)
        self.per_pod = tuple(each for each in self if not each.is_reused)
        self.reused_names = tuple(each.name for each in self.reused)
        self.read_pods = any(each.reads is Reads.PODS for each in self)
        self.allow_records = all(each.reads is Reads.NODE for each in self.per_pod)
        self.read_all_of_pod = any(each.step.reuse.pod is PodReads.ALL for each in self.reused)


# Gives the form in which a filter takes part in an attempt, where that differs between pods; None
# if it is known to pass every node, with any pods on it.
_Choose = Callable[[CycleState, PodInfo], TrialFilter | None]


class FilterTable:
    """The filters of a profile."""

    def __init__(self, profile: Profile) -> None:
        stateful = frozenset(map(plugin_name, profile.pre_filter_extensions))
        self._filters = [
            (step, step.name in stateful, _form_of(step, follows_pods=step.name in stateful))
            for step in profile.filter_steps
        ]
        self._other_followers = stateful - {step.name for step in profile.filter_steps}
        # By the filters that PreFilter skipped, and how many passed: the forms of the others.
        self._left: dict[tuple[frozenset[str], int], list[TrialFilter | _Choose]] = {}
        self._selections: dict[tuple[TrialFilter | None, ...], TrialFilters] = {}

    def of_attempt(self, state: CycleState, pod: PodInfo, passed_before: int = 0) -> TrialFilters:
        """The filters that PreFilter left in the attempt; without those that are known to pass
        every node that is tried, with any pods on it.

        All filters with a smaller index than `passed_before` have passed these nodes as they are.
        """
        left = self._left.get((state.skip_filter, passed_before))
        if left is None:
            left = self._forms_without(state.skip_filter, passed_before)
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

    def _forms_without(
        self, skipped: frozenset[str], passed_before: int
    ) -> list[TrialFilter | _Choose]:
        if len(self._left) >= _SELECTIONS_MAX:
            self._left.clear()
        left = self._left[skipped, passed_before] = [
            form
            for step, follows_pods, form in self._filters
            if step.name not in skipped
            # What reads the Node object alone says the same again.
            and (
                step.filter_index >= passed_before
                or step.reuse.filter is not Reads.NODE
                or follows_pods
            )
        ]
        return left


def _form_of(step: FilterStep, *, follows_pods: bool) -> TrialFilter | _Choose:
    reuse = step.reuse
    if follows_pods or reuse.filter is None:
        return TrialFilter(step, Reads.PODS, follows_pods=follows_pods, is_reused=False)
    is_reused, basis = reuse.pod is not PodReads.CLUSTER, reuse.basis
    if isinstance(basis, VersionedBasis):
        basis = basis.basis
    # What is known of a filter that reads numbers does not hold without some of the pods.
    rule = None if reuse.filter is Reads.NUMBERS else step.rule
    # By whether it ignores pods, and whether it is reused.
    forms = {
        (ignores, reused): TrialFilter(
            step, Reads.NODE if ignores else reuse.filter, follows_pods=False, is_reused=reused
        )
        for ignores in (False, True)
        for reused in (False, True)
    }
    if rule is None and (basis is None or not is_reused):
        return forms[False, is_reused]

    def choose(state: CycleState, pod: PodInfo) -> TrialFilter | None:
        ignores = False
        if rule is not None:
            known = rule(state, pod)
            ignores = known.ignores_pods()
            if (ignores or reuse.filter is Reads.NODE) and known.passes_all():
                return None
        return forms[ignores, is_reused and (basis is None or basis(pod) is not ASKED)]

    return choose
