"""How much real time each plugin takes in a run.

Every call is timed, not a sample: a run of a comparison has nothing else to do. Reading the clock
twice per call costs some hundred nanoseconds, which is part of what is shown.
"""

from kubestow.clock import SystemClock
from kubestow.engine.metrics import NoGroupMeter, NoSchedulerMetrics
from kubestow.framework.metrics import CycleMeter, NoMeter
from kubestow.framework.status import Status
from kubestow.simulator.comparison.task import PluginTime


class PluginTimes(NoSchedulerMetrics):
    """Given to a scheduler as its metrics."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], tuple[int, float]] = {}

    def start_attempt(self, profile_name: str, *, keeps_timings: bool) -> CycleMeter:
        return _Meter(self)

    def start_group_point(self, profile_name: str) -> "_GroupMeter":
        return _GroupMeter(self)

    def now_s(self) -> float:
        return SystemClock.monotonic_s()

    def add(self, plugin: str, point: str, seconds: float) -> None:
        calls, total_s = self._sums.get((plugin, point), (0, 0.0))
        self._sums[plugin, point] = (calls + 1, total_s + seconds)

    def rows(self) -> list[PluginTime]:
        """The slowest first."""
        rows = [
            PluginTime(plugin=plugin, point=point, calls=calls, seconds=round(seconds, 6))
            for (plugin, point), (calls, seconds) in self._sums.items()
        ]
        return sorted(rows, key=lambda row: (-row.seconds, row.plugin, row.point))


class _Meter(NoMeter):
    is_sampled = True

    def __init__(self, times: PluginTimes) -> None:
        self._times = times
        self._last_s = SystemClock.monotonic_s()

    def resume(self) -> None:
        self._last_s = SystemClock.monotonic_s()

    skip_pause = resume

    def point_ended(self, point: str, status: Status | None = None) -> None:
        self._last_s = SystemClock.monotonic_s()

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        now_s = SystemClock.monotonic_s()
        self._times.add(plugin, point, now_s - self._last_s)
        self._last_s = now_s


class _GroupMeter(NoGroupMeter):
    def __init__(self, times: PluginTimes) -> None:
        self._meter = _Meter(times)

    def plugin_ended(self, plugin: str, point: str, answer: object) -> None:
        self._meter.plugin_ended(plugin, point)
