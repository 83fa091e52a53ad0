"""Cpu and memory of all nodes in doubles: the default scores are computed from them.

Dividing doubles takes a fraction of what dividing integers takes, and what does not depend on the
pod is kept. Both are exact: amounts are below 2**46, so that a hundred times an amount, and its sum
with another amount, are whole numbers that doubles hold. The quotient of two such numbers is
rounded to a whole number only if it is one.

Where a node lacks a resource, or an amount is larger, there is no score from here: the plugins have
another form for any resources.
"""

from array import array
from typing import Any, Final

import numpy as np

from kubestow.arrays import ALL_ROWS, FloatArray, IntArray, IntpArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.columns import ALLOCATABLE, NON_ZERO, REQUESTED
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, SnapshotNodes

# Amounts have to be less.
_AMOUNT_LIMIT: Final = 1 << 46
# Up to this many changed rows, one by one is faster than all together.
_ROWS_FEW: Final = 8

_WHOLE: Final = float(MAX_NODE_SCORE)
# Evenness: the distance of two shares is twice their deviation (spec 05 §9), so that it is taken
# from twice the whole and halved.
_TWO: Final = np.array(2.0)
_HALF: Final = np.array(_WHOLE / 2)

# The rows of the block.
_FREE: Final = slice(0, 2)
_USED: Final = slice(2, 4)
_OFFERED: Final = slice(4, 6)
_BLOCK_HEIGHT: Final = 6


class BasicLoads(Follower):
    """Get it with `of`.

    _block   float64[6, row]: of cpu and memory a hundred times what is free, what is used, and what
             there is; what is free counts defaults for pods without requests
    _even    int64[row]: how even the used shares are, 50 to 100
    _odd     the rows whose numbers are not exact
    """

    __slots__ = ("_block", "_even", "_odd", "_picked", "_picked_for", "_snapshot", "_written")

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self._snapshot = snapshot
        self._read_all()

    @staticmethod
    def of(nodes: Nodes, cpu: int, memory: int) -> "BasicLoads | None":
        """The loads of these nodes, for a pod that requests so much; None if there are none."""
        # Other views have other pods on the nodes.
        if type(nodes) is not SnapshotNodes:
            return None
        if not (0 <= cpu < _AMOUNT_LIMIT and 0 <= memory < _AMOUNT_LIMIT):
            return None
        loads = nodes.snapshot.derived(BasicLoads)
        loads.catch_up()
        return None if loads._odd else loads

    def least_allocated(self, nodes: Nodes, cpu: int, memory: int) -> IntArray:
        """int64[node] in 0..100: the mean share of both that would stay free, each truncated."""
        block, _ = self._pick(nodes)
        shares = block[_FREE] - np.array(((cpu * _WHOLE,), (memory * _WHOLE,)))
        shares /= block[_OFFERED]
        if shares.size and shares.item(shares.argmin()) < 0.0:
            np.maximum(shares, 0.0, out=shares)
        scores = shares.astype(np.int64)
        mean: IntArray = scores[0]
        mean += scores[1]
        mean >>= 1
        return mean

    def evenness(self, nodes: Nodes, cpu: int, memory: int) -> tuple[IntArray, IntArray]:
        """int64[node] in 50..100: how even the used shares would be with the pod, which the caller
        may change, and how even they are without it."""
        block, even = self._pick(nodes)
        shares = block[_USED] + np.array(((float(cpu),), (float(memory),)))
        shares /= block[_OFFERED]
        if shares.size and shares.item(shares.argmax()) > 1.0:
            np.minimum(shares, 1.0, out=shares)
        return _evenness(shares), even

    def _pick(self, nodes: Nodes) -> tuple[FloatArray, IntArray]:
        """The numbers of these nodes, which several plugins ask for one after the other."""
        if self._picked_for is not nodes:
            rows = nodes.rows
            if isinstance(rows, slice):
                self._picked = self._block[:, rows], self._even[rows]
            else:
                self._picked = self._block.take(rows, axis=1), self._even.take(rows)
            self._picked_for = nodes
        return self._picked

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self._read_all()

    def pods_changed(self, rows: "array[int]") -> None:
        self._picked_for = None
        if len(rows) <= _ROWS_FEW:
            for row in rows:
                self._fill_one(row)
        else:
            self._fill(np.array(rows, np.intp))

    def _read_all(self) -> None:
        count = len(self._snapshot)
        self._block: FloatArray = np.empty((_BLOCK_HEIGHT, count))
        self._even: IntArray = np.empty(count, np.int64)
        # A single number is written faster in this form.
        self._written: list[memoryview[Any]] = [
            numbers.data for numbers in (*self._block, self._even)
        ]
        self._odd: set[int] = set()
        self._picked_for: Nodes | None = None
        self._picked = self._block, self._even
        self._fill(ALL_ROWS)

    def _fill(self, rows: Rows) -> None:
        block = self._snapshot.columns.block[:, rows]
        offered, used, non_zero = block[ALLOCATABLE][:2], block[REQUESTED][:2], block[NON_ZERO]
        least = np.minimum(np.minimum(used, non_zero), offered - 1).min(axis=0)
        most = np.maximum(np.maximum(used, non_zero), offered).max(axis=0)
        is_odd = (least < 0) | (most >= _AMOUNT_LIMIT)
        numbers: IntpArray = np.arange(len(self._snapshot))[rows]
        self._odd.difference_update(numbers.tolist())
        self._odd.update(numbers[is_odd].tolist())
        whole = np.where(is_odd, 1, offered).astype(np.float64)
        self._block[_FREE, rows] = (offered - non_zero) * _WHOLE
        self._block[_USED, rows] = used
        self._block[_OFFERED, rows] = whole
        self._even[rows] = _evenness(np.minimum(used / whole, 1.0))

    def _fill_one(self, row: int) -> None:
        info = self._snapshot.node_infos[row]
        offered, used = info.allocatable, info.requested
        cpu, memory = offered.milli_cpu, offered.memory
        cpu_used, memory_used = used.milli_cpu, used.memory
        if not (
            0 < cpu < _AMOUNT_LIMIT
            and 0 < memory < _AMOUNT_LIMIT
            and 0 <= cpu_used < _AMOUNT_LIMIT
            and 0 <= memory_used < _AMOUNT_LIMIT
            and 0 <= info.non_zero_cpu < _AMOUNT_LIMIT
            and 0 <= info.non_zero_memory < _AMOUNT_LIMIT
        ):
            self._odd.add(row)
            return
        self._odd.discard(row)
        distance = abs(min(cpu_used / cpu, 1.0) - min(memory_used / memory, 1.0))
        numbers = (
            (cpu - info.non_zero_cpu) * _WHOLE,
            (memory - info.non_zero_memory) * _WHOLE,
            cpu_used,
            memory_used,
            cpu,
            memory,
            int((2.0 - distance) * (_WHOLE / 2)),
        )
        for column, number in zip(self._written, numbers, strict=True):
            column[row] = number


def _evenness(shares: FloatArray) -> IntArray:
    """int64[node] of float64[2, node], which is overwritten."""
    distance = shares[0]
    distance -= shares[1]
    np.subtract(_TWO, np.abs(distance, out=distance), out=distance)
    distance *= _HALF
    return distance.astype(np.int64)
