"""Counts per domain of one scheduling attempt.

An attempt may simulate pods added to or removed from a node (nominated pods, preemption). It then
changes its own copy of the counts, made at the first change; the shared counts stay as they are.
"""

from kubestow.arrays import IntArray, Rows
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.domains import (
    ABSENT,
    ByteArray,
    DomainColumn,
    DomainSums,
    vacancies,
)


class DomainCounts:
    """How much is in each domain.

    `amounts` are by domain. `column` has the domain whose count a node reads, `counted` the domain
    in which a pod on it is counted: the same one, or none where the node does not count (spec 06
    §6.3.5).
    """

    __slots__ = ("_is_shared", "_sums", "amounts", "column", "counted")

    def __init__(
        self,
        values: DomainSums | Amounts,
        column: DomainColumn,
        counted: DomainColumn | None = None,
    ) -> None:
        """`values` are not changed: the first change makes a copy."""
        self.column = column
        self.counted = column if counted is None else counted
        self._sums: DomainSums | None = None
        if isinstance(values, DomainSums):
            self._sums, values = values, values.amounts
        self.amounts = values
        self._is_shared = True

    def highest(self) -> int:
        """The largest count, or 0."""
        return self.amounts.highest() if self._sums is None else self._sums.highest()

    def lowest(self) -> int:
        """The smallest count of a domain in which pods are counted; there must be one."""
        if self._sums is not None:
            return self._sums.lowest(self.counted)
        return self.counted.lowest(self.amounts)[0]

    def is_empty(self) -> bool:
        """Whether no domain has a count; none is negative unless a simulation makes it so."""
        return not (self.amounts.any() if self._sums is None else self._sums.total)

    def is_everywhere(self) -> bool:
        """Whether every node is in a domain with a count."""
        column = self.column
        return not column.populations.item(ABSENT) and self.lowest() > 0

    @property
    def sums(self) -> DomainSums | None:
        """The shared sums; None in a simulation, which has changed them."""
        return self._sums

    def in_row(self, row: int) -> int:
        """What is in the domain of this row; 0 in no domain."""
        return self.amounts.item(self.column.ids.item(row))

    def at(self, rows: Rows) -> IntArray:
        """int64[node]: what is in the domain of each of these rows; 0 for rows in no domain."""
        return self.amounts.take(self.column.ids[rows])

    def kept_vacant(self) -> ByteArray | None:
        """uint8[domain]: VACANT where nothing is counted, else 0; None in a simulation."""
        return None if self._sums is None else self._sums.vacant()

    def vacant_at(self, rows: Rows) -> ByteArray:
        """uint8[node]: VACANT where nothing is counted in the domain of a row, else 0."""
        kept = self.kept_vacant()
        return vacancies(self.at(rows)) if kept is None else kept.take(self.column.ids[rows])

    def add(self, row: int, amount: int) -> None:
        """Add the amount to the count of that row, in this attempt."""
        domain = self.counted.ids.item(row)
        if domain == ABSENT:
            return
        if self._is_shared:
            self.amounts = self.amounts.copy()
            self._is_shared = False
            self._sums = None
        self.amounts.add(domain, amount)

    def clone(self) -> "DomainCounts":
        self._is_shared = True
        return DomainCounts(self._sums or self.amounts, self.column, self.counted)
