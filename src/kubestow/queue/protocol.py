"""What the engine needs of a scheduling queue of any version."""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from kubestow.api.pod import Pod
from kubestow.framework.events import ClusterEvent
from kubestow.framework.handle import Nominator
from kubestow.queue.moves import Place
from kubestow.queue.queued_pod import QueuedPod

# Whether an event may move this parked pod.
PreCheck = Callable[[Pod], bool]


class QueueStatistics(msgspec.Struct, frozen=True, kw_only=True):
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
        """Add a new pod."""
        ...

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod by a newer version."""
        ...

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound."""
        ...

    async def pop(self) -> QueuedPod | None:
        """Wait for the next pod to try; None once the queue is closed."""
        ...

    def pop_nowait(self) -> QueuedPod | None:
        """The next pod to try, if there is one."""
        ...

    def done(self, uid: str) -> None:
        """The attempt of that pod succeeded or was abandoned."""
        ...

    def add_unschedulable_if_not_present(self, queued_pod: QueuedPod) -> None:
        """Requeue a pod after a failed attempt; raise QueueError if it is in the queue."""
        ...

    def move_all(
        self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None
    ) -> None:
        """Move the parked pods that the event may make schedulable."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make these pods active without waiting for their backoff."""
        ...

    async def run_timers(self) -> None:
        """Flush periodically until the queue is closed."""
        ...

    def close(self) -> None:
        """Stop the timers; `pop` returns None from then on."""
        ...

    def statistics(self) -> QueueStatistics: ...

    def place_of(self, pod: Pod) -> Place | None:
        """Where the pod is; None if it is not in the queue."""
        ...

    def pending_pods(self) -> tuple[list[Pod], str]:
        """All waiting pods, and a text with the size of each container."""
        ...
