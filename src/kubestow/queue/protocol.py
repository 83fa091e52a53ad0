"""What the engine needs of a scheduling queue, whichever version it belongs to."""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from kubestow.api.pod import Pod
from kubestow.framework.events import ClusterEvent
from kubestow.framework.handle import Nominator
from kubestow.queue.queued_pod import QueuedPod

# Whether an event may wake this parked pod.
PreCheck = Callable[[Pod], bool]


class QueueStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How many pods are where."""

    active: int
    backoff: int
    error_backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: int
    nominated: int


class Queue(Protocol):
    @property
    def nominator(self) -> Nominator: ...

    def add(self, pod: Pod) -> None:
        """Take in a new pod."""
        ...

    def update(self, old: Pod, new: Pod) -> None:
        """Take note of a newer version of a pod."""
        ...

    def delete(self, pod: Pod) -> None:
        """Forget a pod that was deleted or bound."""
        ...

    async def pop(self) -> QueuedPod | None:
        """Wait for the next pod to try; None once the queue is closed."""
        ...

    def pop_nowait(self) -> QueuedPod | None:
        """The next pod to try, if there is one."""
        ...

    def done(self, uid: str) -> None:
        """The attempt of that pod is over: it succeeded, or was given up."""
        ...

    def add_unschedulable_if_not_present(self, queued_pod: QueuedPod) -> None:
        """Take a pod back after a failed attempt; raise QueueError if it is here already."""
        ...

    def move_all(
        self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None
    ) -> None:
        """Something happened in the cluster: wake the parked pods it may help."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make these pods active at once, without regard to backoff."""
        ...

    async def run_timers(self) -> None:
        """Flush periodically until the queue is closed."""
        ...

    def close(self) -> None:
        """Stop the timers and let `pop` return None."""
        ...

    def statistics(self) -> QueueStatistics: ...

    def pending_pods(self) -> tuple[list[Pod], str]:
        """All waiting pods and how many wait where, in words."""
        ...
