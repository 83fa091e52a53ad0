"""The search for nodes on which evicting pods would make room (spec 08 A6).

Nodes are tried in stretches. How a stretch is tried is the business of `one_node` and `many_nodes`;
where the search stops, and what is remembered of it, is decided here, node by node in the order of
the search, as if they had been tried one after the other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.labels import join_errors
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, IntpArray
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
from kubestow.plugins.default_preemption.filters import TrialFilter

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


class Nominations(Protocol):
    """Which pods are promised which node (`framework.handle.Nominator`)."""

    def nominated_nodes(self) -> Sequence[str]: ...

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]: ...


class _NoNominations:
    def nominated_nodes(self) -> Sequence[str]:
        return ()

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        return ()


NO_NOMINATIONS: Final = _NoNominations()


class Question(NamedTuple):
    """What a dry run is about: who wants room, and all that decides on whether there could be some.

    `filters` are those of the profile that take part; `budgets` None stands for a cluster without
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
    filters: Sequence[TrialFilter]


class Stretch(NamedTuple):
    """What came of some nodes.

    codes        int64[node]                   0 where evicting helps, else the evaluator's number
                                               of the status
    ranks        int64[criterion, candidate]   of the nodes where it helps, see `candidates`
    victims_of   row → victims                 of the nodes where it helps
    """

    codes: IntArray
    ranks: IntArray
    victims_of: VictimsOf


class Evaluator(Protocol):
    @property
    def statuses(self) -> StatusCodes:
        """What the codes of its stretches stand for."""
        ...

    def evaluate(self, rows: IntpArray, missing: int | None) -> Stretch:
        """Try some of these nodes, at least the first and none before another.

        As many as seem to be needed for so many candidates, or all of them.
        """
        ...


def candidate_count(node_count: int, percentage: int, absolute: int) -> int:
    """How many candidates are enough, out of so many nodes that may become one."""
    return min(max(node_count * percentage // 100, absolute), node_count)


class DryRun:
    """What a search found out. Everything is in the order in which nodes were looked at."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._statuses = StatusCodes()
        self._rows: list[IntpArray] = []
        self._codes: list[IntArray] = []
        self._clean = _Found()
        self._violating = _Found()

    def search(self, evaluator: Evaluator, rows: IntpArray, wanted: int | None) -> None:
        """Look at the nodes until there are enough candidates; None means all of them."""
        self._statuses = evaluator.statuses
        start = 0
        while start < len(rows):
            stretch = evaluator.evaluate(rows[start:], self._missing(wanted))
            is_done = self._take(rows[start : start + len(stretch.codes)], stretch, wanted)
            if is_done:
                return
            start += len(stretch.codes)

    def candidates(self) -> Candidates:
        """Those that violate no budget first."""
        return _joined(self._clean, self._violating)

    def candidates_by_row(self) -> Candidates:
        """The same in the order of the snapshot."""
        candidates = self.candidates()
        return candidates.subset(np.argsort(candidates.rows))

    def statuses(self) -> Mapping[str, Status]:
        """By name, the nodes that were looked at and on which evicting does not help."""
        names = self._snapshot.names
        return {
            names[row]: self._statuses.status_of(code)
            for rows, codes in zip(self._rows, self._codes, strict=True)
            for row, code in zip(rows.tolist(), codes.tolist(), strict=True)
            if code
        }

    def error(self) -> str:
        """What went wrong, on all nodes together; empty if nothing did."""
        return join_errors(
            self._statuses.status_of(code).message
            for codes in self._codes
            for code in codes[codes < 0].tolist()
        )

    def message(self) -> str:
        """Why there is no candidate; nodes that were not looked at cannot be helped."""
        node_count = len(self._snapshot)
        reasons: Counter[str] = Counter()
        failed_count = 0
        for codes in self._codes:
            for code, count in zip(*np.unique(codes[codes != 0], return_counts=True), strict=True):
                failed_count += int(count)
                for reason in self._statuses.status_of(int(code)).all_reasons:
                    reasons[reason] += int(count)
        if node_count > failed_count:
            reasons[NOT_HELPFUL] += node_count - failed_count
        return fit_error_text(node_count, reasons)

    def _missing(self, wanted: int | None) -> int | None:
        if wanted is None:
            return None
        missing = wanted - self._clean.count - self._violating.count
        # There may be plenty, and still not one that violates no budget.
        return missing if missing > 0 else wanted

    def _take(self, rows: IntpArray, stretch: Stretch, wanted: int | None) -> bool:
        """Remember what came of these nodes up to the one that is enough; tells if there is one."""
        positions, ranks = (stretch.codes == 0).nonzero()[0], stretch.ranks
        is_clean = ranks[VIOLATIONS] == 0
        last = self._last_needed(is_clean, wanted)
        if last is not None:
            positions, ranks, is_clean = (
                positions[: last + 1],
                ranks[:, : last + 1],
                is_clean[: last + 1],
            )
            rows = rows[: positions[-1] + 1]
        self._rows.append(rows)
        self._codes.append(stretch.codes[: len(rows)])
        found_rows = rows[positions]
        if is_clean.all():
            self._clean.add(found_rows, ranks, stretch.victims_of, wanted)
        else:
            for found, mask in ((self._clean, is_clean), (self._violating, ~is_clean)):
                found.add(found_rows[mask], ranks[:, mask], stretch.victims_of, wanted)
        return last is not None

    def _last_needed(self, is_clean: BoolArray, wanted: int | None) -> int | None:
        """Which of the candidates just found is enough, None if not even all of them are."""
        total = self._clean.count + self._violating.count
        if wanted is None or total + len(is_clean) < wanted:
            return None
        # Spec 08 A6: any number of candidates is too few as long as all of them violate budgets.
        first_clean = 0
        if self._clean.count == 0:
            if not is_clean.any():
                return None
            first_clean = int(is_clean.argmax())
        return max(wanted - total - 1, first_clean)


class _Found:
    """Candidates of one kind, in the order in which they were found."""

    def __init__(self) -> None:
        self.rows: list[IntpArray] = []
        self.ranks: list[IntArray] = []
        self.victims_of: list[VictimsOf] = []

    @property
    def count(self) -> int:
        return len(self.victims_of)

    def add(
        self, rows: IntpArray, ranks: IntArray, victims_of: VictimsOf, most: int | None
    ) -> None:
        """Add these, as long as there are no more than so many."""
        left = None if most is None else most - self.count
        self.rows.append(rows[:left])
        self.ranks.append(ranks[:, :left])
        self.victims_of += [victims_of] * len(rows[:left])


def _joined(first: _Found, second: _Found) -> Candidates:
    if second.count == 0 and len(first.rows) == 1:
        return Candidates(first.rows[0], first.ranks[0], first.victims_of)
    return Candidates(
        np.concatenate((np.empty(0, np.intp), *first.rows, *second.rows)),
        np.concatenate((np.empty((CRITERIA, 0), np.int64), *first.ranks, *second.ranks), axis=1),
        [*first.victims_of, *second.victims_of],
    )
