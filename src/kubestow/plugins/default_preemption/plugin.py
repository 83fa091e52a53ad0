"""DefaultPreemption as the framework calls it (spec 08 A3)."""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import Rows, row_count
from kubestow.config.plugin_args import DefaultPreemptionArgs
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.faults import fault_status
from kubestow.framework.handle import Handle
from kubestow.framework.metrics import POST_FILTER
from kubestow.framework.plugin import GroupTrial, PostFilterResult
from kubestow.framework.status import SUCCESS, Code, Status
from kubestow.plugins.default_preemption.dry_run import (
    DryRun,
    Evaluator,
    TrialInputs,
    candidate_count,
    message_without_victims,
)
from kubestow.plugins.default_preemption.eligibility import (
    DEFAULT_RULES,
    VictimRules,
    why_ineligible,
)
from kubestow.plugins.default_preemption.executor import Executor, Preemptor
from kubestow.plugins.default_preemption.extenders import ask_extenders
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.plugins.default_preemption.group_victims import (
    CLUSTER,
    priority_of_group,
    select_victims,
)
from kubestow.plugins.default_preemption.one_node import OneNode
from kubestow.plugins.default_preemption.trial_records import TrialRecords
from kubestow.plugins.default_preemption.whole_gangs import Chosen, choose

GATED: Final = Status.unresolvable("waiting for the preemption for this pod to be finished")
GROUP_GATED: Final = Status.unresolvable(
    "waiting for the preemption for this pod group to be finished"
)
# Why members of a group do not preempt one by one (spec 11 §9.1).
NO_GROUP: Final = Status.unschedulable("preemption: pod group for pod not found")
BY_PLACEMENT: Final = Status.unschedulable(
    "preemption: not eligible due to placement-based pod group scheduling limitation"
)
BY_GROUP: Final = Status.unschedulable(
    "preemption: not eligible due to workload aware preemption enabled"
)
BREAKS_GANGS: Final = Status.unschedulable(
    "every candidate node has members of gangs with pods of the same or a higher priority"
)


class DefaultPreemption:
    name: ClassVar[str] = "DefaultPreemption"
    args_type: ClassVar[type[DefaultPreemptionArgs]] = DefaultPreemptionArgs
    # A derived plugin may set others.
    rules: ClassVar[VictimRules] = DEFAULT_RULES
    # A later version charges budgets, and ends evictions, in another way.
    budgets_type: ClassVar[type[BudgetTable]] = BudgetTable
    executor_type: ClassVar[type[Executor]] = Executor

    def __init__(self, args: object, handle: Handle) -> None:
        if not isinstance(args, DefaultPreemptionArgs):
            raise ConfigError(
                f"got args of type {type(args).__name__}, want *DefaultPreemptionArgs"
            )
        self._args = args
        self._handle = handle
        gates = handle.feature_gates
        self._is_async = gates.enabled("SchedulerAsyncPreemption")
        self._has_groups = gates.enabled("GenericWorkload")
        self._places_groups = gates.enabled("TopologyAwareWorkloadScheduling")
        self._has_group_gate = gates.enabled("WorkloadAwarePreemption")
        self.executor = self.executor_type(self.name, handle, is_async=self._is_async)
        self._budgets: BudgetTable | None = None
        self._budgets_version = -1
        self._records = TrialRecords()
        self._nominated = SUCCESS.with_plugin(self.name)

    @cached_property
    def _filter_table(self) -> FilterTable:
        return FilterTable(self._handle.profile)

    @property
    def _preempts_for_groups(self) -> bool:
        return self._has_group_gate or self._handle.groups.options.evicts_for_whole

    # --- queue ---

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if not self._is_async:
            return None
        if self._preempts_for_groups:
            key = self._handle.groups.key_of(pod)
            if key is not None:
                groups = self._handle.groups
                rules = map(groups.rules, groups.pod_sets(key))
                is_gated = any(
                    group is not None and self.executor.is_preempting(group.uid) for group in rules
                )
                return GROUP_GATED if is_gated else None
        return GATED if self.executor.is_preempting(pod.metadata.uid) else None

    def events(self) -> Registrations:
        # The hint never helps. The registration makes the queue call the hints of the plugins that
        # rejected the pods which wait at PreEnqueue.
        return (on(Resource.POD, Action.DELETE, _never_helps),) if self._is_async else ()

    # --- preemption ---

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        ineligible = self._why_member_ineligible(pod)
        if ineligible is not None:
            self._handle.metrics.preemption_attempted()
            return None, ineligible
        try:
            result, status = self._preempt(state, pod, diagnosis)
        except (
            BaseException
        ) as error:  # From an extender or a user's rule; fails this attempt only.
            result, status = None, fault_status(error, self.name, POST_FILTER)
        # Not before: an attempt that is set aside in the search is made, and counted, again.
        self._handle.metrics.preemption_attempted()
        if not status.is_success and status.message:
            status = Status(status.code, f"preemption: {status.message}")
        return result, status

    def post_filter_repeated(self, pod: PodInfo) -> bool:
        if pod.pod.status.nominated_node_name or self.rules is not DEFAULT_RULES:
            return False
        self._handle.metrics.preemption_attempted()
        return True

    def group_post_filter(self, group_trial: GroupTrial) -> Status:
        """Evict pods for a whole group, of which any number and anywhere (spec 11 §9.2)."""
        handle, group = self._handle, group_trial.group
        victims = select_victims(
            group_trial, handle.snapshot, handle.groups, self._budget_table(), handle.clock.now_ns()
        )
        if isinstance(victims, Status):
            return victims
        pods = [pod.pod for pod in group_trial.pods]
        preemptor = Preemptor(
            "podgroup",
            group.uid,
            str(group.key),
            pods[0].spec.scheduler_name,
            priority_of_group(group, group_trial.pods),
            pods,
            related=handle.groups.object_of(group.key),
            # Members that wait for events need one.
            is_member=not handle.groups.options.waits_for_events,
        )
        self.executor.evict(preemptor, CLUSTER, victims)
        return SUCCESS

    def _why_member_ineligible(self, pod: PodInfo) -> Status | None:
        """Why a member of a group must not preempt by itself; None if it may."""
        if not self._places_groups and not self._preempts_for_groups:
            return None
        key = self._handle.groups.key_of(pod.pod)
        if key is None:
            return None
        if self._places_groups:
            group = self._handle.groups.rules(key)
            if group is None:
                return NO_GROUP
            if group.is_constrained:
                return BY_PLACEMENT
        return BY_GROUP if self._preempts_for_groups else None

    def evaluate_all(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> DryRun:
        """Try every node on which evicting might help; no pod is evicted."""
        newest = self._newest(pod)
        return self._search(state, newest, diagnosis, newest is pod, is_exhaustive=True)

    def _preempt(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        handle = self._handle
        newest = self._newest(pod)
        is_newest, pod = newest is pod, newest
        reason = why_ineligible(
            pod, diagnosis, handle.snapshot, self.rules, handle.victims.is_requested
        )
        if reason:
            return None, Status.unschedulable(reason)
        if not handle.snapshot.names:
            raise PluginError("no nodes available")
        if self._is_lowest(pod):
            return PostFilterResult(""), self._without_victims(diagnosis)
        dry_run = self._search(state, pod, diagnosis, is_newest)
        candidates = dry_run.candidates()
        if len(candidates) == 0:
            error = dry_run.error()
            if error:
                raise PluginError(error)
            return PostFilterResult(""), Status.unschedulable(dry_run.message())
        if handle.extenders:
            candidates = ask_extenders(
                handle.extenders, pod, candidates, handle.snapshot, handle.clock.now_ns()
            )
        best = candidates.first_of_best()
        if best is None:
            return None, Status.unschedulable("no candidate node for preemption")
        if handle.groups.options.evicts_whole and len(handle.groups):
            chosen = choose(candidates, handle.groups, pod.priority)
            if chosen is None:
                return PostFilterResult(""), BREAKS_GANGS
        else:
            candidate = candidates[best]
            chosen = Chosen(candidate, candidate.victims)
        node_name = handle.snapshot.names[chosen.candidate.row]
        victims = tuple(chosen.victims)
        is_member = self._has_groups and handle.groups.key_of(pod.pod) is not None
        is_member = is_member and not handle.groups.options.waits_for_events
        self._note_victims(victims, chosen.candidate.violation_count)
        self.executor.evict(Preemptor.of_pod(pod, is_member=is_member), node_name, victims)
        return PostFilterResult(node_name, victims), self._nomination(node_name, len(victims))

    def _note_victims(self, victims: Sequence[PodInfo], violation_count: int) -> None:
        """A later version counts what is disrupted."""

    # A later version says which node it is.

    def _nomination(self, node_name: str, victim_count: int) -> Status:
        return self._nominated

    def _newest(self, pod: PodInfo) -> PodInfo:
        """The pod as last delivered by the informer."""
        newest = self._handle.objects.pods.get(pod.namespace, pod.name)
        if newest is None:
            raise PluginError(f'pod "{pod.name}" not found')
        return pod if newest is pod.pod else type(pod)(newest)

    def _is_lowest(self, pod: PodInfo) -> bool:
        """Whether no pod on any node has a lower priority: none can be evicted for this one."""
        return pod.priority <= self._handle.snapshot.lowest_priority

    def _without_victims(self, diagnosis: Diagnosis) -> Status:
        """The outcome of a search where no node has a pod to evict."""
        count = diagnosis.count_with(Code.UNSCHEDULABLE)
        if count:
            self._first_of(count)  # Chance gives later pods what it would have given them.
        return Status.unschedulable(message_without_victims(len(self._handle.snapshot), count))

    def _search(
        self,
        state: CycleState,
        pod: PodInfo,
        diagnosis: Diagnosis,
        is_newest: bool,
        *,
        is_exhaustive: bool = False,
    ) -> DryRun:
        handle = self._handle
        dry_run = DryRun(handle.snapshot)
        rows, first_filter = diagnosis.rejected_with(Code.UNSCHEDULABLE)
        count = row_count(rows)
        if not count:
            return dry_run
        # What filters said of an older pod, which may name a node by now, is of no use.
        passed_before = first_filter if is_newest else 0
        inputs = TrialInputs(
            handle.profile,
            state,
            pod,
            handle.snapshot,
            handle.nominator,
            self._budget_table(),
            self.rules,
            handle.clock.now_ns(),
            self._filter_table.of_attempt(state, pod, passed_before),
        )
        evaluator = self._evaluator(inputs)
        wanted = candidate_count(
            count,
            self._args.min_candidate_nodes_percentage,
            self._args.min_candidate_nodes_absolute,
        )
        for stretch in _stretches(rows, self._first_of(count)):
            if dry_run.search(evaluator, stretch, None if is_exhaustive else wanted):
                break
        return dry_run

    def _evaluator(self, inputs: TrialInputs) -> Evaluator:
        needs_every_call = (
            self.rules is not DEFAULT_RULES or self._filter_table.has_other_followers(inputs.state)
        )
        return OneNode(inputs) if needs_every_call else self._records.evaluator(inputs)

    def _first_of(self, count: int) -> int:
        """Where the search begins, counted in nodes that may become candidates (spec 08 A5).

        At random, as upstream, so that pods that preempt at the same time choose different nodes;
        without chance the same cluster gives the same victims.
        """
        rng = self._handle.rng
        return 0 if rng is None else int(rng.integers(count))

    def _budget_table(self) -> BudgetTable | None:
        budgets = self._handle.objects.pod_disruption_budgets
        if budgets.version != self._budgets_version:
            self._budgets_version = budgets.version
            self._budgets = self.budgets_type(budgets) if len(budgets) else None
        return self._budgets


def _stretches(rows: Rows, first: int) -> Sequence[Rows]:
    """The rows beginning at that position, in stretches that are as long as possible."""
    if not first:
        return (rows,)
    if isinstance(rows, slice):
        return slice(first, rows.stop), slice(0, first)
    return (np.roll(rows, -first),)


def _never_helps(pod: Pod, old: object, new: object) -> Hint:
    return Hint.SKIP
