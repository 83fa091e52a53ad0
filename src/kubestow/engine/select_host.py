"""Which of the best nodes is taken (spec 04 §8.4).

Upstream builds a binary heap of the candidates in place and takes the root. Without randomness the
root is, of all candidates with the best total, the one that comes first in pre-order (node, left
subtree, right subtree) of the tree the list forms when read as a heap. That order does not depend
on the length of the list, so each position has one number for ever.
"""

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray

_DEPTH_MAX: Final = 48
_WORST: Final = np.iinfo(np.int64).min


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


class Selector(Protocol):
    def select(self, totals: IntArray) -> int:
        """The position of the chosen node in the list of totals."""
        ...


class HostSelector:
    """Keeps the positions in pre-order, for lists of some lengths; shorter ones are filled up.

    The first of the best totals, read in this order, is the one wanted.
    """

    def __init__(self) -> None:
        self._orders: dict[int, tuple[npt.NDArray[np.intp], IntArray]] = {}

    def select(self, totals: IntArray) -> int:
        """The position of the chosen node in the list of totals."""
        length = _rounded_up(len(totals))
        kept = self._orders.get(length)
        if kept is None:
            order = np.argsort(preorder_keys(length))
            kept = self._orders[length] = order, np.empty(length, np.int64)
        order, filled = kept
        filled[: len(totals)] = totals
        filled[len(totals) :] = _WORST
        return int(order[filled.take(order).argmax()])


def best_positions(totals: IntArray) -> npt.NDArray[np.intp]:
    """Every position whose total is the best: any of them may be chosen by chance."""
    return np.flatnonzero(totals == totals.max())


def _rounded_up(count: int) -> int:
    """One of eight lengths between two powers of two."""
    step = max(1 << max(count.bit_length() - 4, 0), 64)
    return -(-count // step) * step
