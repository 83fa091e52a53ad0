"""What follows the decisions of a scheduler."""

from typing import Protocol

from kubestow.engine.decision import Decision
from kubestow.queue import QueuedPod


class DecisionListener(Protocol):
    """Called with every decision, before the pod is placed or goes back to the queue.

    The decision is valid during the call only, because the next cycle overwrites what it refers to;
    `decision.freeze()` gives a copy to keep. Timings are kept if there is a listener.

    Members of a group are decided on one after the other before any of them is placed; where
    several placements are tried, each member once for each.
    """

    def __call__(self, decision: Decision, queued_pod: QueuedPod, /) -> None: ...
