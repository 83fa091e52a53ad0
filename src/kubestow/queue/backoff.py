"""How long a pod waits after a failed attempt, and the pods that wait (spec 02 §3, §4).

With the gate SchedulerPopFromBackoffQ (`is_aligned`) an expiry is truncated to a whole second, and
so is the time it is compared with: pods whose waits end within one second form one window and leave
it in the order of the active queue.

Pods rejected by plugins and pods whose attempt had an error wait in separate heaps: only the former
may be popped early when no pod is active.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from kubestow.clock import NANOSECONDS
from kubestow.queue.heap import KeyedHeap, SortKey
from kubestow.queue.queued_pod import ZERO_TIME_NS, QueuedPod

_LOG: Final = logging.getLogger(__name__)

INITIAL_BACKOFF_NS: Final = 1 * NANOSECONDS
MAX_BACKOFF_NS: Final = 10 * NANOSECONDS
WINDOW_NS: Final = NANOSECONDS


class BackoffPolicy:
    __slots__ = ("initial_ns", "is_aligned", "max_ns")

    def __init__(
        self,
        *,
        initial_ns: int = INITIAL_BACKOFF_NS,
        max_ns: int = MAX_BACKOFF_NS,
        is_aligned: bool = True,
    ) -> None:
        self.initial_ns = initial_ns
        self.max_ns = max_ns
        self.is_aligned = is_aligned

    def duration_ns(self, count: int) -> int:
        """The wait after `count` failures in a row, at least one: doubled up to the maximum."""
        doublings = count - 1
        if self.initial_ns > self.max_ns >> doublings:
            return self.max_ns
        return self.initial_ns << doublings

    def expiry_ns(self, queued_pod: QueuedPod) -> int:
        """When the pod's wait is over; computed once per attempt."""
        expiry_ns = queued_pod.backoff_expiry_ns
        if expiry_ns is not None:
            return expiry_ns
        count = queued_pod.consecutive_errors_count or queued_pod.unschedulable_count
        if count == 0 or self.max_ns == 0:
            return ZERO_TIME_NS
        expiry_ns = self.cut(queued_pod.timestamp_ns + self.duration_ns(count))
        queued_pod.backoff_expiry_ns = expiry_ns
        return expiry_ns

    def is_backing_off(self, queued_pod: QueuedPod, now_ns: int) -> bool:
        # Equal still waits: the expiry was truncated to a whole second, so the wait could end up to
        # a second early.
        return self.expiry_ns(queued_pod) >= self.cut(now_ns)

    def first_flush_ns(self, now_ns: int) -> int:
        """When a flush loop started now runs for the first time; then every second."""
        return self.cut(now_ns + WINDOW_NS)

    def cut(self, time_ns: int) -> int:
        """The start of the window that the time is in."""
        return time_ns // WINDOW_NS * WINDOW_NS if self.is_aligned else time_ns


class BackoffQueue:
    """The pods that wait: after a rejection, and after an error."""

    def __init__(
        self,
        policy: BackoffPolicy,
        *,
        sort_key: Callable[[QueuedPod], SortKey],
        count_changed: Callable[[int], None] | None = None,
    ) -> None:
        self._policy = policy

        def by_window(queued_pod: QueuedPod) -> SortKey:
            return (policy.expiry_ns(queued_pod), sort_key(queued_pod))

        rejected_key = by_window if policy.is_aligned else policy.expiry_ns
        self._rejected: KeyedHeap[QueuedPod] = KeyedHeap(
            sort_key=rejected_key, count_changed=count_changed
        )
        self._failed: KeyedHeap[QueuedPod] = KeyedHeap(
            sort_key=policy.expiry_ns, count_changed=count_changed
        )

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __contains__(self, key: str) -> bool:
        return key in self._rejected or key in self._failed

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._rejected
        yield from self._failed

    @property
    def rejected_count(self) -> int:
        return len(self._rejected)

    @property
    def failed_count(self) -> int:
        return len(self._failed)

    def has_failed(self, key: str) -> bool:
        """Whether the pod waits because its attempt had an error."""
        return key in self._failed

    def get(self, key: str) -> QueuedPod | None:
        return self._rejected.get(key) or self._failed.get(key)

    def add(self, queued_pod: QueuedPod) -> bool:
        """Insert the pod; False if it was in the other heap, which is a bug."""
        key = queued_pod.key
        here, there = self._rejected, self._failed
        if not queued_pod.has_rejectors:
            here, there = there, here
        here.add_or_update(key, queued_pod)
        if there.discard(key) is None:
            return True
        _LOG.error("pod %r was added to one backoff heap while it was in the other", key)
        return False

    def update(self, queued_pod: QueuedPod) -> None:
        """Reorder a pod whose object changed, in the heap it is in."""
        heap = self._rejected if queued_pod.key in self._rejected else self._failed
        heap.add_or_update(queued_pod.key, queued_pod)

    def discard(self, key: str) -> QueuedPod | None:
        return self._rejected.discard(key) or self._failed.discard(key)

    def pop_rejected(self) -> QueuedPod | None:
        """Take the first pod that was rejected by plugins, even if its wait is not over."""
        return self._rejected.pop_if_any()

    def pop_completed(self, now_ns: int) -> QueuedPod | None:
        """Take the next pod whose wait is over: rejected ones first, then failed ones."""
        for heap in (self._rejected, self._failed):
            head = heap.peek()
            if head is not None and not self._policy.is_backing_off(head, now_ns):
                return heap.pop()
        return None
