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
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption import evictable
from kubestow.plugins.default_preemption.by_numbers import ByNumbers
from kubestow.plugins.default_preemption.candidates import CRITERIA
from kubestow.plugins.default_preemption.dry_run import (
    NO_NOMINATIONS,
    NO_VICTIMS,
    Evaluator,
    TrialInputs,
    TrialResults,
)
from kubestow.plugins.default_preemption.filter_runner import FilterFault, codes_of, status_numbers
from kubestow.plugins.default_preemption.filters import TrialFilter, TrialFilters
from kubestow.plugins.default_preemption.many_nodes import ManyNodes, nominated_by_row
from kubestow.plugins.default_preemption.one_node import OneNode
from kubestow.plugins.default_preemption.trial_record import TrialRecord

# How many numbers all records together may hold: the code and the ranks of every node. A record
# without its arrays takes as much memory as `_NUMBERS_PER_RECORD` numbers.
_NUMBERS_MAX: Final = 16_000_000
_NUMBERS_PER_RECORD: Final = 2_000
_RECORDS_MIN: Final = 4

# How many candidates beyond those needed are computed, where no search went further before.
_AHEAD: Final = 256


class TrialRecords:
    """All records; the least recently used is dropped first.

    Where a trial is arithmetic, a record costs as much as another trial: then it is made for the
    second pod of its kind, and None stands for the first.
    """

    def __init__(self) -> None:
        self._records: OrderedDict[tuple[Hashable, int], TrialRecord | None] = OrderedDict()
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
        if key not in self._records and not filters.read_pods:
            self._records[key] = None
            self._drop_oldest(len(inputs.snapshot))
            return ManyNodes(inputs)
        record = self._records.get(key)
        if record is None or not record.is_valid(inputs):
            record = self._records[key] = TrialRecord(inputs)
            self._records.move_to_end(key)
            self._drop_oldest(len(inputs.snapshot))
        else:
            self._records.move_to_end(key)
            record.prepare(inputs.now_ns)
        return RecordedTrials(record, inputs)

    def _drop_oldest(self, node_count: int) -> None:
        numbers = _NUMBERS_PER_RECORD + (CRITERIA + 1) * node_count
        while len(self._records) > max(_NUMBERS_MAX // numbers, _RECORDS_MIN):
            self._records.popitem(last=False)


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
            ahead = rows_at(rows, possible[len(fitting) :][: evictable.FEW])
            if len(needed) > evictable.FEW:
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
        many_nodes = ManyNodes(self._reused_inputs(), self.statuses)
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
            state.timer = inputs.state.timer
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
        """The results, with nodes that pods are nominated to tried in full."""
        if self._nominated_rows is None:
            return results
        tried_so_far = row_numbers(rows)[: len(results.codes)]
        positions = np.flatnonzero(np.isin(tried_so_far, self._nominated_rows))
        if len(positions) == 0:
            return results
        tried = tried_so_far[positions]
        with_nominated = ManyNodes(self._inputs, self.statuses).evaluate(tried, None)
        with_nominated.name_codes()
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
