"""Measures attempts to schedule a pod (spec 04 §2.9, 09 §8.1).

An attempt is measured about ten times, and the fastest take some thirty microseconds in all. So the
series of a profile are looked up once, and a measurement reads the clock, finds its series by the
extension point and adds to it. Collecting durations to enter many of them at once was tried: it
costs as much as entering them one by one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from kubestow.framework.metrics import Timing, label_of
from kubestow.framework.placements import PLACEMENT_GENERATE, PLACEMENT_SCORE
from kubestow.framework.status import Status
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.instruments import Counter, Histogram, KeptSeries

# The share of attempts in which single plugin calls are timed.
SAMPLED_SHARE: Final = 0.1

_SUCCESS: Final = label_of(None)


def samples(rng: np.random.Generator, share: float = SAMPLED_SHARE) -> Iterator[bool]:
    """Endless; True at random, for the given share of them."""
    while True:
        # One random number per True.
        for _ in range(int(rng.geometric(share)) - 1):
            yield False
        yield True


class ProfileSeries:
    """What is measured of the attempts of one profile.

    points    durations by extension point; where it did not succeed by point and status
    results   attempts and their durations, by result
    plugins   durations by plugin, extension point and status, of all profiles
    """

    __slots__ = ("algorithm", "now_s", "plugins", "points", "results", "waits")

    def __init__(
        self, catalogue: SchedulerCatalogue, profile_name: str, now_s: Callable[[], float]
    ) -> None:
        def find_point(key: str | tuple[str, str]) -> Histogram:
            point, label = (key, _SUCCESS) if isinstance(key, str) else key
            return catalogue.point_duration.labels(point, label, profile_name)

        def find_result(result: str) -> tuple[Counter, Histogram]:
            labels = (result, profile_name)
            return (
                catalogue.schedule_attempts.labels(*labels),
                catalogue.attempt_duration.labels(*labels),
            )

        self.now_s = now_s
        self.algorithm = catalogue.algorithm_duration.only
        self.points = KeptSeries(find_point)
        self.results = KeptSeries(find_result)
        self.plugins = catalogue.plugin_duration
        self.waits = catalogue.permit_wait_duration


class Meter:
    """Measures one attempt (`framework.metrics.CycleMeter`)."""

    __slots__ = ("_last_s", "_plugin_last_s", "_series", "is_sampled", "started_s")

    def __init__(self, series: ProfileSeries, is_sampled: bool) -> None:
        self._series = series
        self.is_sampled = is_sampled
        self.started_s = self._last_s = self._plugin_last_s = series.now_s()

    @property
    def timings(self) -> Sequence[Timing]:
        return ()

    def resume(self) -> None:
        self._last_s = self._plugin_last_s = self._series.now_s()

    def skip_pause(self) -> None:
        now_s = self._series.now_s()
        self.started_s += now_s - self._last_s
        self._last_s = self._plugin_last_s = now_s

    def point_ended(self, point: str, status: Status | None = None) -> None:
        series = self._series
        now_s = series.now_s()
        duration = series.points[point if status is None else (point, status.code.label)]
        # As `observe`, without a call: this is done six times for every pod.
        taken_s = now_s - self._last_s
        bucket = 0 if taken_s <= duration.lowest else bisect_left(duration.bounds, taken_s)
        duration.counts[bucket] += 1
        duration.sum += taken_s
        self._last_s = self._plugin_last_s = now_s

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        series = self._series
        now_s = series.now_s()
        series.plugins.labels(plugin, point, label_of(answer)).observe(now_s - self._plugin_last_s)
        self._plugin_last_s = now_s

    def wait_ended(self, status: Status) -> None:
        now_s = self._series.now_s()
        self._series.waits.labels(label_of(status)).observe(now_s - self._last_s)
        self._last_s = self._plugin_last_s = now_s

    def algorithm_ended(self) -> None:
        series = self._series
        series.algorithm.observe(series.now_s() - self.started_s)

    def attempt_ended(self, result: str) -> None:
        count, duration = self._series.results[result]
        count.value += 1
        duration.observe(self._series.now_s() - self.started_s)


class KeepingMeter(Meter):
    """Keeps the timings, for listeners that freeze decisions."""

    __slots__ = ("_timings",)

    def __init__(self, series: ProfileSeries, is_sampled: bool) -> None:
        super().__init__(series, is_sampled)
        self._timings: list[Timing] = []

    @property
    def timings(self) -> Sequence[Timing]:
        return self._timings

    def point_ended(self, point: str, status: Status | None = None) -> None:
        started_s = self._last_s
        super().point_ended(point, status)
        self._timings.append(Timing(point, self._last_s - started_s))

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        started_s = self._plugin_last_s
        super().plugin_ended(plugin, point, answer)
        self._timings.append(Timing(point, self._plugin_last_s - started_s, plugin))


class PlacementMeter(Meter):
    """Measures the plugins for placements; their single calls always (spec 11 §7.7)."""

    __slots__ = ()

    def generated(self, status: Status | None) -> None:
        self.point_ended(PLACEMENT_GENERATE, status)

    def scored(self, status: Status | None) -> None:
        self.point_ended(PLACEMENT_SCORE, status)
