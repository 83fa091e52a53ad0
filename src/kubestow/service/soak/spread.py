"""Durations as percentiles, in constant memory: a measurement of growth must not grow itself."""

import math
from typing import Final

import msgspec
import numpy as np

from kubestow.arrays import IntArray

_SMALLEST_S: Final = 1e-6
_STEP: Final = 1.05  # percentiles are exact to five percent
_BUCKETS: Final = 400  # up to five minutes


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class Spread:
    """All durations so far, and apart from them those of the current interval."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._max_s = 0.0
        self._counts_before = self._counts.copy()
        self._interval_max_s = 0.0

    def add(self, seconds: float) -> None:
        self._max_s = max(self._max_s, seconds)
        self._interval_max_s = max(self._interval_max_s, seconds)
        place = math.log(max(seconds, _SMALLEST_S) / _SMALLEST_S) / math.log(_STEP)
        self._counts[min(int(place), _BUCKETS - 1)] += 1

    def percentiles(self) -> Percentiles:
        return _percentiles(self._counts, self._max_s)

    def end_interval(self) -> Percentiles:
        """The durations since the last call."""
        # Another thread may add meanwhile: what is not in this copy is in the next interval.
        counts, longest_s = self._counts.copy(), self._interval_max_s
        self._interval_max_s = 0.0
        found = _percentiles(counts - self._counts_before, longest_s)
        self._counts_before = counts
        return found


def _percentiles(counts: IntArray, max_s: float) -> Percentiles:
    return Percentiles(
        count=int(counts.sum()),
        p50_ms=_percentile_ms(counts, 0.5, max_s),
        p99_ms=_percentile_ms(counts, 0.99, max_s),
        max_ms=round(max_s * 1000, 3),
    )


def _percentile_ms(counts: IntArray, share: float, max_s: float) -> float:
    count = int(counts.sum())
    if not count:
        return 0.0
    place = int(np.searchsorted(counts.cumsum(), math.ceil(share * count)))
    upper_s = _SMALLEST_S * _STEP ** (place + 1)
    return round(min(upper_s, max_s) * 1000, 3)
