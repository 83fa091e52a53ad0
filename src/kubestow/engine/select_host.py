"""Which of the best nodes is chosen (spec 04 §8.4).

Upstream builds a binary heap of the candidates in place and takes the root. Without randomness the
root is, of all candidates with the best total, the one that comes first in pre-order (node, left
subtree, right subtree) of the tree the list forms when read as a heap. That order does not depend
on the length of the list, so each position has a fixed number.
"""

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray, NarrowArray

_DEPTH_MAX: Final = 48
_WORST: Final = np.iinfo(np.int64).min

# Up to this many totals, read all of them in pre-order.
_FEW: Final = 8192
# Above, read this many first, then as many again, then twice as many.
_EARLY: Final = 512
# Below this many ties, compare them all.
_TIES_FEW: Final = 1024


def preorder_keys(count: int) -> IntArray:
    """int64[count]: numbers that sort heap positions in pre-order.

    The path from the root to position p is the binary form of p + 1 after its leading one.
    Pre-order is the order of these paths as words, shorter first: align them left and put the
    length behind.
    """
    numbers = np.arange(1, count + 1, dtype=np.int64)
    lengths = np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
    aligned = numbers << (_DEPTH_MAX - lengths)
    return aligned * 64 + lengths


class HostSelector(Protocol):
    def select(self, totals: NarrowArray) -> int:
        """The position of the chosen node in the list of totals, which may all be less by the same
        number."""
        ...


class PreorderSelector:
    """The first of the best totals, read in pre-order."""

    def __init__(self) -> None:
        self._orders: dict[int, _PreOrder] = {}
        # The length of the last list, and its positions if two such lists came in a row.
        self._count = 0
        self._positions: npt.NDArray[np.intp] | None = None

    def select(self, totals: NarrowArray) -> int:
        count = len(totals)
        if count == self._count and self._positions is not None:
            return int(self._positions[totals.take(self._positions).argmax()])
        order = self._order(count)
        if count > _FEW:
            return order.first_of_best_by_ties(totals)
        self._positions = order.positions(count) if count == self._count else None
        self._count = count
        return order.first_of_best(totals)

    def _order(self, count: int) -> "_PreOrder":
        length = _rounded_up(count)
        order = self._orders.get(length)
        if order is None:
            order = self._orders[length] = _PreOrder(length)
        return order


class _PreOrder:
    """The positions in pre-order, for lists of up to `length`."""

    def __init__(self, length: int) -> None:
        self._keys = preorder_keys(length)
        self._positions = np.argsort(self._keys)
        self._filled: IntArray = np.empty(length, np.int64)

    def positions(self, count: int) -> npt.NDArray[np.intp]:
        """The positions of a list of this length in pre-order."""
        return self._positions[self._positions < count]

    def first_of_best(self, totals: NarrowArray) -> int:
        """Read all totals, padded to the full length."""
        self._filled[: len(totals)] = totals
        self._filled[len(totals) :] = _WORST
        return int(self._positions[self._filled.take(self._positions).argmax()])

    def first_of_best_by_ties(self, totals: NarrowArray) -> int:
        """The first of the best in a long list, where reading in pre-order would be random access.

        Few ties are compared directly; of many, one is found early in pre-order.
        """
        is_best = totals == totals.max()
        if np.count_nonzero(is_best) <= _TIES_FEW:
            ties = np.flatnonzero(is_best)
            return int(ties[self._keys.take(ties).argmin()])
        start, end = 0, _EARLY
        while True:
            early = self._positions[start:end]
            found = early[early < len(totals)]
            found = found[is_best.take(found)]
            if len(found):
                return int(found[0])
            start, end = end, 2 * end


def best_positions(totals: IntArray) -> npt.NDArray[np.intp]:
    """Every position whose total is the best."""
    return np.flatnonzero(totals == totals.max())


def _rounded_up(count: int) -> int:
    """One of eight lengths between two powers of two."""
    step = max(1 << max(count.bit_length() - 4, 0), 64)
    return -(-count // step) * step
