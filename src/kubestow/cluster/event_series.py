"""Events that repeat, counted as one series (spec 09 §9.3).

The same event on the same version of an object is not created twice: the second time the first
event gets a count, after that the count grows in memory and is written from time to time.

    first ──► create ──again──► patch: count 2 ──again──► count in memory
                │                                          ├── every 30 min: patch
                └── quiet for 6 min: removed               └── quiet for 6 min: patch, removed

Not here: sending anything (`events`).
"""

from typing import Final, NamedTuple

import msgspec

from kubestow.api.coordination import Event, EventSeries
from kubestow.api.meta import JsonObject, ObjectReference
from kubestow.clock import NANOSECONDS
from kubestow.cluster.documents import microseconds_at

FINISH_S: Final = 360.0  # a series without events for this long is over; also the check interval
REFRESH_S: Final = 1800.0

# A pod is bound once: keeping each for six minutes would cost memory and never find a match.
_ONCE: Final = frozenset({"Scheduled"})


class SeriesKey(NamedTuple):
    """What makes two events the same; the note is not part of it."""

    type: str
    action: str
    reason: str
    reporting_controller: str
    reporting_instance: str
    regarding: ObjectReference
    related: ObjectReference | None


class Series:
    """An event and how often it has happened."""

    __slots__ = ("count", "event", "is_being_sent", "last_ns", "sent_count")

    def __init__(self, event: Event, now_ns: int) -> None:
        self.event: Final = event
        self.count = 1
        self.last_ns = now_ns
        self.sent_count = 0  # what the server has: 0 nothing, 1 the event, 2 its series
        self.is_being_sent = False

    @property
    def is_due(self) -> bool:
        """Whether a write is due now: of the event itself, or of the first repetition."""
        return self.sent_count < min(self.count, 2)

    def patch(self) -> JsonObject:
        last = microseconds_at(self.last_ns)
        text = f"{last:%Y-%m-%dT%H:%M:%S.%f}Z"
        return {"series": {"count": self.count, "lastObservedTime": text}}

    def event_with_series(self) -> Event:
        series = EventSeries(count=self.count, last_observed_time=microseconds_at(self.last_ns))
        return msgspec.structs.replace(self.event, series=series)


class SeriesCache:
    """The events of the last minutes."""

    def __init__(self) -> None:
        self._series: dict[SeriesKey, Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def count(self, event: Event, now_ns: int) -> Series:
        """The series this event belongs to, with the event counted."""
        if event.reason in _ONCE:
            return Series(event, now_ns)
        key = key_of(event)
        found = self._series.get(key)
        if found is not None:
            found.count += 1
            found.last_ns = now_ns
            return found
        series = self._series[key] = Series(event, now_ns)
        return series

    def repeated(self) -> list[Series]:
        """The series to be written from time to time."""
        return [series for series in self._series.values() if series.count > 1]

    def finish(self, now_ns: int) -> list[Series]:
        """Remove finished series; return those to be written a last time."""
        quiet_ns = now_ns - int(FINISH_S * NANOSECONDS)
        finished = [key for key, series in self._series.items() if series.last_ns < quiet_ns]
        removed = [self._series.pop(key) for key in finished]
        return [series for series in removed if series.count > 1]


def key_of(event: Event) -> SeriesKey:
    return SeriesKey(
        event.type,
        event.action,
        event.reason,
        event.reporting_controller,
        event.reporting_instance,
        event.regarding,
        event.related,
    )
