"""Rows numbered by two things at once: how many pods they hold, and their domain.

    a row of zone 3 that holds 2 such pods, where numbers of zones are below 8: cell 2 * 8 + 3

Rows of one cell are alike for rules on both hosts and zones, and there are few cells.
"""

from array import array
from collections import OrderedDict
from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources
from kubestow.index.topology.domains import DomainColumn, DomainIds, RowCounts

# With more cells nothing is gained by them.
CELLS_MAX: Final = 256
# For how many counts and columns cells are kept; the least recently used are dropped.
NUMBERED_BY_CELL_MAX: Final = 32
# Up to this many changed rows, one by one is faster than all together.
_ROWS_FEW: Final = 32


class Cells(Follower):
    """The cell of every row.

    ids            intp[row], the count times `width` plus the number of the domain
    populations    int64[cell], how many rows are in each
    are_few        whether all counts are small enough; the rest does not hold otherwise
    layout_token   that of the counts (`TopologyCounts`); with another one, domains are others
    """

    def __init__(
        self, snapshot: Snapshot, counts: RowCounts, column: DomainColumn, layout_token: object
    ) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self.layout_token: Final = layout_token
        self.width = len(column.populations)
        self._counts = counts
        self._column = column
        self._read_all()

    def rows_moved(self, sources: Sources | None) -> None:
        self._read_all()

    def pods_changed(self, rows: "array[int]") -> None:
        if not self.are_few:
            return  # Fewer pods on one node seldom make them few again.
        if len(rows) > _ROWS_FEW:
            self._read_all()
            return
        ids, populations = self.ids, self.populations
        for row in rows:
            old = ids.item(row)
            new = self._counts.rows.item(row) * self.width + self._column.ids.item(row)
            if new == old:
                continue
            if new >= CELLS_MAX:
                self.are_few = False
                return
            ids[row] = new
            populations[old] -= 1
            populations[new] += 1

    def _read_all(self) -> None:
        self.ids: DomainIds = self._counts.rows.array() * self.width + self._column.ids
        self.are_few = int(np.maximum.reduce(self.ids, initial=0)) < CELLS_MAX
        self.populations: IntArray
        if self.are_few:
            self.populations = np.bincount(self.ids, minlength=CELLS_MAX)


class CellIndex:
    """The cells of one snapshot, which all profiles share."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._cells: OrderedDict[tuple[RowCounts, DomainColumn], Cells] = OrderedDict()

    def of(self, counts: RowCounts, column: DomainColumn, layout_token: object) -> Cells:
        """Up to date; the counts and the column have to be already."""
        key = counts, column
        cells = self._cells.get(key)
        if cells is None or cells.layout_token is not layout_token:
            cells = self._cells[key] = Cells(self._snapshot, counts, column, layout_token)
            if len(self._cells) > NUMBERED_BY_CELL_MAX:
                self._cells.popitem(last=False)
            return cells
        self._cells.move_to_end(key)
        cells.catch_up()
        return cells
