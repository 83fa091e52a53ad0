"""Verdicts and scores of plugins that read what pods request, or the pods on a node.

A record adds to that of a frame (`frame_record`). It is computed for all nodes once, and then again
only for the nodes that changed. Where all its plugins read nothing but requests of the pod, pods of
all frames that request the same share it.

Not here: when a record is made and used (`records`), which plugins take part (`plan`).
"""

from array import array
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, IntpArray, narrowed, put
from kubestow.engine.equivalence.asked import Skipped
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.verdicts import (
    FallBackToPlain,
    add_scores,
    all_passing,
    find_verdicts,
    has_many_statuses,
    index_type,
    score_type,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED, Rejections
from kubestow.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubestow.framework.reuse import depends_of
from kubestow.framework.runner import Verdicts
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import are_most

# After this many changes a record is brought up to date in any case.
ROWS_FEW: Final = 8
# Up to this many changed rows, one by one is faster than all together: some 2 µs each, where the
# calls of plugins for all of them take 40, and 70 where other work has come in between.
_ROWS_ONE_BY_ONE: Final = 24


class Record(Follower):
    """The answers, as narrow as their numbers allow, and the state of the plugins that gave them.

    failed_by        index of the first of these filters to reject the node, or PASSED
    codes            that filter's code
    score            weighted scores without those that are normalised; not up to date while no
                     node fits
    rejected_count   how many nodes are rejected
    verdict_changes  how often verdicts have changed
    skipped          the plugins that left themselves out
    frame            the frame whose pods have this record; None if frames share it
    is_spoilt        it has to be made again
    has_row_forms    whether single nodes are computed as plain numbers
    row_codes, row_scores   what a plugin keeps itself, by row, with its index or weight, and the
                            scores without it (`extended_record`)
    """

    # The answer of `rejections`, and whether it has been found since the verdicts last changed.
    _rejections: Rejections | None = None
    _has_found_rejections = False
    verdict_changes = 0
    row_codes: tuple[int, "memoryview[int]"] | None = None
    row_scores: tuple[int, "memoryview[int]", "memoryview[int]"] | None = None

    def __init__(self, frame: FrameRecord, pod: PodInfo, state: CycleState) -> None:
        self.plan = frame.plan
        self.frame = None if frame.shares_record else frame
        self.state = state
        self.skipped = Skipped(state.skip_filter, state.skip_score)
        self.is_spoilt = False
        self.snapshot = frame.snapshot
        self.pod = pod
        self.filters = [step for step in frame.record_filters if step.name not in state.skip_filter]
        self.scores = [step for step in frame.record_scores if step.name not in state.skip_score]
        reads = [step.reuse.filter for step in self.filters]
        reads += [step.reuse.score for step in self.scores]
        super().__init__(frame.snapshot.log, depends_of(reads))
        self._score_type = score_type(self.scores)
        row_filters = [(step.filter_index, step.row_form) for step in self.filters]
        row_scores = [(step.weight, step.row_form) for step in self.scores]
        self._row_filters = [(index, form(state)) for index, form in row_filters if form]
        self._row_scores = [(weight, form(state)) for weight, form in row_scores if form]
        self._has_row_filters = len(self._row_filters) == len(row_filters)
        self.has_row_forms = self._has_row_filters and len(self._row_scores) == len(row_scores)
        self._compute_all()

    def is_for(self, frame: FrameRecord) -> bool:
        """Whether pods of this frame may use the record."""
        return (
            self.plan is frame.plan
            and (self.frame is None or self.frame is frame)
            and not self.is_spoilt
        )

    def rejections(self) -> Rejections | None:
        """The verdicts, where no node fits; None if there are too many reasons."""
        if not self._has_found_rejections:
            self._rejections = Rejections.of(self.failed_by, self.codes)
            self._has_found_rejections = True
        return self._rejections

    def verdict_of(self, row: int) -> tuple[int, int] | None:
        """The index of the first filter to reject this node now, or PASSED, and its code.

        None if not all filters have a form for one node. The rest of the record may be out of date.
        """
        return self._verdict_at(row) if self._has_row_filters else None

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self._compute_all()

    def pods_changed(self, rows: "array[int]") -> None:
        if len(rows) > _ROWS_ONE_BY_ONE or not self.has_row_forms:
            self._compute_many(rows)
            return
        if self.rejected_count == len(self.failed_by):
            self._recheck_rejected(rows, is_few=True)
            return
        # A few nodes changed, as after every placed pod: plain numbers are fastest.
        infos, scores = self.snapshot.node_infos, self._row_scores
        for row in rows:
            failed_by, code = self._verdict_at(row)
            if code or self.rejected_count:
                self._enter_verdict(row, failed_by, code)
            info, score = infos[row], 0
            for weight, score_of_row in scores:
                one = score_of_row(info)
                if not MIN_NODE_SCORE <= one <= MAX_NODE_SCORE:
                    raise FallBackToPlain
                score += one * weight
            if self.row_scores is not None:
                weight, given, without = self.row_scores
                without[row] = score
                one = given[row]
                if not MIN_NODE_SCORE <= one <= MAX_NODE_SCORE:
                    raise FallBackToPlain
                score += one * weight
            self.score[row] = score

    def _compute_many(self, rows: "array[int]") -> None:
        if are_most(rows, len(self.failed_by)):
            self._compute_all()
        elif self.rejected_count == len(self.failed_by):
            self._recheck_rejected(rows, is_few=False)
        else:
            self._compute_rows(np.array(rows, np.intp))

    def _compute_all(self) -> None:
        nodes = nodes_of(self.snapshot)
        failed_by, codes = self._verdicts(nodes) or all_passing(len(nodes))
        self.failed_by = failed_by.astype(index_type(self.plan.profile))
        self.codes = narrowed(codes)
        self.score = self._score(nodes).astype(self._score_type)
        self._count()

    def _compute_rows(self, rows: IntpArray) -> None:
        nodes = nodes_of(self.snapshot, rows)
        self._enter_verdicts(rows, self._verdicts(nodes))
        self.score[rows] = self._score(nodes)

    def _enter_verdicts(self, rows: IntpArray, verdicts: Verdicts | None) -> None:
        if verdicts is not None:
            self.failed_by[rows] = verdicts.failed_by
            self.codes = put(self.codes, rows, verdicts.codes)
        elif self.rejected_count:
            self.failed_by[rows], self.codes[rows] = PASSED, 0
        else:
            return
        self._count()

    def _count(self) -> None:
        self._has_found_rejections = False
        self.verdict_changes += 1
        self.rejected_count = int(np.count_nonzero(self.failed_by != PASSED))

    def _recheck_rejected(self, rows: "array[int]", *, is_few: bool) -> None:
        """No node fitted before. Usually none does now, and then no scores are needed."""
        if is_few:
            for row in set(rows):
                self._enter_verdict(row, *self._verdict_at(row))
        else:
            changed = np.array(rows, np.intp)
            self._enter_verdicts(changed, self._verdicts(nodes_of(self.snapshot, changed)))
        if self.rejected_count < len(self.failed_by):
            self._compute_all()

    def _verdict_at(self, row: int) -> tuple[int, int]:
        """The index of the first filter to reject this node now, or PASSED, and its code."""
        info, failed_by, code = self.snapshot.node_infos[row], PASSED, 0
        for index, code_of in self._row_filters:
            code = code_of(info)
            if code:
                failed_by = index
                break
        if self.row_codes is not None:
            # The first of this verdict and that of what a plugin keeps itself.
            index, codes = self.row_codes
            if codes[row] and (not code or index < failed_by):
                return index, codes[row]
        return failed_by, code

    def _enter_verdict(self, row: int, failed_by: int, code: int) -> None:
        before = self.failed_by.item(row)
        if before == failed_by and self.codes.item(row) == code:
            return
        self._has_found_rejections = False
        self.verdict_changes += 1
        self.rejected_count += bool(code) - (before != PASSED)
        self.failed_by[row] = failed_by
        try:
            self.codes[row] = code
        except OverflowError:
            self.codes = put(self.codes, np.array([row]), np.array([code]))

    def _verdicts(self, nodes: Nodes) -> Verdicts | None:
        verdicts = find_verdicts(self.filters, nodes, self.state, self.pod)
        self.is_spoilt = has_many_statuses(self.state, len(self.snapshot))
        return verdicts

    def _score(self, nodes: Nodes) -> IntArray:
        score = np.zeros(len(nodes), np.int64)
        add_scores(score, self.scores, nodes, self.state, self.pod)
        return score
