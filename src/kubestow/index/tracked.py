"""Arrays over the rows of a snapshot that are kept up to date only when somebody looks.

A label key, a selector, a host port or an image matters to some pods only. Its array is made when
it is first asked for; later it catches up: only the rows that changed since the last look are
computed again, by the same function that made it. Nobody pays for what nobody reads.

    change log      3 7 3 9 | 4 4        rows, in the order they changed
    an array's mark         ^            it has seen everything to the left

Two logs are kept: rows whose Node object changed, and rows that changed at all (pods or node).
"""

from array import array
from collections.abc import Callable
from enum import IntEnum
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubestow.arrays import ALL_ROWS, Rows

A = TypeVar("A", bound=np.generic)


class Depends(IntEnum):
    """What an array is computed from: the Node objects alone, or the pods on the nodes as well."""

    NODE = 0
    PODS = 1


# An array that has missed more re-orderings than this is rather computed anew.
REORDERS_KEPT: Final = 8


class ChangeLog:
    """Rows in the order they changed, always in today's numbering, with the re-orderings in
    between."""

    def __init__(self) -> None:
        self.epoch = 0
        self._reorders: dict[int, npt.NDArray[np.intp]] = {}
        self._rows: tuple[array[int], array[int]] = (array("q"), array("q"))
        self._first: list[int] = [0, 0]

    def note(self, row: int, depends: Depends) -> None:
        self._rows[Depends.PODS].append(row)
        if depends is Depends.NODE:
            self._rows[Depends.NODE].append(row)

    def reorder(self, source: npt.NDArray[np.intp], old_count: int) -> None:
        """The rows were laid anew: row i is what was row `source[i]`, or new where that is -1."""
        self.epoch += 1
        self._reorders[self.epoch] = source
        self._reorders.pop(self.epoch - REORDERS_KEPT, None)
        # Rows that are gone turn into row 0: one row computed too often, and every mark stays
        # valid.
        today = np.zeros(old_count, np.intp)
        kept = np.flatnonzero(source >= 0)
        today[source[kept]] = kept
        if len(source) == 0 or not np.array_equal(today[source[kept]], kept):
            # One row became two, or none is left to stand for those that are gone. The log cannot
            # say that: whoever is behind computes anew.
            self.trim(0)
        for rows in self._rows:
            rows[:] = array("q", today[np.array(rows, np.intp)].tolist())

    def trim(self, longest: int) -> None:
        """Forget the log where it has grown too long to be worth reading."""
        for kind, rows in enumerate(self._rows):
            if len(rows) > longest:
                self._first[kind] += len(rows)
                del rows[:]

    def mark(self, depends: Depends) -> int:
        """The end of the log: what a reader has seen when it is up to date."""
        return self._first[depends] + len(self._rows[depends])

    def since(self, depends: Depends, mark: int) -> "array[int] | None":
        """Rows changed after the mark, each as often as it did; None if the log does not reach
        back that far."""
        start = mark - self._first[depends]
        return self._rows[depends][start:] if start >= 0 else None

    def reorders_since(self, epoch: int) -> list[npt.NDArray[np.intp]] | None:
        """The re-orderings after that epoch, oldest first; None if some are forgotten."""
        try:
            return [self._reorders[number] for number in range(epoch + 1, self.epoch + 1)]
        except KeyError:
            return None


class Tracked(Generic[A]):
    """One such array. `compute(rows)` gives the values of these rows as they are now, in a new
    array.

    The last axis is the row; there may be others before it.
    """

    __slots__ = ("_compute", "_depends", "_epoch", "_log", "_mark", "_values")

    def __init__(
        self,
        log: ChangeLog,
        depends: Depends,
        compute: Callable[[Rows], npt.NDArray[A]],
    ) -> None:
        self._log = log
        self._depends = depends
        self._compute = compute
        self._recompute()

    def values(self) -> npt.NDArray[A]:
        """The array over all rows, up to date. Read-only for the caller."""
        if self._epoch != self._log.epoch:
            self._follow_reorders()
        mark = self._log.mark(self._depends)
        if self._mark != mark:
            self._catch_up(self._log.since(self._depends, self._mark))
            self._mark = mark
        return self._values

    def _catch_up(self, rows: "array[int] | None") -> None:
        if rows is None or len(rows) * 2 > self._values.shape[-1]:
            self._recompute()
        else:
            changed = np.array(list(dict.fromkeys(rows)), np.intp)
            self._values[..., changed] = self._compute(changed)

    def _follow_reorders(self) -> None:
        for source in self._log.reorders_since(self._epoch) or ():
            if self._values.shape[-1] == 0:
                break
            self._values = self._values[..., source]
            self._epoch += 1
        if self._epoch != self._log.epoch:
            self._recompute()

    def _recompute(self) -> None:
        self._values = self._compute(ALL_ROWS)
        self._epoch = self._log.epoch
        self._mark = self._log.mark(self._depends)
