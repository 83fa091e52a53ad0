"""A record together with what plugins keep themselves for all rows (`framework.reuse.RowAnswers`).

Making one costs a small part of what the record did: its arrays are copied. From then on it follows
the snapshot by itself, so that a changed node is computed once; the record stays behind until it
is needed again. Where the plugin has other answers, as after a measurement of nodes, only these are
added again.
"""

from array import array

import numpy as np

from kubestow.arrays import narrowed
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.record import Record
from kubestow.engine.equivalence.verdicts import (
    all_passing,
    checked,
    index_type,
    override,
    score_type,
)
from kubestow.framework.answers import array_answer
from kubestow.framework.profile import FilterStep
from kubestow.framework.reuse import RowAnswers
from kubestow.framework.runner import Verdicts
from kubestow.index.nodes import nodes_of


class ExtendedRecord(Record):
    """With the answers of the plugin `name`, which are up to date whenever this is read."""

    def __init__(self, frame: FrameRecord, record: Record, name: str, answers: RowAnswers) -> None:
        self._record = record
        self.name = name
        steps = *frame.profile.filter_steps, *frame.profile.score_steps
        self._steps = [step for step in steps if step.name == name]
        self._own = record.score
        self._set(answers)
        super().__init__(frame, record.pod, record.state)

    def take(self, answers: RowAnswers) -> None:
        """The plugin has these answers now."""
        # Not while no node fits, and not if rows are about to move.
        has_own = self.row_scores is not None and self.rejected_count < len(self._own)
        self._set(answers)
        try:
            if has_own and self._epoch == self.snapshot.log.epoch:
                nodes = nodes_of(self.snapshot)
                self._join(self._verdicts(nodes) or all_passing(len(nodes)))
            else:
                self._compute_all()
        except BaseException:
            self.is_spoilt = True
            raise

    def _set(self, answers: RowAnswers) -> None:
        self.answers, count = answers, len(self._record.snapshot)
        self.row_codes = self.row_scores = None
        for step in self._steps:
            if isinstance(step, FilterStep):
                if answers.codes is not None:
                    self._codes = array_answer(answers.codes, self.name, "codes", count)
                    self.row_codes = step.filter_index, self._codes.data
            elif answers.scores is not None:
                self._scores = array_answer(answers.scores, self.name, "scores", count)
                self.row_scores = step.weight, self._scores.data, self._own.data

    def _compute_many(self, rows: "array[int]") -> None:
        self._compute_all()

    def _compute_all(self) -> None:
        record = self._record
        try:
            record.catch_up()
        except BaseException:
            record.is_spoilt = True
            raise
        weight = 0 if self.row_scores is None else self.row_scores[0]
        self._own = record.score.astype(score_type(record.scores, weight))
        if self.row_scores is not None:
            self.row_scores = *self.row_scores[:2], self._own.data
        self._join(Verdicts(record.failed_by, record.codes))

    def _join(self, verdicts: Verdicts) -> None:
        """The verdicts and scores without the plugin, with those of the plugin."""
        self.failed_by = verdicts.failed_by.astype(index_type(self.plan.profile))
        codes = verdicts.codes.astype(np.int64)
        if self.row_codes is not None:
            override(self.failed_by, codes, self._codes, self.row_codes[0])
        self.codes = narrowed(codes)
        score = self._own
        if self.row_scores is not None:
            score = score + checked(self._scores) * self.row_scores[0]
        self.score = score.astype(self._own.dtype)
        self._count()
