"""Verdicts and scores of every node for pods of one shape, brought up to date when read.

For plugins that allow reuse (`framework.reuse`) these depend on the pod's shape and on that node
alone. They are computed for all nodes once, and then again only for the nodes that changed.

    fixed      what depends on Node objects        first filter to reject, its code, weighted score
    local      what depends on pods as well        the same, with the filters and scores on pods
    varying    raw scores, normalised over the feasible nodes of each attempt

Not here: when a record is made and used (`records`), which plugins take part (`plan`).
"""

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.numbering import numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.plan import ReusePlan, Versions
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE, Restriction, StatusCodes
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.reuse import Reads
from kubestow.framework.runner import filter_of, normalize_of, score_of
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import Tracked, are_most

# Rows of the array of what depends on Node objects.
_FAILED_BY: Final = 0
_CODE: Final = 1
_SCORE: Final = 2

# Up to this many changed rows, one by one is faster than all together.
_ROWS_FEW: Final = 8


class FallBackToPlain(Exception):
    """A plugin failed. The attempt is made again by asking every plugin, because which failure
    counts depends on the order of all plugins."""


class Record(Follower):
    """Verdicts and scores of the plugins whose answers are reused.

    failed_by        int64[row]   index of the first of these filters to reject the node, or PASSED
    codes            int64[row]   that filter's code
    score            int64[row]   weighted scores without those in `varying`; not up to date while
                                  no node fits
    rejected_count   how many nodes are rejected
    is_used          whether a second pod of the shape has come
    has_failed       whether a plugin failed while it was brought up to date
    asked_…          the steps of the other plugins, which are asked in every cycle
    """

    def __init__(
        self,
        plan: ReusePlan,
        reused: frozenset[str],
        pod: PodInfo,
        snapshot: Snapshot,
        state: CycleState,
        restriction: tuple[str, Restriction] | None,
    ) -> None:
        super().__init__(snapshot.log, Depends.PODS)
        profile = plan.profile
        self.profile = profile
        self.snapshot = snapshot
        self.state = state
        self.restriction = restriction
        self.is_used = False
        self._plan = plan
        self._reused = reused
        self._versions: Versions = plan.versions()
        self._node_count = len(snapshot)
        self.has_failed = False
        self._has_many_statuses = False
        self._pod = pod
        self.asked_pre_filter = [
            (name, plugin) for name, plugin in profile.pre_filter_steps if name not in reused
        ]
        self.asked_filter = [step for step in profile.filter_steps if step.name not in reused]
        self.asked_pre_score = [
            (name, plugin) for name, plugin in profile.pre_score_steps if name not in reused
        ]
        self.asked_score = [step for step in profile.score_steps if step.name not in reused]
        self._steps = _ReusedSteps(
            [
                step
                for step in profile.filter_steps
                if step.name in reused and step.name not in state.skip_filter
            ],
            [
                step
                for step in profile.score_steps
                if step.name in reused and step.name not in state.skip_score
            ],
            state,
        )
        self._normalized = [NormalizedScore(step, self._raw(step)) for step in self._steps.varying]
        self.varying: list[NormalizedScore] = []
        self._constant = 0
        self._fixed = Tracked[np.int64](snapshot.log, Depends.NODE, self._compute_fixed)
        self._compute_all()

    def is_valid(self, pod: PodInfo) -> bool:
        """Whether the record still holds; `pod` is any pod of its shape."""
        # The number of nodes is part of some scores.
        if len(self.snapshot) != self._node_count or self._has_many_statuses or self.has_failed:
            return False
        versions = self._plan.versions()
        if versions != self._versions:
            if self._plan.reused(pod) != self._reused:
                return False
            self._versions = versions
        return True

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self._compute_all()

    def nodes_changed(self, rows: "array[int]") -> None:
        constant = self._constant
        self._sort_normalized()
        if constant != self._constant:
            self._compute_all()

    def pods_changed(self, rows: "array[int]") -> None:
        if are_most(rows, self._node_count):
            self._compute_all()
            return
        is_few = len(rows) <= _ROWS_FEW and self._steps.has_row_forms
        if self.rejected_count == self._node_count:
            self._recheck_rejected(rows, is_few=is_few)
        elif is_few:
            for row in rows:
                self._compute_row(row)
        else:
            self._compute_rows(np.array(rows, np.intp))

    def _compute_all(self) -> None:
        self._sort_normalized()
        self.failed_by, self.codes, self.score = self._compute_local(ALL_ROWS)
        self.rejected_count = int(np.count_nonzero(self.failed_by != PASSED))

    def _compute_rows(self, rows: npt.NDArray[np.intp]) -> None:
        self.failed_by[rows], self.codes[rows], self.score[rows] = self._compute_local(rows)
        self.rejected_count = int(np.count_nonzero(self.failed_by != PASSED))

    def _recheck_rejected(self, rows: "array[int]", *, is_few: bool) -> None:
        """No node fitted before. Usually none does now, and then no scores are needed."""
        if is_few:
            for row in rows:
                self._enter_verdict(row, *self._fixed.values()[:_SCORE, row].tolist())
            has_fitting = self.rejected_count < self._node_count
        else:
            changed = np.array(rows, np.intp)
            verdicts = self._fixed_at(changed)
            self._add_verdicts(verdicts, self._steps.pod_filters, nodes_of(self.snapshot, changed))
            self.failed_by[changed], self.codes[changed] = verdicts[:_SCORE]
            has_fitting = bool(np.count_nonzero(verdicts[_FAILED_BY] == PASSED))
        if has_fitting:
            self._compute_all()

    def _compute_row(self, row: int) -> None:
        """One node changed, as after every placed pod: plain numbers are fastest."""
        failed_by, code, score = self._fixed.values()[:, row].tolist()
        self._enter_verdict(row, failed_by, code)
        info = self.snapshot.node_infos[row]
        for weight, score_of_row in self._steps.row_scores:
            one = score_of_row(info)
            if not MIN_NODE_SCORE <= one <= MAX_NODE_SCORE:
                raise FallBackToPlain
            score += one * weight
        self.score[row] = score + self._constant

    def _enter_verdict(self, row: int, failed_by: int, code: int) -> None:
        """`failed_by` and `code` are the verdict of the filters that read the Node object only."""
        info = self.snapshot.node_infos[row]
        for index, code_of in self._steps.row_filters:
            if failed_by == PASSED or failed_by > index:
                found = code_of(info)
                if found:
                    failed_by, code = index, found
        self.rejected_count += (failed_by != PASSED) - bool(self.failed_by[row] != PASSED)
        self.failed_by[row], self.codes[row] = failed_by, code

    def _compute_fixed(self, rows: Rows) -> IntArray:
        nodes = nodes_of(self.snapshot, rows)
        result = np.zeros((3, len(nodes)), np.int64)
        result[_FAILED_BY] = PASSED
        self._add_verdicts(result, self._steps.node_filters, nodes)
        self._add_scores(result, self._steps.node_scores, nodes)
        return result

    def _compute_local(self, rows: Rows) -> IntArray:
        result, nodes = self._fixed_at(rows), nodes_of(self.snapshot, rows)
        self._add_verdicts(result, self._steps.pod_filters, nodes)
        self._add_scores(result, self._steps.pod_scores, nodes)
        result[_SCORE] += self._constant
        return result

    def _fixed_at(self, rows: Rows) -> IntArray:
        """A copy of what depends on Node objects; the caller adds to it."""
        fixed = self._fixed.values()
        return fixed.copy() if isinstance(rows, slice) else fixed.take(rows, axis=1)

    def _add_verdicts(self, result: IntArray, steps: Sequence[FilterStep], nodes: Nodes) -> None:
        for step in steps:
            codes = filter_of(step.plugin, step.name, self.state, self._pod, nodes)
            if codes is not None:
                override(result[_FAILED_BY], result[_CODE], codes, step.filter_index)
        # Each distinct reason gets a number in the state, and reasons may hold a load or a date.
        statuses_max = numbered_max(self._node_count)
        for value in self.state.values():
            if isinstance(value, StatusCodes) and len(value) > statuses_max:
                self._has_many_statuses = True

    def _add_scores(self, result: IntArray, steps: Sequence[ScoreStep], nodes: Nodes) -> None:
        total = result[_SCORE]
        for step in steps:
            score = checked(score_of(step, self.state, self._pod, nodes))
            total += score if step.weight == 1 else score * step.weight

    def _raw(self, step: ScoreStep) -> Tracked[np.int64]:
        def compute(rows: Rows) -> IntArray:
            scores = score_of(step, self.state, self._pod, nodes_of(self.snapshot, rows))
            # Scores of all rows may be an array of the snapshot; `Tracked` writes to this one.
            return scores.copy() if isinstance(rows, slice) else scores

        depends = Depends.NODE if step.reuse.score is Reads.NODE else Depends.PODS
        return Tracked[np.int64](self.snapshot.log, depends, compute)

    def _sort_normalized(self) -> None:
        """Which normalised scores differ between nodes, and what the others add to every node."""
        constants = [each.constant(self.state, self._pod) for each in self._normalized]
        found = list(zip(self._normalized, constants, strict=True))
        self.varying = [each for each, constant in found if constant is None]
        self._constant = sum(constant for _, constant in found if constant is not None)


class _ReusedSteps:
    """The filters and scores whose answers are reused, by what they read."""

    def __init__(
        self, filters: Sequence[FilterStep], scores: Sequence[ScoreStep], state: CycleState
    ) -> None:
        self.node_filters = [step for step in filters if step.reuse.filter is Reads.NODE]
        self.pod_filters = [step for step in filters if step.reuse.filter is not Reads.NODE]
        # A score that is normalised over the feasible nodes is kept raw.
        self.varying = [step for step in scores if step.normalizer is not None]
        plain = [step for step in scores if step.normalizer is None]
        self.node_scores = [step for step in plain if step.reuse.score is Reads.NODE]
        self.pod_scores = [step for step in plain if step.reuse.score is not Reads.NODE]
        self.row_filters = [
            (step.filter_index, step.row_form(state))
            for step in self.pod_filters
            if step.row_form is not None
        ]
        self.row_scores = [
            (step.weight, step.row_form(state))
            for step in self.pod_scores
            if step.row_form is not None
        ]
        self.has_row_forms = len(self.row_filters) == len(self.pod_filters) and len(
            self.row_scores
        ) == len(self.pod_scores)


class NormalizedScore:
    """A raw score. Most are zero on all nodes, and then normalising gives a constant."""

    def __init__(self, step: ScoreStep, raw: Tracked[np.int64]) -> None:
        self.step = step
        self._raw = raw

    def raw(self) -> IntArray:
        return self._raw.values()

    def constant(self, state: CycleState, pod: PodInfo) -> int | None:
        """The weighted score of every node if it is known to be the same, else None."""
        # Where scores depend on pods, any placed pod may end it.
        if self.step.reuse.score is not Reads.NODE or self.raw().any():
            return None
        zero = normalize_of(self.step, state, pod, np.zeros(1, np.int64))
        return int(checked(zero)[0]) * self.step.weight


def override(
    failed_by: IntArray,
    codes: IntArray,
    found: IntArray,
    index: int,
    positions: npt.NDArray[np.intp] | None = None,
) -> None:
    """Enter a filter's codes where it is the first to reject the node.

    With `positions` the codes are those of these nodes only.
    """
    rejected = np.flatnonzero(found)
    if len(rejected) == 0:
        return
    where = rejected if positions is None else positions[rejected]
    before = failed_by[where]
    is_first = (before == PASSED) | (before > index)
    failed_by[where[is_first]] = index
    codes[where[is_first]] = found[rejected[is_first]]


def checked(scores: IntArray) -> IntArray:
    # As unsigned, negative numbers are huge: one comparison finds both kinds.
    if scores.astype(np.int64, copy=False).view(np.uint64).max(initial=0) > MAX_NODE_SCORE:
        raise FallBackToPlain
    return scores
