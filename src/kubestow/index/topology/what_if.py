"""Counts per domain as one scheduling attempt sees them.

An attempt may think pods onto a node or away from it (nominated pods, preemption). It then changes
its own copy of the counts, made at the first change; what others read is never written to.
"""

from kubestow.arrays import IntArray, Rows
from kubestow.index.topology.domains import ABSENT, DomainColumn


class DomainCounts:
    """How much is in each domain.

    `column` says which domain a node asks about. `counted` says which domain a pod on it counts
    for: the same one, or none where the node does not count (spec 06 §6.3.5).
    """

    __slots__ = ("_is_shared", "column", "counted", "values")

    def __init__(
        self, values: IntArray, column: DomainColumn, counted: DomainColumn | None = None
    ) -> None:
        self.values = values
        self.column = column
        self.counted = column if counted is None else counted
        self._is_shared = True

    def at(self, rows: Rows) -> IntArray:
        """int64[node]: what is in the domain of each of these rows; 0 for rows in no domain."""
        return self.values.take(self.column.ids[rows])

    def add(self, row: int, amount: int) -> None:
        """Count so much more on that row, in this attempt."""
        domain = self.counted.ids[row]
        if domain == ABSENT:
            return
        if self._is_shared:
            self.values = self.values.copy()
            self._is_shared = False
        self.values[domain] += amount

    def clone(self) -> "DomainCounts":
        self._is_shared = True
        return DomainCounts(self.values, self.column, self.counted)
