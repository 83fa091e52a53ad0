"""The cycle of a group: from a member that was popped to the group's condition (spec 11 §7)."""

from collections.abc import Sequence
from typing import Protocol

from kubestow.api.group import GroupKey
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.groups import GroupMembers, Groups
from kubestow.cache.snapshot import Snapshot
from kubestow.cache.trial import SnapshotTrial
from kubestow.engine.groups.collect import CollectedGroup, Collector
from kubestow.engine.groups.condition import ConditionWriter
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.engine.groups.placements import PlacementTrials
from kubestow.engine.groups.submit import Submitter
from kubestow.engine.groups.trial import GroupTrials
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.errors import CacheError, PluginError
from kubestow.framework.faults import fault_status
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.plugin import GroupTrial
from kubestow.framework.profile import plugin_name
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod

GROUP_POST_FILTER = "PodGroupPostFilter"


class GroupEngineAttempt(Protocol):
    """The attempt of a group. `decide` is its cycle; `conclude` carries out what that came to."""

    @property
    def has_victims(self) -> bool: ...

    @property
    def is_unplaced_group(self) -> bool: ...

    def decide(self) -> None: ...

    def conclude(self) -> None: ...


class GroupEngine(Protocol):
    @property
    def conditions(self) -> ConditionWriter: ...

    def is_member(self, queued_pod: QueuedPod) -> bool:
        """Whether what was popped is tried as a group."""
        ...

    def begin(self, popped: QueuedPod) -> GroupEngineAttempt | None:
        """The attempt of a group; None if there is nothing to try."""
        ...

    def decide(self, collected: CollectedGroup) -> GroupOutcome:
        """Where these members of a group go; nothing is carried out."""
        ...

    def fits(self, collected: CollectedGroup) -> bool:
        """Whether these members can be placed on the snapshot as it is; no pod is evicted."""
        ...


class GroupScheduler:
    """`begin` collects the members of a group for an attempt.

    `placements` None: the gate TopologyAwareWorkloadScheduling is off.
    """

    def __init__(
        self,
        groups: Groups,
        cache: Cache,
        snapshot: Snapshot,
        collector: Collector,
        trials: GroupTrials,
        placements: PlacementTrials | None,
        submitter: Submitter,
        conditions: ConditionWriter,
        metrics: SchedulerMetrics,
        *,
        preempts_for_groups: bool,
    ) -> None:
        self._groups = groups
        self._cache = cache
        self._snapshot = snapshot
        self.collector = collector
        self.trials = trials
        self.placements = placements
        self._submitter = submitter
        self.conditions: ConditionWriter = conditions
        self._metrics = metrics
        self._preempts_for_groups = preempts_for_groups

    def is_member(self, queued_pod: QueuedPod) -> bool:
        return self._groups.key_of(queued_pod.pod) is not None

    def begin(self, popped: QueuedPod) -> "GroupAttempt | None":
        """The attempt of the group of a member that was popped; None if there is nothing to try."""
        collected = self.collector.collect(popped)
        if collected is None:
            return None
        return GroupAttempt(self, collected, self._metrics.now_s())

    def decide(self, collected: CollectedGroup) -> GroupOutcome:
        """Where the members of the group go; the snapshot is as before afterwards."""
        started_s = self._metrics.now_s()
        try:
            self._snapshot.refresh(self._cache)
        except CacheError as error:
            return GroupOutcome((), Status.from_error(error))
        cycle = self.new_cycle(collected)
        self.trials.start_group()
        outcome = self.run_algorithm(collected, cycle)
        self._metrics.group_decided(started_s)
        status = outcome.status
        if self._preempts_for_groups and status is not None and status.code == Code.UNSCHEDULABLE:
            outcome = self._preempt(collected, cycle, outcome, status)
        return outcome

    def conclude(self, collected: CollectedGroup, outcome: GroupOutcome, started_s: float) -> None:
        """Place the members or send them back, and write the condition of the group."""
        self._submitter.submit(collected, outcome)
        self._metrics.group_ended(result_of(outcome), collected.profile.name, started_s)
        for pod_set in self._groups.pod_sets(collected.key):
            self.conditions.write(pod_set, outcome)

    def run_algorithm(self, collected: CollectedGroup, cycle: GroupCycle) -> GroupOutcome:
        if self.placements is not None:
            return self.placements.run(collected, cycle)
        return self.trials.run(collected, cycle)

    def fits(self, collected: CollectedGroup) -> bool:
        known = self._groups.find(collected.key)
        # Without idle members: Permit would make them active.
        cycle = GroupCycle(collected.key, {} if known is None else {collected.key: known.copy()})
        cycle.runs_post_filter = False
        return self.run_algorithm(collected, cycle).status is None

    def new_cycle(self, collected: CollectedGroup) -> GroupCycle:
        """What the attempts of the members share; the snapshot has been refreshed."""
        by_key: dict[GroupKey, GroupMembers] = {}
        idle: list[Pod] = []
        for pod_set in self._groups.pod_sets(collected.key):
            members = self._groups.find(pod_set)
            if members is not None:
                by_key[pod_set] = members.copy()
                idle += members.idle_pods()
        return GroupCycle(collected.key, by_key, idle)

    # --- preemption for the whole group ---

    def _preempt(
        self, collected: CollectedGroup, cycle: GroupCycle, outcome: GroupOutcome, status: Status
    ) -> GroupOutcome:
        fitting: list[GroupOutcome] = []
        answer = self._ask_to_preempt(collected, cycle, fitting)
        if answer.is_success:
            outcome = outcome._replace(is_waiting=True)
            # What did not fit was taken back: the last trial that did is that without the victims.
            return outcome.nominated_as(fitting[0]) if fitting else outcome
        if answer.code == Code.ERROR:
            return outcome._replace(status=answer)
        if self._groups.options.evicts_for_whole:
            # Nodes that were kept for the group are of no use to it.
            outcome = outcome.nominated_as(GroupOutcome((), status))
        return outcome._replace(status=status.with_reasons(answer.message))

    def _ask_to_preempt(
        self, collected: CollectedGroup, cycle: GroupCycle, fitting: list[GroupOutcome]
    ) -> Status:
        """Evict pods for the group. By choice, `fitting` gets the last trial in which it fits."""
        plugin = collected.profile.group_post_filter
        if plugin is None:
            return Status.unschedulable(
                "default preemption plugin is not registered, workload aware preemption is disabled"
            )
        try:
            group = self._groups.required_rules(collected.key)
        except CacheError as error:
            return Status.from_error(PluginError(f"failed to get pod group object: {error}"))
        is_own = self._groups.options.evicts_for_whole
        if group.topology_key is not None and not is_own:
            return Status.unschedulable(
                "workload aware preemption is not supported for pod groups with scheduling "
                "constraints"
            )

        def fits() -> Status | None:
            outcome = self.run_algorithm(collected, cycle)
            if outcome.status is None and is_own:
                fitting[:] = [outcome]
            return outcome.status

        trial = SnapshotTrial(self._snapshot)
        cycle.runs_post_filter = False
        try:
            return plugin.group_post_filter(GroupTrial(group, _pods_of(collected), trial, fits))
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            return fault_status(error, plugin_name(plugin), GROUP_POST_FILTER)
        finally:
            cycle.runs_post_filter = True
            trial.undo()


class GroupAttempt:
    """The attempt of a group; `outcome` is None until its members were tried.

    `decide` is its cycle, and may wait; `conclude` carries out what that came to.
    """

    def __init__(self, groups: GroupScheduler, collected: CollectedGroup, started_s: float) -> None:
        self._groups = groups
        self._collected = collected
        self._started_s = started_s
        self.outcome: GroupOutcome | None = None

    @property
    def has_victims(self) -> bool:
        outcome = self.outcome
        return outcome is not None and (outcome.is_waiting or outcome.has_victims)

    @property
    def is_unplaced_group(self) -> bool:
        return self.outcome is not None and self.outcome.status is not None

    def decide(self) -> None:
        self.outcome = self._groups.decide(self._collected)

    def conclude(self) -> None:
        assert self.outcome is not None
        self._groups.conclude(self._collected, self.outcome, self._started_s)


def result_of(outcome: GroupOutcome) -> str:
    """The label of the metric."""
    if outcome.status is None:
        return "scheduled"
    if not outcome.status.is_rejected:
        return "error"
    return "waiting_on_preemption" if outcome.is_waiting else "unschedulable"


def _pods_of(collected: CollectedGroup) -> Sequence[PodInfo]:
    return [queued_pod.pod_info for queued_pod in collected.queued_pods]
