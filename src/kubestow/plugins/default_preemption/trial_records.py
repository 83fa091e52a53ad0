"""Results of trials, reused for later pods.

Many preemptors have the same shape, and each of them changes one node. Where every filter depends
on the pod's shape and the node alone, so does the trial: its result is kept per shape and priority,
and computed again only for nodes that changed.

    stale rows       computed when a search reaches them      `by_numbers`, `many_nodes`
    changed rows     a few are computed again at once         `by_numbers`
    kept rows        read
    nominated rows   computed for every pod, never kept: the pods nominated to a node are not part
                     of the node

Filters that depend on the single pod but not on other pods (volumes, devices) are left out of what
is kept, and called once in every search.

Invariant: a search here gives the result of `one_node` for every node.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.importance import start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import (
    BoolArray,
    IntArray,
    IntpArray,
    Rows,
    row_count,
    row_numbers,
    rows_at,
    rows_between,
)
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.numbering import numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.faults import pass_on_exit
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Reads
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption.by_numbers import ByNumbers
from kubestow.plugins.default_preemption.candidates import (
    CRITERIA,
    YOUNGEST,
    Candidate,
    VictimsOf,
)
from kubestow.plugins.default_preemption.dry_run import (
    NO_NOMINATIONS,
    NO_VICTIMS,
    Evaluator,
    TrialInputs,
    TrialResults,
)
from kubestow.plugins.default_preemption.evictable import (
    ALL_STARTED,
    NOT_STARTED,
    RankedPods,
    unstarted_until_ns,
)
from kubestow.plugins.default_preemption.filter_runner import FilterFault, codes_of, status_numbers
from kubestow.plugins.default_preemption.filters import TrialFilter, TrialFilters
from kubestow.plugins.default_preemption.many_nodes import ManyNodes, nominated_by_row
from kubestow.plugins.default_preemption.one_node import OneNode

# How many numbers all records together may hold: the code and the ranks of every node. A record
# without its arrays takes as much memory as `_NUMBERS_PER_RECORD` numbers.
_NUMBERS_MAX: Final = 16_000_000
_NUMBERS_PER_RECORD: Final = 2_000
_RECORDS_MIN: Final = 4

# Up to this many nodes, trying one after the other is faster.
_FEW: Final = 8

# How many candidates beyond those needed are computed, where no search went further before.
_AHEAD: Final = 256

# How many nodes more than last time are tried together.
_MARGIN: Final = 32

# In place of the rank: the deciding victim has not started. It counts as started now, and the
# current time differs for every pod.
_STARTS_NOW: Final = -NOT_STARTED


class TrialRecords:
    """All records; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._records: OrderedDict[tuple[Hashable, int], TrialRecord] = OrderedDict()
        self._budgets: BudgetTable | None = None

    def evaluator(self, inputs: TrialInputs) -> Evaluator:
        """The cheapest way to try nodes for this pod."""
        filters = inputs.filters
        if not filters.allow_records:
            return ManyNodes(inputs)
        if inputs.budgets is not self._budgets:
            # None of the records is valid any more. Each would keep the budgets of its time, and
            # which pods they cover, until a pod of its shape comes again.
            self._records.clear()
            self._budgets = inputs.budgets
        pod = inputs.pod
        key = (pod.full_shape if filters.read_all_of_pod else pod.shape, pod.priority)
        record = self._records.get(key)
        if record is None or not record.is_valid(inputs):
            latest = next(reversed(self._records.values()), None)
            record = self._records[key] = TrialRecord(inputs)
            if latest is not None:
                record.reach = latest.reach  # Most searches end near where the previous one did.
            self._drop_oldest(len(inputs.snapshot))
        else:
            self._records.move_to_end(key)
            record.prepare(inputs.now_ns)
        return RecordedTrials(record, inputs)

    def _drop_oldest(self, node_count: int) -> None:
        numbers = _NUMBERS_PER_RECORD + (CRITERIA + 1) * node_count
        while len(self._records) > max(_NUMBERS_MAX // numbers, _RECORDS_MIN):
            self._records.popitem(last=False)


class TrialRecord(Follower):
    """The result for every node, for pods of one shape and priority.

    is_stale   bool[row]              the current node has no result yet
    codes      int64[row]             0 where evicting helps, or the row is stale; else a number of
                                      `statuses`
    ranks      int64[criterion, row]  as in `candidates`, but for victims that have not started
    by_numbers                        tries a single node again; None if filters read more
    """

    def __init__(self, inputs: TrialInputs) -> None:
        super().__init__(inputs.snapshot.log, Depends.PODS)
        self._snapshot: Snapshot = inputs.snapshot
        self._filters = inputs.filters.reused_names
        self._now_ns = inputs.now_ns
        # Whether a filter failed on some node, rather than reject it.
        self._has_faults = False
        # Whether a second pod has used it.
        self.is_in_use = False
        # How far the last search went.
        self.reach = 0
        self.statuses = StatusCodes()
        self.rows_moved(None)

    def is_valid(self, inputs: TrialInputs) -> bool:
        return (
            inputs.filters.reused_names == self._filters
            and inputs.snapshot is self._snapshot
            # Error texts are unbounded, so a record that has some is dropped.
            and not self._has_faults
            # Reasons may contain changing values, such as a load or a date.
            and len(self.statuses) <= self._statuses_max
            # After a clock was set back, other pods are the ones that start in the future.
            and inputs.now_ns >= self._now_ns
        )

    def prepare(self, now_ns: int) -> None:
        """Apply what changed since the last search."""
        self.is_in_use = True
        self._now_ns = now_ns
        self.catch_up()
        if self._time_dependent:
            self._forget(self._time_dependent)
            self._time_dependent = []

    def rows_moved(self, sources: Sources | None) -> None:
        row_count = len(self._snapshot)
        self._statuses_max = numbered_max(row_count)
        self.by_numbers: ByNumbers | None = None
        # Filters that pass every node; None until called, and when a Node has changed.
        self._passing: frozenset[str] | None = None
        # Rows whose outcome depends on the current time.
        self._time_dependent: list[int] = []
        self.is_stale = np.ones(row_count, np.bool_)
        self.codes = np.zeros(row_count, np.int64)
        self._ranks = np.zeros((CRITERIA, row_count), np.int64)
        self._victims_of = np.empty(row_count, np.object_)

    def nodes_changed(self, rows: Sequence[int]) -> None:
        self._passing = self.by_numbers = None

    def pods_changed(self, rows: Sequence[int]) -> None:
        if self.by_numbers is None or len(rows) > _FEW:
            self._forget(rows)
        else:
            kept = [row for row in set(rows) if not self.is_stale[row]]
            self.try_by_numbers(self.by_numbers, kept)

    def try_by_numbers(self, by_numbers: ByNumbers, rows: Sequence[int]) -> None:
        """Try these nodes. Those on which the trial fails become stale: the search reports it."""
        for row in rows:
            info = self._snapshot.node_infos[row]
            try:
                found = by_numbers.try_node(row, info, self._now_ns)
            except BaseException as error:  # A fault in one plugin must not stop the scheduler.
                pass_on_exit(error)
                self._forget([row])
                continue
            if isinstance(found, int):
                self._enter(row, found)
            elif found.victims:
                self._enter(row, 0)
                self._victims_of[row] = {row: found.victims}.__getitem__
                self._ranks[:, row] = self._kept_ranks(found, info)
            else:
                self._forget([row])  # An error.

    def _kept_ranks(self, found: Candidate, info: NodeInfo) -> tuple[int, ...]:
        """As `_note_starts` for a single node."""
        now_ns = self._now_ns
        ranks = found.ranks(now_ns)
        until_ns = unstarted_until_ns([start_time_ns(pod.pod, NOT_STARTED) for pod in info.pods])
        if until_ns >= now_ns:
            self._time_dependent.append(found.row)
        elif until_ns != ALL_STARTED and ranks[YOUNGEST] == -now_ns:
            return (*ranks[:YOUNGEST], _STARTS_NOW)
        return ranks

    def _enter(self, row: int, code: int) -> None:
        self.is_stale[row] = False
        self.codes[row] = code
        self._has_faults |= code < 0

    def _forget(self, rows: Sequence[int]) -> None:
        numbers = np.asarray(rows)
        self.is_stale[numbers] = True
        self.codes[numbers] = 0

    def passing_everywhere(
        self, inputs: TrialInputs, filters: Sequence[TrialFilter]
    ) -> frozenset[str]:
        """Those of the filters that pass all nodes, whatever pods are on them.

        Most do; they need not be called again until a Node object changes.
        """
        if self._passing is None:
            self._passing = frozenset(
                trial_filter.name
                for trial_filter in filters
                if trial_filter.reads is Reads.NODE and _passes_everywhere(trial_filter, inputs)
            )
        return self._passing

    def keep(self, rows: IntpArray, results: TrialResults) -> None:
        """Keep the results of these rows, as of the last `prepare`."""
        self.is_stale[rows] = False
        self.codes[rows] = results.codes
        self.note_faults(results.codes)
        if results.ranks.shape[1] == 0:
            return
        candidates = rows[results.positions]
        self._ranks[:, candidates] = results.ranks
        self._victims_of[candidates] = results.victims_of
        self._note_starts(candidates, self._snapshot.derived(RankedPods).until_ns(candidates))

    def _note_starts(self, candidates: IntpArray, until_ns: IntArray) -> None:
        """`until_ns` as in `RankedPods`."""
        now_ns, youngest = self._now_ns, self._ranks[YOUNGEST]
        is_dependent = until_ns >= now_ns
        if np.count_nonzero(is_dependent):
            # Which of two pods counts as started first depends on the current time.
            self._time_dependent += candidates[is_dependent].tolist()
        is_now = (until_ns != ALL_STARTED) & ~is_dependent & (youngest[candidates] == -now_ns)
        youngest[candidates[is_now]] = _STARTS_NOW

    def note_faults(self, codes: IntArray) -> None:
        self._has_faults |= bool(codes.min(initial=0) < 0)

    def ranks(self, rows: IntpArray) -> IntArray:
        """int64[criterion, row of these], as of the last `prepare`."""
        ranks = self._ranks.take(rows, axis=1)
        youngest = ranks[YOUNGEST]
        np.putmask(youngest, youngest == _STARTS_NOW, -self._now_ns)
        return ranks

    def victims_of(self, row: int) -> Sequence[PodInfo]:
        victims_of: VictimsOf | None = self._victims_of[row]
        assert victims_of is not None, row
        return victims_of(row)


def _passes_everywhere(trial_filter: TrialFilter, inputs: TrialInputs) -> bool:
    try:
        codes = codes_of(trial_filter.plugin, inputs.state, inputs.pod, nodes_of(inputs.snapshot))
    except FilterFault:
        return False  # It is reported for the node on which it fails.
    return codes is None or not codes.any()


class RecordedTrials:
    """Tries nodes for one pod, reusing the results of earlier pods."""

    def __init__(self, record: TrialRecord, inputs: TrialInputs) -> None:
        self._record = record
        self._inputs = inputs
        self._reused: TrialInputs | None = None
        self.statuses = record.statuses
        nominated = nominated_by_row(inputs)
        self._nominated_rows = np.fromiter(nominated, np.intp) if nominated else None

    def evaluate(self, rows: Rows, missing: int | None) -> TrialResults:
        record = self._record
        fitting = self._fitting(rows, missing)
        if len(fitting) == missing:
            # The others are most likely not needed. If they are, they are tried again.
            rows = rows_between(rows, 0, int(fitting[-1]) + 1)
        if self._inputs.filters.per_pod:
            return self._with_nominated(rows, self._with_per_pod(row_numbers(rows), missing))
        found = rows_at(rows, fitting)
        results = TrialResults(
            record.codes[rows], fitting, found, record.ranks(found), record.victims_of
        )
        return results if self._nominated_rows is None else self._with_nominated(rows, results)

    def _fitting(self, rows: Rows, missing: int | None) -> IntpArray:
        """The positions of the first `missing` nodes that help, or all; none of them is stale."""
        record, count = self._record, row_count(rows)
        # Most searches end where the previous one did.
        end = count if missing is None else min(record.reach + _AHEAD, count)
        while True:
            # Includes stale rows, which might help.
            possible = (record.codes[rows_between(rows, 0, end)] == 0).nonzero()[0]
            fitting = possible[:missing]
            if len(fitting) != missing and end < count:
                end = count
                continue
            last = int(fitting[-1]) if len(fitting) else 0
            if not np.count_nonzero(record.is_stale[rows_between(rows, 0, last + 1)]):
                record.reach = last
                return fitting
            needed = rows_at(rows, fitting)
            needed = needed[record.is_stale[needed]]
            ahead = rows_at(rows, possible[len(fitting) :][:_FEW])
            if len(needed) > _FEW:
                self._try_many(rows, None if missing is None else len(needed))
            elif record.is_in_use and len(ahead) and record.is_stale[ahead].all():
                # No earlier search went further: find candidates for the next pods as well.
                self._try_many(rows, len(needed) + _AHEAD)
            else:
                self._try_few(needed)

    def _try_few(self, rows: IntpArray) -> None:
        reused, record = self._reused_inputs(), self._record
        if record.by_numbers is not None:
            record.try_by_numbers(record.by_numbers, rows.tolist())
            rows = rows[record.is_stale[rows]]
        if len(rows):
            record.keep(rows, OneNode(reused, self.statuses).evaluate(rows, None))

    def _try_many(self, rows: Rows, wanted: int | None) -> None:
        """Try stale nodes in their order until `wanted` of them help, or all."""
        record = self._record
        stale = record.is_stale[rows].nonzero()[0]
        expected = int(np.searchsorted(stale, record.reach)) + _MARGIN
        many_nodes = ManyNodes(self._reused_inputs(), self.statuses, expected)
        results = many_nodes.evaluate(rows_at(rows, stale), wanted)
        record.keep(rows_at(rows, stale[: len(results.codes)]), results)

    def _reused_inputs(self) -> TrialInputs:
        """The trial without what depends on the single pod: the same for all pods of the shape."""
        if self._reused is None:
            inputs, record = self._inputs, self._record
            reused = inputs.filters.reused
            passing = record.passing_everywhere(inputs, reused)
            filters = TrialFilters(each for each in reused if each.name not in passing)
            state = inputs.state.shallow_copy()
            per_pod = (each.name for each in inputs.filters.per_pod)
            state.skip_filter = state.skip_filter.union(passing, per_pod)
            self._reused = inputs._replace(state=state, filters=filters, nominator=NO_NOMINATIONS)
            if record.by_numbers is None:
                record.by_numbers = ByNumbers.of(self._reused, record.statuses)
        return self._reused

    def _with_per_pod(self, rows: IntpArray, missing: int | None) -> TrialResults:
        """What is kept, with the filters that are called for every pod."""
        record = self._record
        codes = record.codes[rows]
        try:
            for trial_filter in self._inputs.filters.per_pod:
                self._run_per_pod(trial_filter, rows, codes)
        except FilterFault:
            # One by one shows which node the filter fails on.
            return OneNode(self._inputs, self.statuses).evaluate(rows, missing)
        ranks = record.ranks(rows[codes == 0])
        return TrialResults.of(rows, codes, ranks, record.victims_of)

    def _run_per_pod(self, trial_filter: TrialFilter, rows: IntpArray, codes: IntArray) -> None:
        """Enter the failures of a filter that is called for every pod."""
        positions = np.flatnonzero(self._is_undecided(trial_filter.step.filter_index, codes))
        if len(positions) == 0:
            return
        state = self._inputs.state
        nodes = nodes_of(self._inputs.snapshot, rows[positions])
        found = codes_of(trial_filter.plugin, state, self._inputs.pod, nodes)
        if found is not None:
            numbers = status_numbers(trial_filter.plugin, state, found, self.statuses)
            self._record.note_faults(numbers)
            is_failure = numbers != 0
            codes[positions[is_failure]] = numbers[is_failure]

    def _is_undecided(self, filter_index: int, codes: IntArray) -> BoolArray:
        """bool[node]: the nodes that no earlier filter rejected."""
        is_undecided = codes == 0
        rejections = codes[~is_undecided]
        while len(rejections):
            code = int(rejections[0])
            if self._filter_index_of(code) > filter_index:
                is_undecided |= codes == code
            rejections = rejections[rejections != code]
        return is_undecided

    def _filter_index_of(self, code: int) -> int:
        """The index of the filter that rejects a node with this code."""
        status = self.statuses.status_of(code)
        if status == NO_VICTIMS:
            return -1  # No filter is called.
        for trial_filter in self._inputs.filters:
            if trial_filter.name == status.plugin:
                return trial_filter.step.filter_index
        return len(self._inputs.profile.filter)  # All filters passed the node.

    def _with_nominated(self, rows: Rows, results: TrialResults) -> TrialResults:
        """The same, with nodes that pods are nominated to tried in full."""
        if self._nominated_rows is None:
            return results
        tried_so_far = row_numbers(rows)[: len(results.codes)]
        positions = np.flatnonzero(np.isin(tried_so_far, self._nominated_rows))
        if len(positions) == 0:
            return results
        tried = tried_so_far[positions]
        with_nominated = ManyNodes(self._inputs, self.statuses).evaluate(tried, None)
        self._record.note_faults(with_nominated.codes)
        codes = results.codes.copy()
        codes[positions] = with_nominated.codes
        ranks = np.zeros((CRITERIA, len(codes)), np.int64)
        ranks[:, results.codes == 0] = results.ranks
        ranks[:, positions[with_nominated.codes == 0]] = with_nominated.ranks
        rows_tried = frozenset[int](tried.tolist())

        def victims_of(row: int) -> Sequence[PodInfo]:
            return with_nominated.victims_of(row) if row in rows_tried else results.victims_of(row)

        return TrialResults.of(tried_so_far, codes, ranks[:, codes == 0], victims_of)
