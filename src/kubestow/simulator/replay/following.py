"""A scheduler that decides as always, and then does what was recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kubestow.engine.decision import Decision
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.scheduler import Scheduler, SchedulingAttempt
from kubestow.queue import QueuedPod


@dataclass(kw_only=True, eq=False)
class FollowingScheduler(Scheduler):
    """Decides as always, then does what `follow` returns."""

    follow: Callable[[Decision], Decision] = field(default=lambda decision: decision)

    def conclude(self, attempt: SchedulingAttempt, decision: Decision) -> Decision:
        return super().conclude(attempt, self.follow(decision))

    def decide_early(self, queued_pod: QueuedPod) -> "EarlyDecision | None":
        """What a cycle that begins now comes to, to be carried out later; None if it is skipped."""
        groups = self.groups
        if groups is not None and groups.is_member(queued_pod):
            collected = groups.collect(queued_pod)
            if collected is None:
                return None
            started_s, outcome = self.metrics.now_s(), groups.decide(collected)
            return EarlyDecision(
                queued_pod, lambda: self._conclude_group(groups, collected, outcome, started_s)
            )
        attempt = self._begin(queued_pod)
        if attempt is None:
            return None
        decision = self._decide(attempt)
        return EarlyDecision(queued_pod, lambda: self.conclude(attempt, decision))


class EarlyDecision(NamedTuple):
    """A decision that is made; `conclude` carries it out."""

    queued_pod: QueuedPod
    conclude: Callable[[], object]


class FollowingFactory(SchedulerFactory):
    scheduler_type = FollowingScheduler
