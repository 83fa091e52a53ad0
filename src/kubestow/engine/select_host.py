"""Which of the best nodes is taken (spec 04 §8.4).

Upstream builds a binary heap of the candidates in place and takes the root. Without randomness the
root is, of all candidates with the best total, the one that comes first in pre-order (node, left
subtree, right subtree) of the tree the list forms when read as a heap. That order does not depend
on the length of the list, so each position has one number for ever.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray

_DEPTH_MAX = 48


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
    """Keeps the numbers of the positions, for the longest list seen."""

    def __init__(self) -> None:
        self._keys = preorder_keys(1024)

    def select(self, totals: IntArray) -> int:
        """The position of the chosen node in the list of totals."""
        best = self.best_positions(totals)
        if len(best) == 1:
            return int(best[0])
        if len(totals) > len(self._keys):
            self._keys = preorder_keys(2 * len(totals))
        return int(best[np.argmin(self._keys[best])])

    @staticmethod
    def best_positions(totals: IntArray) -> npt.NDArray[np.intp]:
        return np.flatnonzero(totals == totals.max())
