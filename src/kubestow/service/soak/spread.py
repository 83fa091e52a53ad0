"""Durations as percentiles, in constant memory: a measurement of growth must not grow itself."""

import math
from typing import Final

import msgspec
import numpy as np

_SMALLEST_S: Final = 1e-6
_STEP: Final = 1.05  # percentiles are exact to five percent
_BUCKETS: Final = 400  # up to five minutes


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class Spread:
    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._max_s = 0.0

    def add(self, seconds: float) -> None:
        self._max_s = max(self._max_s, seconds)
        place = math.log(max(seconds, _SMALLEST_S) / _SMALLEST_S) / math.log(_STEP)
        self._counts[min(int(place), _BUCKETS - 1)] += 1

    def percentiles(self) -> Percentiles:
        return Percentiles(
            count=int(self._counts.sum()),
            p50_ms=self._percentile_ms(0.5),
            p99_ms=self._percentile_ms(0.99),
            max_ms=round(self._max_s * 1000, 3),
        )

    def _percentile_ms(self, share: float) -> float:
        count = int(self._counts.sum())
        if not count:
            return 0.0
        place = int(np.searchsorted(self._counts.cumsum(), math.ceil(share * count)))
        upper_s = _SMALLEST_S * _STEP ** (place + 1)
        return round(min(upper_s, self._max_s) * 1000, 3)
