"""Which rows of a snapshot changed, in the order they did.

    rows      3 7 3 9 | 4 4        in the current numbering
    a reader          ^            has read everything to the left

Three logs are kept: rows whose Node object changed, rows that count something else than before, and
rows that changed at all. Each has the rows of the ones before it. Most changes of pods are those of
statuses, which no node counts.
Not here: the reader (`index.follow`).
"""

from array import array
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt


class Depends(IntEnum):
    """What a value is derived from; each has all of the ones before it."""

    NODE = 0  # the Node objects alone
    COUNTS = 1  # also what nodes count of their pods: requests, classes, ports, volumes
    PODS = 2  # also anything else of the pods, such as their statuses


# A reader that has missed more re-orderings than this starts over.
REORDERS_KEPT: Final = 8


class ChangeLog:
    """Rows in the order they changed, with the re-orderings in between.

    epoch       how often the rows were reordered
    node_end    how many changes of Node objects were ever noted
    count_end   how many changes of what nodes count, those of Node objects included
    pod_end     how many changes of any kind
    """

    __slots__ = (
        "_count_rows",
        "_node_rows",
        "_pod_rows",
        "_reorders",
        "count_end",
        "epoch",
        "node_end",
        "pod_end",
    )

    def __init__(self) -> None:
        self.epoch = 0
        self.node_end = 0
        self.count_end = 0
        self.pod_end = 0
        self._reorders: dict[int, npt.NDArray[np.intp]] = {}
        self._node_rows = array("q")
        self._count_rows = array("q")
        self._pod_rows = array("q")

    def note_statuses(self, row: int) -> None:
        """Pods of this row changed, and the node counts the same as before."""
        self._pod_rows.append(row)
        self.pod_end += 1

    def note_pods(self, row: int) -> None:
        """Something about the pods of this row changed."""
        self._count_rows.append(row)
        self._pod_rows.append(row)
        self.count_end += 1
        self.pod_end += 1

    def note_node(self, row: int) -> None:
        """The Node object of this row changed, and perhaps its pods."""
        self.note_pods(row)
        self._node_rows.append(row)
        self.node_end += 1

    def reorder(self, source: npt.NDArray[np.intp], old_count: int) -> None:
        """The rows were reordered: row i is what was row `source[i]`, or new where that is -1."""
        self.epoch += 1
        self._reorders[self.epoch] = source
        self._reorders.pop(self.epoch - REORDERS_KEPT, None)
        # Deleted rows become row 0, which is then computed too often: every end stays valid.
        current = np.zeros(old_count, np.intp)
        kept = np.flatnonzero(source >= 0)
        current[source[kept]] = kept
        if len(source) == 0 or not np.array_equal(current[source[kept]], kept):
            # One row became two, or there is no row 0. The log cannot express that: readers that
            # are behind start over.
            self.trim(0)
        for rows in (self._node_rows, self._count_rows, self._pod_rows):
            rows[:] = array("q", current[np.array(rows, np.intp)].tolist())

    def trim(self, longest: int) -> int:
        """Keep half as many rows if there are more than this: starting over is then cheaper than
        reading them all. Readers that are up to date, as nearly all are, go on.

        Returns how many changes there may be before the log is as long again.
        """
        # The last one is the longest.
        if len(self._pod_rows) > longest:
            for rows in (self._node_rows, self._count_rows, self._pod_rows):
                del rows[: max(len(rows) - longest // 2, 0)]
        return longest - len(self._pod_rows)

    def invalidate(self) -> None:
        """Anything may have changed: every reader starts over."""
        self.trim(0)
        self.node_end += 1
        self.count_end += 1
        self.pod_end += 1

    def nodes_since(self, end: int) -> "array[int] | None":
        """Rows whose Node object changed since `node_end` had this value, repeated for each change.

        None if the log does not reach back that far.
        """
        rows, count = self._node_rows, self.node_end - end
        return rows[len(rows) - count :] if count <= len(rows) else None

    def counts_since(self, end: int) -> "array[int] | None":
        """Rows that count something else since `count_end` had this value, likewise."""
        rows, count = self._count_rows, self.count_end - end
        return rows[len(rows) - count :] if count <= len(rows) else None

    def pods_since(self, end: int) -> "array[int] | None":
        """Rows that changed in any way since `pod_end` had this value, repeated for each change."""
        rows, count = self._pod_rows, self.pod_end - end
        return rows[len(rows) - count :] if count <= len(rows) else None

    def reorders_since(self, epoch: int) -> list[npt.NDArray[np.intp]] | None:
        """The re-orderings after that epoch, oldest first; None if some are forgotten."""
        try:
            return [self._reorders[number] for number in range(epoch + 1, self.epoch + 1)]
        except KeyError:
            return None
