"""Pods that were placed a moment ago, and how much of each is not measured yet.

A measurement of a node is of the time before it. A pod that was placed at P counts on a node that
was measured last at T by its estimate, which fades into the measurement:

    whole            P >= T
    a part of it     (fade - (T - P)) / fade
    nothing          P <= T - fade

So what a pod counts changes with a measurement, not with the clock. A pod that ends leaves at once.
"""

from itertools import chain
from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.usage.measurement import Amounts

# How many pods the plugin keeps: those placed, of which the oldest go first, those that wait, and
# kinds of pods with an estimate.
PLACED_MAX: Final = 1 << 16
# How many of each kind are kept of those placed: recent ones and others.
PLACED_HALF: Final = PLACED_MAX // 2
_CELLS: Final = 4


# Node and time of a pod, and its estimate.
PlacedPod = tuple[int, int, int, int]


class PlacedPods:
    """The pods in the order in which they were placed; `node` is a number of the caller's for its
    node. One is added after every decision, so that is one entry; when nodes have been measured,
    all are summed up, and so those added since become a column: int64[pod, cell].

    recent   the pods that are in no column yet, by UID; what places pods adds to it
    """

    def __init__(self, fade_ns: int) -> None:
        self.fade_ns = fade_ns
        self.recent: dict[str, PlacedPod] = {}
        # Of all others: what they are by number, and the numbers by UID. Those that were removed
        # keep their number, without an estimate.
        self._columns = np.zeros((0, _CELLS), np.int64)
        self._numbers: dict[str, int] = {}
        # The number of the first one that is kept.
        self._first = 0

    def __len__(self) -> int:
        return len(self.recent) + len(self._numbers)

    def __contains__(self, uid: str) -> bool:
        return uid in self.recent or uid in self._numbers

    def remove(self, uid: str) -> PlacedPod | None:
        """The pod's node, time and estimate; None if it is not kept."""
        pod = self.recent.pop(uid, None)
        number = self._numbers.pop(uid, None)
        if number is None:
            return pod
        cells = self._columns[number - self._first]
        node, time_ns, cpu_milli, memory_bytes = cells.tolist()
        cells[2:] = 0
        return node, time_ns, cpu_milli, memory_bytes

    def counted(self, time_ns: int, cpu: int, memory: int, measured_ns: int) -> Amounts:
        """What one pod counts, as in `sums`."""
        weight = min(max(self.fade_ns - (measured_ns - time_ns), 0), self.fade_ns)
        share = weight * 1000 // self.fade_ns
        return Amounts(cpu * share // 1000, memory * share // 1000)

    def file(self, since_ns: int) -> None:
        """Make columns of the recent pods, and drop those that were placed before that time. Such
        pods count nothing, so those that come after a younger one may stay."""
        for uid in self._numbers.keys() & self.recent.keys():
            del self.recent[uid]
        if self.recent:
            cells = chain.from_iterable(self.recent.values())
            recent = np.fromiter(cells, np.int64, len(self.recent) * _CELLS).reshape(-1, _CELLS)
            end = self._first + len(self._columns)
            self._columns = np.concatenate((self._columns, recent))
            self._numbers.update(zip(self.recent, range(end, end + len(recent)), strict=True))
            self.recent.clear()
        is_young = self._columns[:, 1] >= since_ns
        gone = int(is_young.argmax()) if is_young.any() else len(is_young)
        self._drop(max(gone, len(is_young) - PLACED_HALF))

    def _drop(self, count: int) -> None:
        """Drop the oldest pods."""
        self._columns = self._columns[count:]
        self._first += count
        uids: list[str] = []
        for uid, number in self._numbers.items():
            if number >= self._first:
                break
            uids.append(uid)
        for uid in uids:
            del self._numbers[uid]

    def sums(self, node_count: int, measured_ns: IntArray) -> IntArray:
        """int64[resource, node]: what the pods of each node count. Call `file` before.

        measured_ns   int64[node], when it was measured last; -1 if never: its pods count whole
        """
        sums = np.zeros((2, node_count), np.int64)
        if not self._numbers:
            return sums
        node, placed_ns, *estimates = self._columns.T
        weights = np.clip(self.fade_ns - (measured_ns[node] - placed_ns), 0, self.fade_ns)
        for place in range(2):
            np.add.at(sums[place], node, faded(estimates[place], weights, self.fade_ns))
        return sums

    def renumber(self, numbers: IntArray) -> None:
        """Nodes have other numbers now; `numbers` is int64[old number], -1 where one is gone."""
        self.file(0)
        nodes = numbers[self._columns[:, 0]]
        is_left: list[bool] = (nodes >= 0).tolist()
        left = [uid for uid, number in self._numbers.items() if is_left[number - self._first]]
        rows = [self._numbers[uid] - self._first for uid in left]
        self._columns[:, 0] = nodes
        self._columns = self._columns[rows]
        self._first = 0
        self._numbers = dict(zip(left, range(len(left)), strict=True))


def faded(amounts: IntArray, weights: IntArray, fade_ns: int) -> IntArray:
    """Amounts times weights of 0 to `fade_ns`, as a share of it in thousandths; rounded down.

    In thousandths, so that the product of bytes and nanoseconds does not exceed 64 bits.
    """
    return amounts * (weights * 1000 // fade_ns) // 1000
