"""Verdicts and scores of every node for pods of one shape, brought up to date when read.

A record adds to that of the frame (`frame_record`) what reused plugins read from the pods of a node
as well. It is computed for all nodes once, and then again only for the nodes that changed.

Not here: when a record is made and used (`records`), which plugins take part (`plan`).
"""

from array import array
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray, IntpArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.engine.equivalence.asked import AskedSteps, asked_steps
from kubestow.engine.equivalence.frame_record import FrameRecord, add_scores
from kubestow.engine.equivalence.verdicts import FallBackToPlain
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import nodes_of
from kubestow.index.tracked import are_most

# Up to this many changed rows, one by one is faster than all together.
_ROWS_FEW: Final = 8


class Record(Follower):
    """Verdicts and scores of the plugins whose answers are reused.

    failed_by        int64[row]   index of the first of these filters to reject the node, or PASSED
    codes            int64[row]   that filter's code
    score            int64[row]   weighted scores without those that are normalised; not up to date
                                  while no node fits
    rejected_count   how many nodes are rejected
    """

    def __init__(self, frame: FrameRecord, pod: PodInfo, state: CycleState) -> None:
        super().__init__(frame.snapshot.log, Depends.PODS)
        self.frame = frame
        self.state = state
        self._pod = pod
        self._asked: dict[frozenset[str], AskedSteps] = {}
        profile = frame.profile
        self._filters = [
            step
            for step in profile.filter_steps
            if step.name in frame.reused
            and not frame.keeps_filter(step)
            and step.name not in state.skip_filter
        ]
        self._scores = [
            step
            for step in profile.score_steps
            if self._keeps_score(step)
            and not frame.keeps_score(step)
            and step.name not in state.skip_score
        ]
        row_filters = [(step.filter_index, step.row_form) for step in self._filters]
        row_scores = [(step.weight, step.row_form) for step in self._scores]
        self._row_filters = [(index, form(state)) for index, form in row_filters if form]
        self._row_scores = [(weight, form(state)) for weight, form in row_scores if form]
        self._has_row_forms = len(self._row_filters) == len(row_filters) and len(
            self._row_scores
        ) == len(row_scores)
        self._compute_all()

    def _keeps_score(self, step: ScoreStep) -> bool:
        # A normalised score that reads pods is asked for: any placed pod may change all of it.
        return step.name in self.frame.reused and (
            step.normalizer is None or self.frame.keeps_score(step)
        )

    def _keeps_filter(self, step: FilterStep) -> bool:
        return step.name in self.frame.reused

    def asked(self, skipped: frozenset[str]) -> AskedSteps:
        """The steps of an attempt that has this record."""
        found = self._asked.get(skipped)
        if found is None:
            found = self._asked[skipped] = asked_steps(
                self.frame.profile,
                is_prepared=self.frame.reused.__contains__,
                is_filter_kept=self._keeps_filter,
                is_score_kept=self._keeps_score,
                skipped=skipped,
            )
        return found

    # --- following the snapshot ---

    def catch_up(self) -> None:
        self.frame.catch_up()
        super().catch_up()

    def rows_moved(self, sources: Sources | None) -> None:
        self._compute_all()

    def nodes_changed(self, rows: "array[int]") -> None:
        if self._constant != self.frame.constant:
            self._compute_all()

    def pods_changed(self, rows: "array[int]") -> None:
        count = len(self.failed_by)
        if are_most(rows, count):
            self._compute_all()
            return
        is_few = len(rows) <= _ROWS_FEW and self._has_row_forms
        if self.rejected_count == count:
            self._recheck_rejected(rows, is_few=is_few)
        elif is_few:
            for row in rows:
                self._compute_row(row)
        else:
            self._compute_rows(np.array(rows, np.intp))

    def _compute_all(self) -> None:
        self._constant = self.frame.constant
        self.failed_by, self.codes = self._verdicts(ALL_ROWS)
        self.score = self._score(ALL_ROWS)
        self._count()

    def _compute_rows(self, rows: IntpArray) -> None:
        self.failed_by[rows], self.codes[rows] = self._verdicts(rows)
        self.score[rows] = self._score(rows)
        self._count()

    def _count(self) -> None:
        self.rejected_count = int(np.count_nonzero(self.failed_by != PASSED))

    def _recheck_rejected(self, rows: "array[int]", *, is_few: bool) -> None:
        """No node fitted before. Usually none does now, and then no scores are needed."""
        if is_few:
            for row in rows:
                self._enter_verdict(row)
        else:
            changed = np.array(rows, np.intp)
            self.failed_by[changed], self.codes[changed] = self._verdicts(changed)
            self._count()
        if self.rejected_count < len(self.failed_by):
            self._compute_all()

    def _compute_row(self, row: int) -> None:
        """One node changed, as after every placed pod: plain numbers are fastest."""
        self._enter_verdict(row)
        info = self.frame.snapshot.node_infos[row]
        score = int(self.frame.score[row]) + self._constant
        for weight, score_of_row in self._row_scores:
            one = score_of_row(info)
            if not MIN_NODE_SCORE <= one <= MAX_NODE_SCORE:
                raise FallBackToPlain
            score += one * weight
        self.score[row] = score

    def _enter_verdict(self, row: int) -> None:
        frame = self.frame
        info = frame.snapshot.node_infos[row]
        failed_by, code = int(frame.failed_by[row]), int(frame.codes[row])
        for index, code_of in self._row_filters:
            if failed_by == PASSED or failed_by > index:
                found = code_of(info)
                if found:
                    failed_by, code = index, found
        self.rejected_count += (failed_by != PASSED) - bool(self.failed_by[row] != PASSED)
        self.failed_by[row], self.codes[row] = failed_by, code

    def _verdicts(self, rows: Rows) -> tuple[IntArray, IntArray]:
        frame = self.frame
        failed_by = frame.failed_by[rows].astype(np.int64)
        codes = frame.codes[rows].astype(np.int64)
        nodes = nodes_of(frame.snapshot, rows)
        frame.add_verdicts(failed_by, codes, self._filters, nodes, self.state, self._pod)
        return failed_by, codes

    def _score(self, rows: Rows) -> IntArray:
        frame = self.frame
        score = frame.score[rows].astype(np.int64)
        add_scores(score, self._scores, nodes_of(frame.snapshot, rows), self.state, self._pod)
        score += self._constant
        return score
