"""The results of trials of one pod on every node, for later pods of its shape.

Invariant: what is kept of a row is the result of `one_node` for the node as it is.
Not here: which rows a search needs, and how those without a result are tried (`trial_records`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kubestow.api.importance import start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import (
    IntArray,
    IntpArray,
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
    TrialInputs,
    TrialResults,
)
from kubestow.plugins.default_preemption.evictable import (
    ALL_STARTED,
    FEW,
    NOT_STARTED,
    RankedPods,
    unstarted_until_ns,
)
from kubestow.plugins.default_preemption.filter_runner import FilterFault, codes_of
from kubestow.plugins.default_preemption.filters import TrialFilter

# In place of the rank: the deciding victim has not started. It counts as started now, and the
# current time differs for every pod.
_STARTS_NOW: Final = -NOT_STARTED


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
        if self.by_numbers is None or len(rows) > FEW:
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
        """The ranks of a single node, as `_note_starts` does for many."""
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
        """The filters that pass all nodes, with any pods on them.

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
        results.name_codes()
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
