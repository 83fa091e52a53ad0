"""Throughput, latency and depth of the queue over time, one point for each second; how long plugins
took.

A second in which nothing happened has no point. Times are those of the cluster's clock, so that a
demo that runs ten times as fast has ten points in a second.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from kubestow.framework.metrics import Timing
from kubestow.web.protocol import PluginTime, Result, SeriesPoint

POINTS_MAX: Final = 600
# Durations of one second that percentiles are made of.
DURATIONS_MAX: Final = 10_000
_SECOND_MS: Final = 1000


class PageSeries:
    def __init__(self, on_end: Callable[[SeriesPoint], None] = lambda _: None) -> None:
        """`on_end` is called with each second that has ended."""
        self._on_end = on_end
        self._ended: deque[SeriesPoint] = deque(maxlen=POINTS_MAX)
        self._unsent: deque[SeriesPoint] = deque(maxlen=POINTS_MAX)
        self._begin_ms = 0
        # Whether anything happened in the current second, and since it was last sent.
        self._has_begun = False
        self._is_unsent = False
        self._places: tuple[int, ...] = ()
        self._counts: dict[Result, int] = {}
        self._durations_ms: list[float] = []

    def attempt(self, time_ms: int, result: Result, duration_ms: float) -> None:
        self._reach(time_ms)
        self._counts[result] = self._counts.get(result, 0) + 1
        if len(self._durations_ms) < DURATIONS_MAX:
            self._durations_ms.append(duration_ms)
        self._has_begun = self._is_unsent = True

    def depth(self, time_ms: int, places: tuple[int, ...], *, has_changes: bool = False) -> None:
        """How many pods are at each place now; `has_changes`: rows of nodes or pods differ."""
        self._reach(time_ms)
        if has_changes or places != self._places:
            self._places = places
            self._has_begun = self._is_unsent = True

    def current(self) -> SeriesPoint | None:
        """The current second as far as it is; None if nothing has happened in it."""
        return self._point() if self._has_begun else None

    def points(self) -> tuple[SeriesPoint, ...]:
        """All points, the current second as far as it is."""
        return (*self._ended, self._point()) if self._has_begun else tuple(self._ended)

    def take_new(self) -> Sequence[SeriesPoint]:
        """What changed since the last call: ended seconds, and the current one."""
        new = tuple(self._unsent)
        self._unsent.clear()
        if self._is_unsent:
            self._is_unsent = False
            return (*new, self._point())
        return new

    def _reach(self, time_ms: int) -> None:
        begin_ms = time_ms - time_ms % _SECOND_MS
        if begin_ms == self._begin_ms:
            return
        if self._has_begun:
            point = self._point()
            self._ended.append(point)
            self._on_end(point)
            if self._is_unsent:
                self._unsent.append(point)
        self._begin_ms = begin_ms
        self._has_begun = self._is_unsent = False
        self._counts = {}
        self._durations_ms = []

    def _point(self) -> SeriesPoint:
        durations_ms = sorted(self._durations_ms)
        return SeriesPoint(
            time=self._begin_ms,
            scheduled=self._counts.get("scheduled", 0),
            unschedulable=self._counts.get("unschedulable", 0),
            errors=self._counts.get("error", 0),
            p50_ms=_percentile(durations_ms, 0.5),
            p99_ms=_percentile(durations_ms, 0.99),
            places=self._places,
        )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed; 0 without values."""
    if not ordered:
        return 0.0
    return round(ordered[max(0, -int(-share * len(ordered) // 1) - 1)], 3)


class PluginTimes:
    """Calls and their time in total since the page follows, one entry for each plugin of a profile
    at each extension point."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, str], list[float]] = {}
        self._changed: set[tuple[str, str]] = set()

    def add(self, timings: Sequence[Timing]) -> None:
        for timing in timings:
            key = (timing.point, timing.plugin)
            total = self._totals.get(key)
            if total is None:
                total = self._totals[key] = [0, 0.0]
            total[0] += 1
            total[1] += timing.duration_s
            self._changed.add(key)

    def all(self) -> tuple[PluginTime, ...]:
        return tuple(map(self._time, self._totals))

    def take_new(self) -> tuple[PluginTime, ...]:
        """The totals that changed since the last call."""
        changed, self._changed = self._changed, set()
        return tuple(map(self._time, sorted(changed)))

    def _time(self, key: tuple[str, str]) -> PluginTime:
        calls, total_s = self._totals[key]
        return PluginTime(
            point=key[0], plugin=key[1], calls=int(calls), total_ms=round(total_s * 1000, 3)
        )
