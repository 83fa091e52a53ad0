"""The measurements of each node that statistics are made of, by slot.

    history      int64[series, resource, length, slot]   a ring for each node
    sums         int64[resource, slot]                    of the averages in it, for their mean

Nodes that are measured together are mostly at one place of their rings, so that their measurements
are written side by side. Everything is an integer, so that one node at a time gives equal numbers.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from kubestow.arrays import BoolArray, IntArray, IntpArray, Rows

RESOURCES: Final = 2  # cpu, memory
AVERAGE, P95, PEAK, SERIES = range(4)
# A deviation of memory is computed in MiB, and of both up to this: squares then fit 64 bits.
_UNITS: Final = np.array([1, 1 << 20], np.int64)
_DIFFERENCE_LIMIT: Final = 1 << 28


class NodeHistory:
    """The columns that readers see (`NodeUsage`), and the history that they are made of."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._history = np.zeros((SERIES, RESOURCES, length, 0), np.int64)
        # How many measurements each slot was given.
        self._written = np.zeros(0, np.int64)
        self._sums = np.zeros((RESOURCES, 0), np.int64)
        self.time_ns = np.zeros(0, np.int64)
        self.sample_count = np.zeros(0, np.int64)
        self.latest = np.zeros((RESOURCES, 0), np.int64)
        self.average = np.zeros((RESOURCES, 0), np.int64)
        self._made: dict[str, IntArray] = {}

    def __len__(self) -> int:
        return len(self._written)

    def grow(self, size: int) -> None:
        more = size - len(self)
        self._history = np.pad(self._history, ((0, 0), (0, 0), (0, 0), (0, more)))
        self._written = np.pad(self._written, (0, more))
        self._sums = np.pad(self._sums, ((0, 0), (0, more)))
        self.time_ns = np.pad(self.time_ns, (0, more), constant_values=-1)
        self.sample_count = np.pad(self.sample_count, (0, more))
        self.latest = np.pad(self.latest, ((0, 0), (0, more)))
        self.average = np.pad(self.average, ((0, 0), (0, more)))
        self._made.clear()

    def write(self, slots: IntpArray, times_ns: IntArray, series: IntArray) -> None:
        """Write one measurement of each of these slots, at least one, which differ.

        series   int64[series, resource, slot]
        """
        rows: Rows = slots
        written = self._written[slots]
        places: IntArray | int = written % self._length
        if (places == places[0]).all():
            rows, places = _as_slice(slots), places.item(0)
        # What is overwritten is 0 while the ring is not full.
        self._sums[:, rows] += series[AVERAGE] - self._history[AVERAGE][:, places, rows]
        self._history[:, :, places, rows] = series
        self._written[rows] = written = written + 1
        count = np.minimum(written, self._length)
        self.sample_count[rows] = count
        self.latest[:, rows] = series[AVERAGE]
        self.average[:, rows] = self._sums[:, rows] // count
        self.time_ns[rows] = times_ns
        self._made.clear()

    def clear(self, slot: int) -> None:
        self.time_ns[slot] = -1
        self.sample_count[slot] = self._written[slot] = 0
        self._history[:, :, :, slot] = 0
        self._sums[:, slot] = 0
        self._made.clear()

    # --- made when they are read ---

    @property
    def p95(self) -> IntArray:
        return self._statistic("p95", self._make_p95)

    @property
    def peak(self) -> IntArray:
        return self._statistic("peak", self._make_peak)

    @property
    def deviation(self) -> IntArray:
        return self._statistic("deviation", self._make_deviation)

    def _statistic(self, name: str, make: Callable[[BoolArray, IntArray], IntArray]) -> IntArray:
        made = self._made.get(name)
        if made is None:
            is_known = np.arange(self._length)[:, None] < self.sample_count
            made = self._made[name] = make(is_known, np.maximum(self.sample_count, 1))
        return made

    def _make_p95(self, is_known: BoolArray, count: IntArray) -> IntArray:
        """The smallest value that 95 % of those known do not exceed."""
        known = np.where(is_known, self._history[P95], np.iinfo(np.int64).max)
        ordered = np.ascontiguousarray(known.transpose(0, 2, 1))
        ordered.sort(axis=2)
        rank = (95 * count + 99) // 100 - 1
        return np.take_along_axis(ordered, rank[None, :, None], axis=2)[:, :, 0]

    def _make_peak(self, is_known: BoolArray, count: IntArray) -> IntArray:
        return self._history[PEAK].max(axis=1)  # What is not known is 0.

    def _make_deviation(self, is_known: BoolArray, count: IntArray) -> IntArray:
        """The root of the mean square of differences, all rounded down."""
        differences = np.abs(self._history[AVERAGE] - self.average[:, None])
        differences = np.where(is_known, differences // _UNITS[:, None, None], 0)
        squares = np.minimum(differences, _DIFFERENCE_LIMIT) ** 2
        variance = squares.sum(axis=1) // count
        root = np.sqrt(variance).astype(np.int64)
        # Of large numbers the root as a float may be one off.
        root -= root * root > variance
        root += (root + 1) * (root + 1) <= variance
        return root * _UNITS[:, None]


def _as_slice(slots: IntpArray) -> Rows:
    """Slots as a slice if they follow one another, as those of a source that names its nodes in one
    order do."""
    first = slots.item(0)
    is_range = (slots == np.arange(first, first + len(slots))).all()
    return slice(first, first + len(slots)) if is_range else slots
