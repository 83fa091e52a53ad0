"""What trials came to, kept from pod to pod.

Pods that have to evict others come in numbers and look alike, and one of them changes one node.
Where every filter answers from the pod's shape and the node alone, so does the trial: its outcome
is kept per shape and priority, and found anew only for nodes that changed.

    stale rows     found anew, when a search gets there      `one_node`, `many_nodes`
    kept rows      read
    crowded rows   found anew for every pod, never kept: who is nominated to a node is not
                   part of the node

Filters that look at each pod by itself but not at other pods (volumes, devices) do not spoil this:
they are left out of what is kept, and asked once in every search.

Invariant: a search here ends in what `one_node` would say of every node.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.importance import start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.api.pod_shape import PodShape
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.cache.change_log import Depends
from kubestow.cache.numbering import numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Reads
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption.asking import FilterFault, ask, status_numbers
from kubestow.plugins.default_preemption.candidates import CRITERIA, YOUNGEST, VictimsOf
from kubestow.plugins.default_preemption.dry_run import (
    NO_NOMINATIONS,
    NO_VICTIMS,
    Evaluator,
    Question,
    Stretch,
)
from kubestow.plugins.default_preemption.evictable import NOT_STARTED
from kubestow.plugins.default_preemption.filters import TrialFilter
from kubestow.plugins.default_preemption.many_nodes import ManyNodes, crowds_by_row
from kubestow.plugins.default_preemption.one_node import OneNode

# How many numbers all records together may hold: the code and the ranks of every node. A record
# without its arrays takes as much as so many numbers.
_NUMBERS_MAX: Final = 16_000_000
_NUMBERS_PER_RECORD: Final = 2_000
_RECORDS_MIN: Final = 4

# Up to this many nodes, one after the other is quicker.
_FEW: Final = 8

# How many candidates beyond those needed are looked for, where all have to be found anew.
_AHEAD: Final = 256

# In place of the rank: the victim that decides has not started. It counts as started now, and that
# is another time for every pod.
_STARTS_NOW: Final = -NOT_STARTED


class TrialRecords:
    """All that is kept; the least recently used goes first."""

    def __init__(self) -> None:
        self._records: OrderedDict[tuple[PodShape, int], TrialRecord] = OrderedDict()

    def evaluator(self, question: Question) -> Evaluator:
        """The cheapest way to try nodes for this pod."""
        parts = _parts_of(question)
        if parts is None:
            return ManyNodes(question)
        key = (question.pod.shape, question.pod.priority)
        record = self._records.get(key)
        if record is None or not record.is_valid(question, parts):
            record = self._records[key] = TrialRecord(question, parts)
            self._make_room(len(question.snapshot))
        else:
            self._records.move_to_end(key)
            record.prepare(question.now_ns)
        return RecordedTrials(record, question, parts)

    def _make_room(self, node_count: int) -> None:
        numbers = _NUMBERS_PER_RECORD + (CRITERIA + 1) * node_count
        while len(self._records) > max(_NUMBERS_MAX // numbers, _RECORDS_MIN):
            self._records.popitem(last=False)


class _Parts(NamedTuple):
    """The filters of an attempt: those whose say is kept, and those asked for every pod."""

    reused: list[TrialFilter]
    asked: list[TrialFilter]

    @property
    def reused_names(self) -> list[str]:
        return [taking_part.name for taking_part in self.reused]


def _parts_of(question: Question) -> _Parts | None:
    """None if what one pod learns does not hold for the next."""
    parts = _Parts([], [])
    for taking_part in question.filters:
        if taking_part.is_reused:
            parts.reused.append(taking_part)
        elif taking_part.reads is Reads.NODE:
            parts.asked.append(taking_part)
        else:
            return None
    return parts


class TrialRecord(Follower):
    """What became of every node for pods of one shape and priority.

    is_stale   bool[row]              nothing is known of the node as it is
    codes      int64[row]             0 where evicting helps, or might as far as is known; else a
                                      number of `statuses`
    ranks      int64[criterion, row]  as in `candidates`, but for victims that have not started
    """

    def __init__(self, question: Question, parts: _Parts) -> None:
        super().__init__(question.snapshot.log, Depends.PODS)
        self._snapshot: Snapshot = question.snapshot
        self._budgets: BudgetTable | None = question.budgets
        self._filters = parts.reused_names
        self._now_ns = question.now_ns
        # Whether a filter failed on some node, rather than reject it.
        self._has_faults = False
        # Whether another pod than the first has come to use it.
        self.is_in_use = False
        # How far the last search went.
        self.reach = 0
        self.statuses = StatusCodes()
        self.relaid(None)

    def is_valid(self, question: Question, parts: _Parts) -> bool:
        return (
            parts.reused_names == self._filters
            and question.budgets is self._budgets
            and question.snapshot is self._snapshot
            # Error texts are unbounded, so a record that has some is dropped.
            and not self._has_faults
            # Reasons may name what changes, a load or a date.
            and len(self.statuses) <= numbered_max(len(self._snapshot))
            # A clock that was set back makes other pods the ones that start in the future.
            and question.now_ns >= self._now_ns
        )

    def prepare(self, now_ns: int) -> None:
        """Take note of what changed since the last search."""
        self.is_in_use = True
        self._now_ns = now_ns
        self.catch_up()
        if self._fleeting:
            self._forget(self._fleeting)
            self._fleeting = []

    def relaid(self, sources: Sources | None) -> None:
        row_count = len(self._snapshot)
        # Filters that no node of the cluster fails; None until asked, and when a Node has changed.
        self._passing: frozenset[str] | None = None
        # Rows whose outcome depends on the current time.
        self._fleeting: list[int] = []
        self.is_stale = np.ones(row_count, np.bool_)
        self.codes = np.zeros(row_count, np.int64)
        self._ranks = np.zeros((CRITERIA, row_count), np.int64)
        self._victims_of: list[VictimsOf | None] = [None] * row_count

    def nodes_changed(self, rows: Sequence[int]) -> None:
        self._passing = None

    def pods_changed(self, rows: Sequence[int]) -> None:
        self._forget(rows)

    def _forget(self, rows: Sequence[int]) -> None:
        numbers = np.asarray(rows)
        self.is_stale[numbers] = True
        self.codes[numbers] = 0

    def passing_everywhere(
        self, question: Question, filters: Sequence[TrialFilter]
    ) -> frozenset[str]:
        """Those of the filters that pass all nodes, whatever pods are on them.

        Most do; they need not be asked again until a Node object changes.
        """
        if self._passing is None:
            self._passing = frozenset(
                asked.name
                for asked in filters
                if asked.reads is Reads.NODE and _passes_everywhere(asked, question)
            )
        return self._passing

    def keep(self, rows: IntpArray, stretch: Stretch) -> None:
        """Remember what became of these rows, as of the last `prepare`."""
        self.is_stale[rows] = False
        self.codes[rows] = stretch.codes
        self.note_faults(stretch.codes)
        if stretch.ranks.shape[1] == 0:
            return
        candidates = rows[stretch.codes == 0]
        self._ranks[:, candidates] = stretch.ranks
        infos, now_ns = self._snapshot.node_infos, self._now_ns
        listed: list[int] = candidates.tolist()
        youngest: list[int] = stretch.ranks[YOUNGEST].tolist()
        for row, rank in zip(listed, youngest, strict=True):
            self._victims_of[row] = stretch.victims_of
            starts = [start_time_ns(pod.pod, NOT_STARTED) for pod in infos[row].pods]
            if NOT_STARTED not in starts:
                continue
            if any(now_ns <= start < NOT_STARTED for start in starts):
                # Which of two pods is said to have started first changes as time goes by.
                self._fleeting.append(row)
            elif rank == -now_ns:
                self._ranks[YOUNGEST, row] = _STARTS_NOW

    def note_faults(self, codes: IntArray) -> None:
        self._has_faults |= bool(codes.min(initial=0) < 0)

    def ranks(self, rows: IntpArray) -> IntArray:
        """int64[criterion, row of these], as of the last `prepare`."""
        ranks = self._ranks[:, rows]
        youngest = ranks[YOUNGEST]
        youngest[youngest == _STARTS_NOW] = -self._now_ns
        return ranks

    def victims_of(self, row: int) -> Sequence[PodInfo]:
        victims_of = self._victims_of[row]
        assert victims_of is not None, row
        return victims_of(row)


def _passes_everywhere(asked: TrialFilter, question: Question) -> bool:
    try:
        codes = ask(asked.plugin, question.state, question.pod, nodes_of(question.snapshot))
    except FilterFault:
        return False  # It is reported for the node on which it fails.
    return codes is None or not codes.any()


class RecordedTrials:
    """Tries nodes for one pod, with what is known from others."""

    def __init__(self, record: TrialRecord, question: Question, parts: _Parts) -> None:
        self._record = record
        self._question = question
        self._parts = parts
        self._reused: Question | None = None
        self.statuses = record.statuses
        crowds = crowds_by_row(question)
        self._crowded = np.fromiter(crowds, np.intp) if crowds else None

    def evaluate(self, rows: IntpArray, missing: int | None) -> Stretch:
        record = self._record
        fitting = self._fitting(rows, missing)
        if len(fitting) == missing:
            # The others are most likely not needed. If they are, they are asked for again.
            rows = rows[: fitting[-1] + 1]
        codes = record.codes[rows]
        if self._parts.asked:
            try:
                for taking_part in self._parts.asked:
                    self._ask(taking_part, rows, codes)
            except FilterFault:
                # Only one by one can the filter say which node it means.
                return OneNode(self._question, self.statuses).evaluate(rows, missing)
            fitting = (codes == 0).nonzero()[0]
        stretch = Stretch(codes, record.ranks(rows[fitting]), record.victims_of)
        return stretch if self._crowded is None else self._with_crowds(rows, stretch)

    def _fitting(self, rows: IntpArray, missing: int | None) -> IntpArray:
        """The positions of the first nodes that help, so many or all; none up to there is stale."""
        record = self._record
        # Most searches end where the one before did.
        within = rows if missing is None else rows[: record.reach + _AHEAD]
        while True:
            # Stale ones might help.
            hopeful = (record.codes[within] == 0).nonzero()[0]
            fitting = hopeful[:missing]
            if len(fitting) != missing and len(within) < len(rows):
                within = rows
                continue
            needed = rows[fitting]
            is_stale = record.is_stale[needed]
            if not is_stale.any():
                record.reach = int(fitting[-1]) if len(fitting) else 0
                return fitting
            needed = needed[is_stale]
            ahead = rows[hopeful[len(fitting) :][:_FEW]]
            if len(needed) > _FEW:
                self._try_many(rows, None if missing is None else len(needed))
            elif record.is_in_use and len(ahead) and record.is_stale[ahead].all():
                # No earlier search went further: find candidates for the next pods as well.
                self._try_many(rows, len(needed) + _AHEAD)
            else:
                record.keep(
                    needed, OneNode(self._reused_question(), self.statuses).evaluate(needed, None)
                )

    def _try_many(self, rows: IntpArray, wanted: int | None) -> None:
        """Try stale nodes in their order until so many are found that help, or all of them."""
        stale = rows[self._record.is_stale[rows]]
        stretch = ManyNodes(self._reused_question(), self.statuses).evaluate(stale, wanted)
        self._record.keep(stale[: len(stretch.codes)], stretch)

    def _reused_question(self) -> Question:
        """The question about the node alone: what its answer depends on is the same for all."""
        if self._reused is None:
            passing = self._record.passing_everywhere(self._question, self._parts.reused)
            taking_part = [other for other in self._parts.reused if other.name not in passing]
            state = self._question.state.shallow_copy()
            state.skip_filter.update(passing, (other.name for other in self._parts.asked))
            self._reused = self._question._replace(
                state=state, filters=taking_part, nominator=NO_NOMINATIONS
            )
        return self._reused

    def _ask(self, asked: TrialFilter, rows: IntpArray, codes: IntArray) -> None:
        """Enter where a filter fails that is asked for every pod."""
        positions = np.flatnonzero(self._is_undecided(asked.step.filter_index, codes))
        if len(positions) == 0:
            return
        state = self._question.state
        nodes = nodes_of(self._question.snapshot, rows[positions])
        found = ask(asked.plugin, state, self._question.pod, nodes)
        if found is not None:
            numbers = status_numbers(asked.plugin, state, found, self.statuses)
            self._record.note_faults(numbers)
            is_failure = numbers != 0
            codes[positions[is_failure]] = numbers[is_failure]

    def _is_undecided(self, filter_index: int, codes: IntArray) -> BoolArray:
        """bool[node]: the nodes that were not rejected before it comes to this filter."""
        is_undecided = codes == 0
        rejections = codes[~is_undecided]
        while len(rejections):
            code = int(rejections[0])
            if self._place_of(code) > filter_index:
                is_undecided |= codes == code
            rejections = rejections[rejections != code]
        return is_undecided

    def _place_of(self, code: int) -> int:
        """The index of the filter that rejects a node with this code."""
        status = self.statuses.status_of(code)
        if status == NO_VICTIMS:
            return -1  # No filter is asked.
        for taking_part in self._question.filters:
            if taking_part.name == status.plugin:
                return taking_part.step.filter_index
        return len(self._question.profile.filter)  # All filters passed the node.

    def _with_crowds(self, rows: IntpArray, stretch: Stretch) -> Stretch:
        """The same with the nodes tried in full that pods are nominated to."""
        assert self._crowded is not None
        positions = np.flatnonzero(np.isin(rows, self._crowded))
        if len(positions) == 0:
            return stretch
        tried = rows[positions]
        crowded = ManyNodes(self._question, self.statuses).evaluate(tried, None)
        self._record.note_faults(crowded.codes)
        codes = stretch.codes.copy()
        codes[positions] = crowded.codes
        ranks = np.zeros((CRITERIA, len(codes)), np.int64)
        ranks[:, stretch.codes == 0] = stretch.ranks
        ranks[:, positions[crowded.codes == 0]] = crowded.ranks
        rows_tried = frozenset[int](tried.tolist())

        def victims_of(row: int) -> Sequence[PodInfo]:
            return crowded.victims_of(row) if row in rows_tried else stretch.victims_of(row)

        return Stretch(codes, ranks[:, codes == 0], victims_of)
