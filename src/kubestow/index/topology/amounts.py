"""Numbers by row or by domain, of which mostly few are not 0.

An application has three pods on three of 5,000 nodes. Its counts take as much memory as the pods,
not as the nodes: they are a mapping while few are not 0, and an array from then on.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray

# Up to this many numbers that are not 0 are kept as a mapping, unless there are no more in all.
FEW_MAX: Final = 64


class Amounts:
    """int64[index]."""

    __slots__ = ("_array", "_few", "size")

    def __init__(self, size: int) -> None:
        """All are 0."""
        self.size = size
        self._few: dict[int, int] = {}  # without zeros; not used beside the array
        self._array: IntArray | None = None
        if size <= FEW_MAX:
            self._array = np.zeros(size, np.int64)

    @staticmethod
    def of(array: IntArray) -> "Amounts":
        """Amounts of an array, which may be kept and changed."""
        amounts = Amounts.__new__(Amounts)
        amounts.size, amounts._few, amounts._array = len(array), {}, array
        if len(array) > FEW_MAX:
            indices = array.nonzero()[0]
            if len(indices) <= FEW_MAX:
                amounts._array = None
                amounts._few = dict(zip(indices.tolist(), array[indices].tolist(), strict=True))
        return amounts

    def item(self, index: int) -> int:
        array = self._array
        return self._few.get(index, 0) if array is None else array.item(index)

    def add(self, index: int, amount: int) -> int:
        """The number afterwards."""
        array = self._array
        if array is not None:
            after = array.item(index) + amount
            array[index] = after
            return after
        few = self._few
        after = few.get(index, 0) + amount
        if after:
            few[index] = after
            if len(few) > FEW_MAX:
                self._array, self._few = self._as_array(), {}
        else:
            few.pop(index, None)
        return after

    def array(self) -> IntArray:
        """int64[index]. Read-only for the caller, and true until the next change."""
        return self._as_array() if self._array is None else self._array

    def few(self) -> Mapping[int, int] | None:
        """The numbers that are not 0; None if they are too many to be looked at one by one."""
        return self._few if self._array is None else None

    def take(self, indices: npt.NDArray[np.intp]) -> IntArray:
        """int64[…], the numbers at the indices; the caller may change them."""
        if self._array is None and not self._few:
            return np.zeros(len(indices), np.int64)
        return self.array().take(indices)

    def total(self) -> int:
        return sum(self._few.values()) if self._array is None else int(self._array.sum())

    def highest(self) -> int:
        """The largest number, or 0."""
        if self._array is None:
            return max(0, max(self._few.values(), default=0))
        if self.size <= FEW_MAX:
            return max((0, *self._array.tolist()))
        return int(np.maximum.reduce(self._array, initial=0))

    def any(self) -> bool:
        """Whether one is not 0."""
        return bool(self._few) if self._array is None else bool(self._array.any())

    def may_be_any(self) -> bool:
        """Whether one may differ from 0, without a look at an array."""
        return self._array is not None or bool(self._few)

    def copy(self) -> "Amounts":
        copy = Amounts.__new__(Amounts)
        copy.size, copy._few = self.size, self._few.copy()
        copy._array = None if self._array is None else self._array.copy()
        return copy

    def grow(self, size: int) -> None:
        """New indices have 0."""
        if self._array is not None:
            more = np.zeros(size - self.size, np.int64)
            self._array = np.concatenate((self._array, more))
        self.size = size

    def gathered(self, source: npt.NDArray[np.intp]) -> "Amounts":
        """The number at `source[i]` for each i, 0 where the source is -1."""
        if not self.size or not self.any():
            return Amounts(len(source))
        moved = self.array()[source]
        moved[source < 0] = 0
        return Amounts.of(moved)

    def _as_array(self) -> IntArray:
        array = np.zeros(self.size, np.int64)
        if self._few:
            array[list(self._few)] = list(self._few.values())
        return array


def summed(entries: Iterable[tuple[int, int]], size: int) -> Amounts:
    """The sum of the amounts of each index."""
    amounts = Amounts(size)
    for index, amount in entries:
        amounts.add(index, amount)
    return amounts
