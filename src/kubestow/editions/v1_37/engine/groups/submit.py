"""What happens to each member after the trial of its group (spec 12 §15.3)."""

from collections.abc import Mapping, Sequence

from kubestow.editions.v1_37.engine.groups.tree import PartFinding
from kubestow.engine.decision import CLEAR_NOMINATION, Nomination
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.outcome import GROUP_UNSCHEDULABLE, MemberOutcome
from kubestow.engine.groups.submit import SentBack
from kubestow.engine.placing import Placer
from kubestow.framework.metrics import NO_METER
from kubestow.framework.profile import Profile
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod


class TreeSubmitter:
    def __init__(self, placer: Placer, failures: FailureHandler) -> None:
        self._placer = placer
        self._failures = failures

    def submit(
        self,
        profile: Profile,
        waiting: Sequence[QueuedPod],
        leaf: PartFinding,
        nominations: Mapping[str, str] | None,
    ) -> None:
        """Place the members of a group or send them back, in their order."""
        for member in leaf.members:
            state = member.decision.state
            state.meter.skip_pause()
            back = sent_back(leaf, member, nominations)
            if back is None:
                state.group_cycle = None
                self._placer.place(profile, member.queued_pod, member.decision)
            else:
                self._failures.handle(member.queued_pod, back.status, back.nomination, state.meter)
        for queued_pod in waiting[len(leaf.members) :]:
            back = sent_back_untried(leaf, queued_pod, nominations)
            self._failures.handle(queued_pod, back.status, back.nomination, NO_METER)


def sent_back(
    leaf: PartFinding, member: MemberOutcome, nominations: Mapping[str, str] | None
) -> SentBack | None:
    """Why a member that was tried goes back to the queue; None if it is placed."""
    group, own = leaf.status, member.status
    if group is None:
        return None if own is None else SentBack(own, member.nomination)
    if group.code == Code.ERROR:
        is_own = own is not None and own.code == Code.ERROR
        return SentBack(own if is_own and own else group, CLEAR_NOMINATION)
    nominated = _nominated(member.queued_pod, nominations)
    if own is not None:
        return SentBack(own, nominated or member.nomination)
    if nominations is not None:
        return SentBack(group, nominated or CLEAR_NOMINATION)
    return SentBack(GROUP_UNSCHEDULABLE.with_reasons(group.message), CLEAR_NOMINATION)


def sent_back_untried(
    leaf: PartFinding, queued_pod: QueuedPod, nominations: Mapping[str, str] | None
) -> SentBack:
    """A member that the trial did not get to has the status of the group."""
    status: Status | None = leaf.status
    assert status is not None, queued_pod
    if status.code == Code.ERROR:
        return SentBack(status, CLEAR_NOMINATION)
    return SentBack(leaf.untried or status, _nominated(queued_pod, nominations))


def _nominated(queued_pod: QueuedPod, nominations: Mapping[str, str] | None) -> Nomination | None:
    node_name = None if nominations is None else nominations.get(queued_pod.uid)
    return None if node_name is None else Nomination(node_name)
