"""The pods in flight, and the events since each of them was popped (spec 02 §10).

A pod in flight is in no container, so an event cannot move it. Instead the events are logged while
any pod is in flight; when an attempt fails, those since its start decide where the pod goes.

Invariants: `_starts` is in the order of popping, so its first entry has the smallest start; events
before that start are gone. Positions count from the first event ever logged; `_events[0]` has
position `_base`, and the part before `_head` is dropped but not yet cut off.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from kubestow.queue.interest import Audience
from kubestow.queue.metrics import NO_METRICS, POD_POPPED, QueueMetrics

_CUT_MIN: Final = 64  # fewer dropped events stay: cutting them off would move all others


class LoggedEvent(NamedTuple):
    """An event with its listeners, and the object before and after."""

    audience: Audience
    old: object
    new: object


class InFlight:
    def __init__(self, *, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        self._is_counted = metrics is not NO_METRICS
        # An OrderedDict finds its first entry in constant time; a dict would step over the gaps of
        # removed entries each time.
        self._starts: OrderedDict[str, int] = OrderedDict()
        self._events: list[LoggedEvent] = []
        self._base = 0
        self._head = 0

    def __len__(self) -> int:
        return len(self._starts)

    def __contains__(self, uid: str) -> bool:
        return uid in self._starts

    @property
    def event_count(self) -> int:
        return self._base + len(self._events) - self._head

    def uids(self) -> list[str]:
        return list(self._starts)

    def start(self, uid: str) -> bool:
        """Mark the pod as in flight; False if it is already."""
        if uid in self._starts:
            return False
        self._starts[uid] = self._base + len(self._events)
        if self._is_counted:
            self._metrics.in_flight_changed(POD_POPPED, 1, flush=False)
        return True

    def log(self, audience: Audience, old: object, new: object) -> None:
        """Log an event, if any pod is in flight."""
        if not self._starts:
            return
        self._events.append(LoggedEvent(audience, old, new))
        if self._is_counted:
            self._metrics.in_flight_changed(audience.label, 1, flush=False)

    def events_since_pop(self, uid: str) -> list[LoggedEvent] | None:
        """The events since the pod was popped, oldest first; None if it is not in flight."""
        start = self._starts.get(uid)
        return None if start is None else self._events[start - self._base :]

    def done(self, uid: str) -> None:
        """The attempt is over; does nothing for a pod that is not in flight."""
        if self._starts.pop(uid, None) is None:
            return
        if self._events:
            self._drop_unneeded()
        if self._is_counted:
            self._metrics.in_flight_changed(POD_POPPED, -1, flush=not self._starts)

    def _drop_unneeded(self) -> None:
        """Drop the events that were logged before every remaining pod was popped."""
        end = self._base + len(self._events)
        head = next(iter(self._starts.values())) if self._starts else end
        if self._is_counted:
            for event in self._events[self._head - self._base : head - self._base]:
                self._metrics.in_flight_changed(event.audience.label, -1, flush=False)
        self._head = head
        dropped_count = head - self._base
        if head == end or dropped_count >= max(_CUT_MIN, len(self._events) // 2):
            del self._events[:dropped_count]
            self._base = head
