"""One count as many pods in a row read it.

To look up a column, a tally and its sums takes longer than to read them. A reading keeps what was
found, and looks it up again when it is no longer kept up to date or some node has other labels.
"""

from collections.abc import Callable
from typing import Any, Final

from kubestow.api.pod_info import PodClass
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import EVERY_NODE, DomainColumn, DomainSums, Eligibility
from kubestow.index.topology.ledger import Tally
from kubestow.index.topology.measures import Exposure, Measure


class Reading:
    """A tally over the domains of one topology key. Read it after `refresh`, in the same cycle.

    has_key   whether some node has the label
    column    the domain whose count a node reads
    counted   the domain in which a pod on a node is counted: the same one, or none
    tally     None if no node has the label
    sums      the tally summed over `counted`; not made for a reading of rows alone
    """

    __slots__ = (
        "_eligibility",
        "_find",
        "_is_of_rows",
        "_kept",
        "_layout_token",
        "column",
        "counted",
        "has_key",
        "key",
        "sums",
        "tally",
    )

    column: DomainColumn
    counted: DomainColumn
    has_key: bool
    sums: DomainSums
    tally: Tally[Any] | None
    _kept: DomainSums | Tally[Any]

    def __init__(
        self,
        key: str,
        find: Callable[[TopologyCounts], Tally[Any]],
        eligibility: Eligibility = EVERY_NODE,
        *,
        is_of_rows: bool = False,
    ) -> None:
        self.key: Final = key
        self._find = find
        self._eligibility = eligibility
        self._is_of_rows = is_of_rows
        self._layout_token: object = None

    def refresh(self, counts: TopologyCounts) -> None:
        if self._layout_token is not counts.layout_token or not self._kept.is_kept:
            self._look_up(counts)
        if self.tally is not None:
            self.tally.is_used = True

    def _look_up(self, counts: TopologyCounts) -> None:
        self.has_key = counts.has_key(self.key)
        self.column = self.counted = counts.column(self.key)
        if self.has_key:
            if self._eligibility is not EVERY_NODE:
                self.counted = counts.column(self.key, self._eligibility)
            self._kept = self.tally = self._find(counts)
            if not self._is_of_rows:
                self._kept = self.sums = self.tally.sums(self.counted)
        else:
            # Nothing is counted: a pod may name thousands of such keys.
            self.tally = None
            self._kept = self.sums = DomainSums(self.column, Amounts(len(self.column.ids)))
            self.sums.is_kept = True
        self._layout_token = counts.layout_token


def pods(key: str, measure: Measure[PodClass], eligibility: Eligibility = EVERY_NODE) -> Reading:
    """A reading of the pods that the measure counts."""
    return Reading(key, lambda counts: counts.pods(measure), eligibility)


def pods_by_row(key: str, measure: Measure[PodClass]) -> Reading:
    """A reading of these pods for rules on hosts: each node is a domain of its own, and counts."""
    return Reading(key, lambda counts: counts.pods(measure), is_of_rows=True)


def terms(exposure: Exposure) -> Reading:
    """A reading of the terms that the exposure counts."""
    return Reading(exposure.topology_key, lambda counts: counts.terms.tally(exposure))
