"""The pods that wait in a queue, whether they are queued by themselves or with their group."""

from collections.abc import Iterator

from kubestow.engine.scheduler import Scheduler
from kubestow.queue import QueuedPod
from kubestow.queue.queue import SchedulingQueue


def queue_of(scheduler: Scheduler) -> SchedulingQueue:
    assert isinstance(scheduler.queue, SchedulingQueue)
    return scheduler.queue


def entries(scheduler: Scheduler) -> Iterator[QueuedPod]:
    """What is popped as one: a pod, or in v1.37 a group."""
    return (entry for _, entry in queue_of(scheduler).waiting())


def tried_pods(scheduler: Scheduler) -> Iterator[QueuedPod]:
    """The waiting pods that no gate holds back."""
    for entry in entries(scheduler):
        if not entry.is_gated:
            yield from entry.waiting_pods


def waiting_pods(scheduler: Scheduler) -> Iterator[QueuedPod]:
    """All waiting pods, also members of groups that are not known, or are being tried."""
    for entry in entries(scheduler):
        yield from entry.waiting_pods
    yield from queue_of(scheduler).incomplete()
    yield from queue_of(scheduler).pending()
