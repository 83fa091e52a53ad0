"""The scores of two constraints, one on hosts and one on larger domains, by pairs of counts.

All nodes of a zone that have equally many matching pods have one score, and there are few such
pairs. So nodes are numbered by pair, which follows the snapshot row by row, and a score is computed
for each pair and looked up for each node.

    a node of zone 3 with 2 matching pods, where numbers of zones are below 8: cell 2 * 8 + 3
"""

import math
from array import array
from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes
from kubestow.index.topology.domains import ABSENT, EMPTY, DomainColumn, DomainIds, RowCounts
from kubestow.plugins.pod_topology_spread.normalising import ToIntegers, inverted

# With more cells, scores are computed for each node.
CELLS_MAX: Final = 256
# Up to this many changed rows, one by one is faster than all together.
_ROWS_FEW: Final = 32


class HostCells(Follower):
    """The cell of every row: its count of pods, and its domain.

    ids           intp[row], the count times `width` plus the number of the domain
    populations   int64[cell], how many rows are in each
    are_few       whether all counts are small enough; the rest does not hold otherwise
    """

    def __init__(self, snapshot: Snapshot, counts: RowCounts, column: DomainColumn) -> None:
        """They hold as long as the numbers of domains stay as they are."""
        super().__init__(snapshot.log, Depends.PODS)
        self.width = len(column.populations)
        self._counts = counts
        self._column = column
        self._read_all()

    def is_of(self, counts: RowCounts) -> bool:
        return self._counts is counts

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
        self.ids: DomainIds = self._counts.rows * self.width + self._column.ids
        self.are_few = int(np.maximum.reduce(self.ids, initial=0)) < CELLS_MAX
        self.populations: IntArray
        if self.are_few:
            self.populations = np.bincount(self.ids, minlength=CELLS_MAX)


def cell_scores(
    cells: HostCells,
    nodes: Nodes,
    *,
    host_allowance: int,
    allowance: int,
    domain_counts: IntArray,
    to_integers: ToIntegers,
) -> IntArray:
    """int64[node]: the normalised scores of all feasible nodes; there must be one.

    Either constraint allows for some skew; `domain_counts` are those of the one that is not on
    hosts.
    """
    ids, width = cells.ids[nodes.rows], cells.width
    is_all = len(ids) == len(cells.ids)
    populations = cells.populations if is_all else np.bincount(ids, minlength=CELLS_MAX)
    present: list[int] = populations.nonzero()[0].tolist()
    domains = {cell % width for cell in present}
    if ABSENT in domains:
        # Spec 06 §6.3.7: nodes without the label form the domain "".
        domains = domains - {ABSENT} | {EMPTY}
    host_weight, weight = math.log(len(ids) + 2), math.log(len(domains) + 2)
    # In doubles (spec 06 §6.3.8): Python's are those of NumPy.
    by_domain = [count * weight + allowance for count in domain_counts.tolist()]
    by_domain[ABSENT] = 0.0
    costs = [
        cell // width * host_weight + host_allowance + by_domain[cell % width] for cell in present
    ]
    raw: list[int] = to_integers(np.array(costs, np.float64)).tolist()
    highest, lowest = max(0, *raw), min(raw)
    if highest == 0:
        return np.full(len(ids), MAX_NODE_SCORE, np.int64)
    scores = [0] * (present[-1] + 1)
    for cell, score in zip(present, raw, strict=True):
        scores[cell] = inverted(score, lowest, highest)
    return np.array(scores, np.int64).take(ids)
