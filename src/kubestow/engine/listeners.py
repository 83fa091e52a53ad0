"""What follows the decisions of a scheduler."""

from collections.abc import Iterable
from typing import Protocol

from kubestow.engine.decision import Decision
from kubestow.queue import QueuedPod


class DecisionListener(Protocol):
    """Called with every decision, before the pod is placed or goes back to the queue.

    The decision is valid during the call only, because the next cycle overwrites what it refers to;
    `decision.freeze()` gives a copy to keep. Timings are kept if there is a listener, unless it has
    the attribute `reads_timings` and that is False.

    Members of a group are decided on one after the other before any of them is placed; where
    several placements are tried, each member once for each.
    """

    def __call__(self, decision: Decision, queued_pod: QueuedPod, /) -> None: ...


def reads_timings(listeners: Iterable[DecisionListener]) -> bool:
    """Whether timings have to be kept for one of them."""
    return any(getattr(listener, "reads_timings", True) for listener in listeners)
