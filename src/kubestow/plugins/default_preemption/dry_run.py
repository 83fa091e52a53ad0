"""The search for nodes on which evicting pods would help (spec 08 A6).

Nodes are tried in stretches, by `one_node` or `many_nodes`. Where the search stops, and which
results count, is decided here as if the nodes had been tried one after the other.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.labels import join_errors
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import (
    BoolArray,
    IntArray,
    IntpArray,
    Rows,
    row_count,
    row_numbers,
    rows_between,
)
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import fit_error_text
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.plugins.default_preemption.candidates import (
    CRITERIA,
    VIOLATIONS,
    Candidates,
    VictimsOf,
)
from kubestow.plugins.default_preemption.eligibility import VictimRules
from kubestow.plugins.default_preemption.filters import TrialFilters

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"

_NO_STATUSES: Final = StatusCodes()


class Nominations(Protocol):
    """Which pods are nominated to which node (`framework.handle.Nominator`)."""

    def nominated_nodes(self) -> Sequence[str]: ...

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]: ...


class _NoNominations:
    def nominated_nodes(self) -> Sequence[str]:
        return ()

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        return ()


NO_NOMINATIONS: Final = _NoNominations()


class TrialInputs(NamedTuple):
    """The input of a dry run: the preemptor, and everything that the result depends on.

    `filters` are those of the profile that take part; `budgets` None means that the cluster has no
    disruption budgets.
    """

    profile: Profile
    state: CycleState
    pod: PodInfo
    snapshot: Snapshot
    nominator: Nominations
    budgets: BudgetTable | None
    rules: VictimRules
    now_ns: int
    filters: TrialFilters


def _nothing_to_name() -> None:
    """The numbers are entered."""


class TrialResults(NamedTuple):
    """The results of some nodes.

    codes        int64[node]                   0 where evicting helps, else the evaluator's number
                                               of the status; others that are not 0 until
                                               `name_codes` was called
    positions    intp[candidate]               where that is 0
    rows         intp[candidate]               the nodes there
    ranks        int64[criterion, candidate]   of the nodes where it helps, see `candidates`
    victims_of   row → victims                 of the nodes where it helps
    name_codes                                 enters the numbers of all statuses: they are needed
                                               only where no node is found
    """

    codes: IntArray
    positions: IntpArray
    rows: IntpArray
    ranks: IntArray
    victims_of: VictimsOf
    name_codes: Callable[[], None] = _nothing_to_name

    @classmethod
    def of(
        cls, tried: IntpArray, codes: IntArray, ranks: IntArray, victims_of: VictimsOf
    ) -> "TrialResults":
        """`tried` are the rows of the nodes that were tried, or more."""
        positions = (codes == 0).nonzero()[0]
        return cls(codes, positions, tried[positions], ranks, victims_of)


class Evaluator(Protocol):
    @property
    def statuses(self) -> StatusCodes:
        """The meaning of the codes of its results."""
        ...

    def evaluate(self, rows: Rows, missing: int | None) -> TrialResults:
        """Try some of these nodes in their order, at least the first.

        As many as are expected to give `missing` candidates; all of them if that is None. The
        results are valid until nodes are tried for another pod.
        """
        ...


def message_without_victims(node_count: int, tried_count: int) -> str:
    """The message of a search in which no node that was tried has a pod to evict."""
    reasons = Counter({NO_VICTIMS.message: tried_count} if tried_count else {})
    return _message(node_count, tried_count, reasons)


def _message(node_count: int, failed_count: int, reasons: Counter[str]) -> str:
    if node_count > failed_count:
        reasons[NOT_HELPFUL] += node_count - failed_count
    return fit_error_text(node_count, reasons)


def candidate_count(node_count: int, percentage: int, absolute: int) -> int:
    """How many candidates are enough, out of `node_count` nodes that may become one."""
    return min(max(node_count * percentage // 100, absolute), node_count)


class DryRun:
    """The results of a search, in the order in which nodes were tried."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._statuses = _NO_STATUSES
        # Nodes, of which the first were tried, and the codes of these.
        self._tried: list[tuple[Rows, IntArray]] = []
        # What names these codes.
        self._unnamed: list[Callable[[], None]] = []
        self._clean = _Found()
        self._violating = _Found()

    def search(self, evaluator: Evaluator, rows: Rows, wanted: int | None) -> bool:
        """Try the nodes until there are enough candidates, and return whether there are.

        None means all of them. A search may go on with other nodes.
        """
        self._statuses = evaluator.statuses
        start, count = 0, row_count(rows)
        while start < count:
            left = rows_between(rows, start, count) if start else rows
            missing = wanted
            if wanted is not None:
                missing = wanted - self._clean.count - self._violating.count
                if missing <= 0:  # There are enough, but not one that violates no budget.
                    missing = wanted
            results = evaluator.evaluate(left, missing)
            if self._take(left, results, wanted):
                return True
            start += len(results.codes)
        return False

    def candidates(self) -> Candidates:
        """All candidates, those that violate no budget first."""
        return _joined(self._clean, self._violating)

    def candidates_by_row(self) -> Candidates:
        """All candidates in the order of the snapshot."""
        candidates = self.candidates()
        return candidates.subset(np.argsort(candidates.rows))

    def statuses(self) -> Mapping[str, Status]:
        """By name, the nodes that were tried and on which evicting does not help."""
        names = self._snapshot.names
        return {
            names[row]: self._statuses.status_of(code)
            for rows, codes in self._named()
            for row, code in zip(row_numbers(rows).tolist(), codes.tolist(), strict=False)
            if code
        }

    def error(self) -> str:
        """The errors of all nodes; empty if there are none."""
        return join_errors(
            self._statuses.status_of(code).message
            for _, codes in self._named()
            for code in codes[codes < 0].tolist()
        )

    def message(self) -> str:
        """Why there is no candidate; on nodes that were not tried preemption cannot help."""
        node_count = len(self._snapshot.names)
        reasons: Counter[str] = Counter()
        failed_count = 0
        for _, codes in self._named():
            for code, count in zip(*np.unique(codes[codes != 0], return_counts=True), strict=True):
                failed_count += int(count)
                for reason in self._statuses.status_of(int(code)).all_reasons:
                    reasons[reason] += int(count)
        return _message(node_count, failed_count, reasons)

    def _named(self) -> list[tuple[Rows, IntArray]]:
        """The nodes that were tried, with the numbers of their statuses."""
        while self._unnamed:
            self._unnamed.pop()()
        return self._tried

    def _take(self, rows: Rows, results: TrialResults, wanted: int | None) -> bool:
        """Keep the results up to the last candidate needed; return whether there are enough."""
        codes, positions, found, ranks, victims_of, name_codes = results
        is_violating = None
        if np.count_nonzero(ranks[VIOLATIONS]):
            is_violating = ranks[VIOLATIONS] != 0
        last = self._last_needed(len(found), is_violating, wanted)
        if last is not None:
            codes = codes[: positions[last] + 1]
            if last + 1 < len(found):
                found, ranks = found[: last + 1], ranks[:, : last + 1]
                is_violating = None if is_violating is None else is_violating[: last + 1]
        self._tried.append((rows, codes))
        self._unnamed.append(name_codes)
        if is_violating is None:
            self._clean.add(found, ranks, victims_of, wanted)
        else:
            for kind, mask in ((self._clean, ~is_violating), (self._violating, is_violating)):
                kind.add(found[mask], ranks[:, mask], victims_of, wanted)
        return last is not None

    def _last_needed(
        self, count: int, is_violating: BoolArray | None, wanted: int | None
    ) -> int | None:
        """The index of the last candidate needed; None if even all of them are too few.

        `is_violating` None means that none of them violates a budget.
        """
        total = self._clean.count + self._violating.count
        if wanted is None or count == 0 or total + count < wanted:
            return None
        # Spec 08 A6: any number of candidates is too few while all of them violate budgets.
        first_clean = 0
        if self._clean.count == 0 and is_violating is not None:
            first_clean = int(is_violating.argmin())
            if is_violating[first_clean]:
                return None
        return max(wanted - total - 1, first_clean)


class _Found:
    """Candidates of one kind, in the order in which they were found."""

    __slots__ = ("count", "parts")

    def __init__(self) -> None:
        self.count = 0
        self.parts: list[tuple[IntpArray, IntArray, VictimsOf]] = []

    def add(
        self, rows: IntpArray, ranks: IntArray, victims_of: VictimsOf, most: int | None
    ) -> None:
        """Add these, up to `most` in total."""
        if most is not None and len(rows) > most - self.count:
            rows, ranks = rows[: most - self.count], ranks[:, : most - self.count]
        self.count += len(rows)
        self.parts.append((rows, ranks, victims_of))


def _joined(first: _Found, second: _Found) -> Candidates:
    parts = [*first.parts, *second.parts]
    if len(parts) == 1:
        return Candidates(*parts[0])
    return Candidates(
        np.concatenate((np.empty(0, np.intp), *(rows for rows, _, _ in parts))),
        np.concatenate(
            (np.empty((CRITERIA, 0), np.int64), *(ranks for _, ranks, _ in parts)), axis=1
        ),
        lambda row: next(victims_of(row) for rows, _, victims_of in parts if row in rows),
    )
