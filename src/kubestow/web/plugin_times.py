"""How long each extension point and each plugin took, in total, since the page follows."""

from collections.abc import Sequence

from kubestow.framework.metrics import Timing
from kubestow.web.protocol import PluginTime


class PluginTimes:
    """Calls and their time, one entry for each plugin of a profile at each extension point."""

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
