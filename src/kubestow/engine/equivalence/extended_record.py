"""A record together with what plugins keep themselves for all rows (`framework.reuse.RowAnswers`).

Making one costs a small part of what the record did: its arrays are copied. From then on it follows
the snapshot by itself, so that a changed node is computed once; the record stays behind until it
is needed again.
"""

from array import array

import numpy as np

from kubestow.arrays import narrowed
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.record import Record
from kubestow.engine.equivalence.verdicts import checked, override
from kubestow.framework.answers import array_answer
from kubestow.framework.reuse import RowAnswers


class ExtendedRecord(Record):
    """With the answers of the plugin `name`, which are up to date whenever this is read."""

    def __init__(self, frame: FrameRecord, record: Record, name: str, answers: RowAnswers) -> None:
        self._record = record
        self._name = name
        count, profile = len(frame.snapshot), frame.profile
        filters = [step for step in profile.filter_steps if step.name == name]
        scores = [step for step in profile.score_steps if step.name == name]
        if filters and answers.codes is not None:
            self._codes = array_answer(answers.codes, name, "codes", count)
            self.row_codes = filters[0].filter_index, self._codes.data
        if scores and answers.scores is not None and answers.score_of is not None:
            self._scores = answers.scores
            self.row_scores = [(scores[0].weight, answers.score_of)]
        super().__init__(frame, record.pod, record.state)

    def _compute_many(self, rows: "array[int]") -> None:
        self._compute_all()

    def _compute_all(self) -> None:
        record = self._record
        try:
            record.catch_up()
        except BaseException:
            record.is_spoilt = True
            raise
        self.failed_by = record.failed_by.copy()
        self.codes = record.codes.copy()
        if self.row_codes is not None:
            codes = record.codes.astype(np.int64)
            override(self.failed_by, codes, self._codes, self.row_codes[0])
            self.codes = narrowed(codes)
        # As wide as totals: there are few of these, and nothing has to be converted.
        self.score = record.score.astype(np.int64)
        for weight, _ in self.row_scores:
            scores = array_answer(self._scores(), self._name, "scores", len(self.score))
            self.score += checked(scores) * weight
        self._count()
