"""Backoff, gates and verdicts for an entry that may be a group (spec 12 §14.3, §14.7)."""

import math

from kubestow.editions.v1_37.queue.queued_group import QueuedGroup
from kubestow.queue.backoff import BackoffPolicy
from kubestow.queue.gating import Gatekeeper
from kubestow.queue.hint_call import AskHint
from kubestow.queue.interest import Audience, Interest
from kubestow.queue.moves import Verdict, judge
from kubestow.queue.queued_pod import ZERO_TIME_NS, QueuedPod


class GroupBackoffPolicy(BackoffPolicy):
    """The longest wait grows with the square root of the number of members."""

    __slots__ = ()

    def expiry_ns(self, queued_pod: QueuedPod) -> int:
        if not isinstance(queued_pod, QueuedGroup) or queued_pod.backoff_expiry_ns is not None:
            return super().expiry_ns(queued_pod)
        count = queued_pod.consecutive_errors_count or queued_pod.unschedulable_count
        if count == 0 or self.max_ns == 0:
            return ZERO_TIME_NS
        longest_ns = int(self.max_ns * math.sqrt(len(queued_pod.members)))
        doublings = count - 1
        is_longest = self.initial_ns > longest_ns >> doublings
        duration_ns = longest_ns if is_longest else self.initial_ns << doublings
        queued_pod.backoff_expiry_ns = self.cut(queued_pod.timestamp_ns + duration_ns)
        return queued_pod.backoff_expiry_ns


class GroupGatekeeper(Gatekeeper):
    """One refused member holds its whole group back."""

    def admit(self, queued_pod: QueuedPod) -> bool:
        if not isinstance(queued_pod, QueuedGroup):
            return super().admit(queued_pod)
        refused: QueuedPod | None = None
        for member in queued_pod.members:
            if not super().admit(member):
                refused = member
        queued_pod.gating_plugin = "" if refused is None else refused.gating_plugin
        queued_pod.gating_events = () if refused is None else refused.gating_events
        return refused is None


class GroupJudge:
    """The verdict of an event on an entry: of a group, the strongest of its members'."""

    def __init__(self, interest: Interest) -> None:
        self._interest = interest

    def __call__(
        self,
        queued_pod: QueuedPod,
        rejector_mask: int,
        audience: Audience,
        old: object,
        new: object,
        ask: AskHint,
    ) -> Verdict:
        if not isinstance(queued_pod, QueuedGroup):
            return judge(queued_pod, rejector_mask, audience, old, new, ask)
        found = Verdict.SKIP
        for member in queued_pod.members:
            mask = self._interest.mask_of(member.rejectors)
            verdict = judge(member, mask, audience, old, new, ask)
            if verdict is Verdict.IMMEDIATELY:
                return verdict
            if verdict is Verdict.AFTER_BACKOFF:
                found = verdict
        return found
