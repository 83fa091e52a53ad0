"""Places the members of a group on the snapshot, one after the other, and undoes it (spec 11 §7.2).

Each member is decided on as a pod of its own, on the snapshot as the members before it left it.
What is undone: places on nodes, group counts, Reserve, nominations. What is not, as upstream
(§7.4): evictions, members activated or released by Permit, where the next search begins.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.cache.trial import SnapshotTrial
from kubestow.engine.decide import Decider
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.groups.collect import CollectedGroup
from kubestow.engine.groups.outcome import (
    GROUP_UNSCHEDULABLE,
    WAITING_FOR_PREEMPTION,
    GroupOutcome,
    MemberOutcome,
)
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.observer import DecisionListener, Observer, callers
from kubestow.engine.placing import as_misfit, unreserve
from kubestow.errors import CacheError, PluginError
from kubestow.framework.faults import SCHEDULING_CYCLE, attempt_fault
from kubestow.framework.group_cycle import GroupCycle, GroupPlacement
from kubestow.framework.handle import Nominator
from kubestow.framework.metrics import PERMIT, RESERVE
from kubestow.framework.profile import Profile
from kubestow.framework.runner import run_permit, run_reserve
from kubestow.framework.status import Code, Status
from kubestow.framework.waiting import PERMIT_WAIT_S_MAX
from kubestow.queue import QueuedPod

if TYPE_CHECKING:
    from kubestow.engine.batching import Batches

log = logging.getLogger(__name__)


class GroupTrials:
    """Tries groups on one snapshot. A group that was tried twice gets the same result, except for
    where the search for nodes begins."""

    def __init__(
        self,
        snapshot: Snapshot,
        decider: Decider,
        nominator: Nominator,
        metrics: SchedulerMetrics,
        listeners: Sequence[DecisionListener] = (),
        observers: Sequence[Observer] = (),
        *,
        ignores_surplus: bool = False,
        batches: "Batches | None" = None,
    ) -> None:
        """`ignores_surplus`: members tried after the group fits do not change that."""
        self._batches = batches
        self._ignores_surplus = ignores_surplus
        self._snapshot = snapshot
        self._decider = decider
        self._nominator = nominator
        self._metrics = metrics
        self._listeners = listeners
        self._on_decided = callers(observers, Observer.decided)
        self._on_tried = callers(observers, Observer.group_tried)

    def start_group(self) -> None:
        """One or more trials of one group follow."""
        self._decider.start_group()

    def run(
        self, collected: CollectedGroup, cycle: GroupCycle, placement: GroupPlacement | None = None
    ) -> GroupOutcome:
        """Try all members on the nodes of the placement, or on all."""
        # Spec 11 §8.2: as many nodes as there are is no restriction.
        is_all = placement is None or len(placement.rows) == len(self._snapshot)
        cycle.placement = None if is_all else placement
        try:
            outcome = self._run(collected, cycle)
        finally:
            cycle.placement = None
        if cycle.runs_post_filter:
            for call in self._on_tried:
                call(outcome, placement)
        return outcome

    def _run(self, collected: CollectedGroup, cycle: GroupCycle) -> GroupOutcome:
        trial = SnapshotTrial(self._snapshot)
        kept: list[MemberOutcome] = []
        cycle.is_surplus = False
        self._decider.group_cycle = cycle
        try:
            return self._try_all(collected, cycle, trial, kept)
        finally:
            self._decider.group_cycle = None
            for member in reversed(kept):
                assert member.assumed is not None, member
                self._give_back(collected.profile, cycle, member.decision, member.assumed)
            trial.undo()

    def _try_all(
        self,
        collected: CollectedGroup,
        cycle: GroupCycle,
        trial: SnapshotTrial,
        kept: list[MemberOutcome],
    ) -> GroupOutcome:
        members: list[MemberOutcome] = []
        status: Status | None = GROUP_UNSCHEDULABLE
        is_waiting = needs_preemption = False
        # The last member, if it did not fit and so changed nothing.
        misfit: MemberOutcome | None = None
        for queued_pod in collected.queued_pods:
            self._decider.rest()
            member = self.repeat(collected.profile, queued_pod, misfit, cycle)
            if member is None:
                member = self.try_member(collected.profile, queued_pod, cycle, trial)
            members.append(member)
            if member.assumed is None:
                assert member.status is not None, member
                misfit = member if member.status.is_rejected else None
                if misfit is not None or cycle.is_surplus:
                    continue
                return GroupOutcome(members, failed_by(member.status))
            misfit = None
            kept.append(member)
            needs_preemption |= member.needs_preemption
            if member.permit is None and not cycle.is_surplus:
                # A later member that needs an eviction makes a group wait that could be placed.
                is_waiting = needs_preemption
                status = WAITING_FOR_PREEMPTION if is_waiting else None
                cycle.is_surplus = self._ignores_surplus and not is_waiting
        return GroupOutcome(members, status, is_waiting)

    def repeat(
        self,
        profile: Profile,
        queued_pod: QueuedPod,
        misfit: MemberOutcome | None,
        cycle: GroupCycle,
    ) -> MemberOutcome | None:
        """The result of the member before, for an equal one; None if it has to be tried."""
        if misfit is None or not misfit.decision.is_by_shape:
            return None
        pod, status = queued_pod.pod_info, misfit.status
        if status is not misfit.decision.status:
            return None
        if not _are_equal(misfit.queued_pod.pod_info, pod):
            return None
        if cycle.runs_post_filter and not _is_repeated(profile, pod):
            return None
        decision = misfit.decision
        decision.state.meter.algorithm_ended()
        self._metrics.decided(decision)
        if self._listeners:
            # Only they read for which pod it is.
            decision = decision.repeated_for(pod)
        self._notify(decision, queued_pod, cycle)
        return MemberOutcome(queued_pod, decision, status, misfit.nomination)

    def _notify(self, decision: Decision, queued_pod: QueuedPod, cycle: GroupCycle) -> None:
        if not cycle.runs_post_filter:
            return
        for listener in self._listeners:
            listener(decision, queued_pod)
        for call in self._on_decided:
            call(decision, queued_pod)

    def try_member(
        self, profile: Profile, queued_pod: QueuedPod, cycle: GroupCycle, trial: SnapshotTrial
    ) -> MemberOutcome:
        decision = self._decide(profile, queued_pod, cycle)
        node_name = decision.node_name
        if decision.status is not None:
            nomination = decision.nomination
            if nomination is None or not nomination.node_name:
                return MemberOutcome(queued_pod, decision, decision.status, nomination)
            node_name = nomination.node_name
        pod = queued_pod.pod_info.assigned_to(node_name)
        failed, permit = self._assume(profile, decision, pod, cycle, trial)
        if failed is not None:
            return MemberOutcome(queued_pod, decision, failed, CLEAR_NOMINATION, permit=permit)
        return MemberOutcome(
            queued_pod,
            decision,
            decision.status,
            decision.nomination,
            node_name,
            pod,
            permit,
            needs_preemption=decision.status is not None,
        )

    def _decide(self, profile: Profile, queued_pod: QueuedPod, cycle: GroupCycle) -> Decision:
        meter = self._metrics.start_attempt(profile.name, keeps_timings=bool(self._listeners))
        batches = self._batches
        try:
            decision = self._decider.decide(
                profile,
                queued_pod.pod_info,
                meter,
                may_be_set_aside=False,
                batch=None if batches is None else batches.attempt(profile, queued_pod),
            )
        except BaseException as error:
            # As for pods of their own: the same pod would end the process again after a restart.
            decision = Decision(queued_pod.pod_info, profile.name, self._snapshot.names)
            decision.fail(attempt_fault(error, SCHEDULING_CYCLE), CLEAR_NOMINATION)
        meter.algorithm_ended()
        self._metrics.decided(decision)
        self._notify(decision, queued_pod, cycle)
        return decision

    def _assume(
        self,
        profile: Profile,
        decision: Decision,
        pod: PodInfo,
        cycle: GroupCycle,
        trial: SnapshotTrial,
    ) -> tuple[Status | None, Status | None]:
        """Put the member on its node; what failed, and the answer of Permit."""
        state, node_name = decision.state, pod.pod.spec.node_name
        try:
            trial.add(pod)
        except CacheError as error:
            return Status.from_error(error), None
        cycle.assume(pod.pod)
        self._nominator.delete(pod.pod)
        state.timer.resume()
        failed = run_reserve(profile, state, pod, node_name)
        state.meter.point_ended(RESERVE, failed)
        permit = None
        if failed is None:
            permit = run_permit(profile, state, pod, node_name, PERMIT_WAIT_S_MAX).status
            state.meter.point_ended(PERMIT, permit)
            if permit is None or permit.code == Code.WAIT:
                return None, permit
            failed = permit
        self._give_back(profile, cycle, decision, pod)
        trial.remove(pod)
        return as_misfit(node_name, failed), permit

    def _give_back(
        self, profile: Profile, cycle: GroupCycle, decision: Decision, pod: PodInfo
    ) -> None:
        """Undo what was reserved and counted; the snapshot is left to the trial."""
        unreserve(profile, decision.state, pod, pod.pod.spec.node_name)
        cycle.forget(pod.uid)
        nominated = pod.pod.status.nominated_node_name
        if nominated:
            self._nominator.add(pod.pod, override=nominated)


def _are_equal(pod: PodInfo, other: PodInfo) -> bool:
    """Whether no rule tells the two apart: those about one node, preemption, selectors."""
    if pod.shape is not other.shape or pod.priority != other.priority:
        return False
    spec, other_spec = pod.pod.spec, other.pod.spec
    return (
        not pod.pod.status.nominated_node_name
        and not other.pod.status.nominated_node_name
        and spec.preemption_policy == other_spec.preemption_policy
        and spec.affinity == other_spec.affinity
        and spec.topology_spread_constraints == other_spec.topology_spread_constraints
        and pod.pod_class is other.pod_class
        and pod.pod.metadata.owner_references == other.pod.metadata.owner_references
    )


def _is_repeated(profile: Profile, pod: PodInfo) -> bool:
    """Whether the answer of PostFilter to an equal pod holds for this one."""
    plugins = profile.repeated_post_filter
    if plugins is None:
        return False
    for plugin in plugins:  # noqa: SIM110 - a generator costs more than the loop
        if not plugin.post_filter_repeated(pod):
            return False
    return True


def failed_by(status: Status) -> Status:
    error = status.as_error()
    text = f"failed to schedule other pod from a pod group: {error}"
    return Status.from_error(PluginError(text))
