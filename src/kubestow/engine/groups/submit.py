"""What happens to each member after the trial of its group (spec 11 §7.5)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubestow.api.pod import Pod
from kubestow.cache.groups import Groups
from kubestow.engine.decision import CLEAR_NOMINATION, FitError, GroupMisfitError, Nomination
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.collect import CollectedGroup
from kubestow.engine.groups.outcome import GROUP_UNSCHEDULABLE, GroupOutcome, MemberOutcome
from kubestow.engine.placing import Placer
from kubestow.errors import PluginError
from kubestow.framework.metrics import NO_METER, CycleMeter
from kubestow.framework.profile import Profile
from kubestow.framework.status import Code, Status
from kubestow.plugins.gangs import Gangs
from kubestow.queue import QueuedPod


class Submitter:
    def __init__(
        self,
        groups: Groups,
        placer: Placer,
        failures: FailureHandler,
        activate: Callable[[Iterable[Pod]], None],
    ) -> None:
        self._groups = groups
        self._activate = activate
        self._placer = placer
        self._failures = failures

    def submit(self, collected: CollectedGroup, outcome: GroupOutcome) -> None:
        """Place the members or send them back, in their order."""
        tried = len(outcome.members)
        for member in outcome.members:
            self._submit(collected.profile, outcome, member)
        for queued_pod in collected.queued_pods[tried:]:
            self._submit_untried(outcome, queued_pod)
        if outcome.status is None and self._groups.options.waits_for_events:
            # The trial was for the group. What is left of it is tried for its own sake, once.
            left = [member for member in outcome.members if member.status is not None]
            self._activate([member.queued_pod.pod for member in left])

    def _submit(self, profile: Profile, outcome: GroupOutcome, member: MemberOutcome) -> None:
        queued_pod, state = member.queued_pod, member.decision.state
        state.meter.skip_pause()
        back = sent_back(outcome, member)
        if back is not None:
            self._send_back(queued_pod, back.status, back.nomination, state.meter)
            return
        state.group_cycle = None
        self._groups.stop_trying(queued_pod.pod)
        self._placer.place(profile, queued_pod, member.decision)

    def _submit_untried(self, outcome: GroupOutcome, queued_pod: QueuedPod) -> None:
        """A member that the trial did not get to has the status of the group."""
        status = outcome.status
        assert status is not None, queued_pod
        nomination = CLEAR_NOMINATION if status.code == Code.ERROR else None
        self._send_back(queued_pod, status, nomination, NO_METER)

    def _send_back(
        self,
        queued_pod: QueuedPod,
        status: Status,
        nomination: Nomination | None,
        meter: CycleMeter,
    ) -> None:
        pod: Pod = queued_pod.pod
        self._groups.stop_trying(pod)
        if self._groups.options.waits_for_events and status.is_rejected:
            status = _waiting_for_events(status)
        self._failures.handle(queued_pod, status, nomination, meter)


class SentBack(NamedTuple):
    """A member that is not placed: its condition, and the change of its nominated node."""

    status: Status
    nomination: Nomination | None


def sent_back(outcome: GroupOutcome, member: MemberOutcome) -> SentBack | None:
    """Why a member that was tried goes back to the queue; None if it is placed."""
    group, own = outcome.status, member.status
    if group is not None and group.code == Code.ERROR:
        is_own = own is not None and own.code == Code.ERROR
        return SentBack(own if is_own and own else group, CLEAR_NOMINATION)
    if own is None:
        return _sent_back_fitting(outcome, member)
    if member.needs_preemption and not outcome.is_waiting:
        return SentBack(_held_up(member), CLEAR_NOMINATION)
    return SentBack(own, member.nomination)


def _sent_back_fitting(outcome: GroupOutcome, member: MemberOutcome) -> SentBack | None:
    group = outcome.status
    if group is None:
        return None
    if not group.is_rejected:
        text = f"received unexpected pod group scheduling algorithm status code: {group.code.label}"
        return SentBack(Status.from_error(PluginError(text)), CLEAR_NOMINATION)
    if outcome.is_waiting:
        return SentBack(group, Nomination(member.node_name))
    if not outcome.asks_permit:
        return SentBack(GROUP_UNSCHEDULABLE.with_reasons(group.message), CLEAR_NOMINATION)
    return SentBack(_held_up(member), CLEAR_NOMINATION)


def _held_up(member: MemberOutcome) -> Status:
    """The status of a member that could be placed, but not enough of the others."""
    permit = member.permit
    return GROUP_UNSCHEDULABLE.with_reasons("" if permit is None else permit.message)


def _waiting_for_events(status: Status) -> Status:
    """The status with its text, of a pod that waits: one that no plugin rejected would be tried
    again without an event."""
    if isinstance(status.error, FitError):
        return status
    text, *reasons = status.all_reasons
    return Status(status.code, *reasons, error=GroupMisfitError(text, Gangs.name))
