"""Nodes on which evicting pods helps, and the choice among them (spec 08 A8).

The choice compares five numbers per node; for all of them less is better. They are kept as arrays.
Victims are computed on request: of hundreds of candidates only one is used.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.importance import earliest_start_ns
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray

# Rows of `Candidates.ranks`, in the order in which they decide.
VIOLATIONS: Final = 0
HIGHEST_PRIORITY: Final = 1
PRIORITY_SUM: Final = 2
VICTIM_COUNT: Final = 3
YOUNGEST: Final = 4
CRITERIA: Final = 5

# Added to every priority in the sum, so that one more victim counts more than any priority.
PRIORITY_SHIFT: Final = 2**31

VictimsOf = Callable[[int], Sequence[PodInfo]]


class Candidate(NamedTuple):
    """A node, its victims in order of importance, and how many of them violate a budget."""

    row: int
    victims: Sequence[PodInfo]
    violation_count: int

    def ranks(self, now_ns: int) -> tuple[int, ...]:
        priorities = [victim.priority for victim in self.victims]
        return (
            self.violation_count,
            # The first is the most important, unless an extender changed the order.
            priorities[0],
            sum(priority + PRIORITY_SHIFT for priority in priorities),
            len(priorities),
            # Pods that started late lose little work: the latest of the earliest starts wins.
            -earliest_start_ns(self.victims, now_ns),
        )


class Candidates:
    """Candidates; among equal ones the first is preferred.

    rows    intp[candidate]
    ranks   int64[criterion, candidate]   less is better, the first criterion decides first
    """

    __slots__ = ("_victims_of", "ranks", "rows")

    def __init__(self, rows: npt.NDArray[np.intp], ranks: IntArray, victims_of: VictimsOf) -> None:
        """`victims_of` gives the victims on the node of a row."""
        self.rows = rows
        self.ranks = ranks
        self._victims_of = victims_of

    @classmethod
    def of(cls, candidates: Iterable[Candidate], now_ns: int) -> "Candidates":
        listed = tuple(candidates)
        ranks = np.array([candidate.ranks(now_ns) for candidate in listed], np.int64)
        victims = {candidate.row: candidate.victims for candidate in listed}
        return cls(
            np.array([*victims], np.intp),
            ranks.reshape(len(listed), CRITERIA).T,
            victims.__getitem__,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> Candidate:
        row = int(self.rows[position])
        return Candidate(row, self._victims_of(row), int(self.ranks[VIOLATIONS, position]))

    def subset(self, positions: npt.NDArray[np.intp]) -> "Candidates":
        """The candidates at these positions, in this order."""
        return Candidates(self.rows[positions], self.ranks[:, positions], self._victims_of)

    def first_of_best(self) -> int | None:
        """The position of the candidate to choose; None if there is none."""
        if len(self.rows) == 0:
            return None
        # Most candidates are equal in most criteria: the first is often the best in all of them.
        if np.count_nonzero(self.ranks < self.ranks[:, :1]) == 0:
            return 0
        return int(self.best()[0])

    def best(self) -> npt.NDArray[np.intp]:
        """Positions of the candidates that all five criteria leave tied; empty if there is none."""
        kept = np.arange(len(self), dtype=np.intp)
        for values in self.ranks if len(kept) else ():
            values = values[kept]
            kept = kept[values == values.min()]
            if len(kept) == 1:
                break
        return kept
