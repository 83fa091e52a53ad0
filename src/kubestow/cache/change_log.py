"""Which rows of a snapshot changed, in the order they did.

    rows      3 7 3 9 | 4 4        in today's numbering
    a reader          ^            has seen everything to the left

Two logs are kept: rows whose Node object changed, and rows that changed at all (pods or node).
Not here: who reads them (`index.follow`).
"""

from array import array
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt


class Depends(IntEnum):
    """What something is derived from: the Node objects alone, or the pods on the nodes as well."""

    NODE = 0
    PODS = 1


# A reader that has missed more re-orderings than this starts over.
REORDERS_KEPT: Final = 8


class ChangeLog:
    """Rows in the order they changed, with the re-orderings in between.

    epoch      how often the rows were laid anew
    node_end   how many changes of Node objects were ever noted
    pod_end    how many changes of any kind were ever noted
    """

    __slots__ = ("_node_rows", "_pod_rows", "_reorders", "epoch", "node_end", "pod_end")

    def __init__(self) -> None:
        self.epoch = 0
        self.node_end = 0
        self.pod_end = 0
        self._reorders: dict[int, npt.NDArray[np.intp]] = {}
        self._node_rows = array("q")
        self._pod_rows = array("q")

    def note(self, row: int, depends: Depends) -> None:
        self._pod_rows.append(row)
        self.pod_end += 1
        if depends is Depends.NODE:
            self._node_rows.append(row)
            self.node_end += 1

    def reorder(self, source: npt.NDArray[np.intp], old_count: int) -> None:
        """The rows were laid anew: row i is what was row `source[i]`, or new where that is -1."""
        self.epoch += 1
        self._reorders[self.epoch] = source
        self._reorders.pop(self.epoch - REORDERS_KEPT, None)
        # Rows that are gone turn into row 0: one row computed too often, and every end stays
        # valid.
        today = np.zeros(old_count, np.intp)
        kept = np.flatnonzero(source >= 0)
        today[source[kept]] = kept
        if len(source) == 0 or not np.array_equal(today[source[kept]], kept):
            # One row became two, or none is left to stand for those that are gone. The log cannot
            # say that: readers that are behind start over.
            self.trim(0)
        for rows in (self._node_rows, self._pod_rows):
            rows[:] = array("q", today[np.array(rows, np.intp)].tolist())

    def trim(self, longest: int) -> None:
        """Forget the log where it has grown too long to be worth reading."""
        for rows in (self._node_rows, self._pod_rows):
            if len(rows) > longest:
                del rows[:]

    def lose(self) -> None:
        """Anything may have changed: every reader starts over."""
        self.trim(0)
        self.node_end += 1
        self.pod_end += 1

    def nodes_since(self, end: int) -> "array[int] | None":
        """Rows whose Node object changed after `node_end` was this, each as often as it did.

        None if the log does not reach back that far.
        """
        return _after(self._node_rows, self.node_end - end)

    def pods_since(self, end: int) -> "array[int] | None":
        """The same for rows that changed at all after `pod_end` was this."""
        return _after(self._pod_rows, self.pod_end - end)

    def reorders_since(self, epoch: int) -> list[npt.NDArray[np.intp]] | None:
        """The re-orderings after that epoch, oldest first; None if some are forgotten."""
        try:
            return [self._reorders[number] for number in range(epoch + 1, self.epoch + 1)]
        except KeyError:
            return None


def _after(rows: "array[int]", count: int) -> "array[int] | None":
    """The last so many rows; None if fewer are left."""
    return rows[len(rows) - count :] if count <= len(rows) else None
