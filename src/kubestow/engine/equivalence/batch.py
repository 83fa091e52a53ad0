"""Records of different requests, brought up to date in one step.

Where pods of many different requests come in turn, a record is some dozens of nodes behind whenever
it is used. An operation on a short array costs about as much as one on a longer array, so the nodes
that changed are computed for all these requests together: records times nodes.

    RecordBatches   the records of one set of plugins, and the batch that those in use form
    RecordBatch     records whose arrays are rows of common arrays

A record takes part from the first time it is many nodes behind until its batch ends.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import ref

import numpy as np

from kubestow.arrays import IntArray, IntpArray, narrow_type
from kubestow.cache.change_log import Depends
from kubestow.engine.equivalence.verdicts import FallBackToPlain
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.runner import Verdicts
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, nodes_of

if TYPE_CHECKING:
    from kubestow.engine.equivalence.record import Record

# A record that is more rows behind does not join a batch: it would be computed for all of it.
_ROWS_JOINING_MAX: Final = 512
# A batch ends after this many changes: records that no pod uses any more are then left out.
BATCH_CHANGES_MAX: Final = 4096
# A batch is formed anew when a quarter as many records wait as are in it, but two at least.
_WAITING_MIN: Final = 2
_WAITING_SHARE: Final = 1 / 4

# The answers of one plugin about some nodes for all requests: int64[record, node].
_Answers = Callable[[Nodes], IntArray | None]


class RequestNumbers(NamedTuple):
    """What the filters, and the scores, of a record read of its requests."""

    filters: list[tuple[int, ...]]
    scores: list[tuple[int, ...]]

    @classmethod
    def of(
        cls, filters: Sequence[FilterStep], scores: Sequence[ScoreStep], state: CycleState
    ) -> "RequestNumbers | None":
        """None if one of the plugins cannot be asked about several requests at once."""
        forms = [step.many_form for step in (*filters, *scores)]
        found = [None if form is None else form.numbers(state) for form in forms]
        known = [numbers for numbers in found if numbers is not None]
        if len(known) < len(found):
            return None
        return cls(known[: len(filters)], known[len(filters) :])


class RecordBatches:
    def __init__(self) -> None:
        self._batch: RecordBatch | None = None
        self._waiting: list[ref[Record]] = []

    def join(self, record: "Record") -> None:
        """Let this record, which is up to date, take part in the next batch."""
        self._waiting.append(ref(record))
        members = [] if self._batch is None else self._batch.members
        if len(self._waiting) < max(_WAITING_MIN, _WAITING_SHARE * len(members)):
            return
        self._end()
        found = [each for get in (*members, *self._waiting) if (each := get()) is not None]
        self._waiting.clear()
        near = {id(each): each for each in found if _is_near(each)}
        if len(near) > 1:
            self._batch = RecordBatch(list(near.values()))

    def catch_up(self, record: "Record") -> bool:
        """Bring all records up to date; False if this one is not among them."""
        batch = record.batch
        if batch is None:
            return False
        if record.read_end - batch.begun_at > BATCH_CHANGES_MAX:
            self._end()
            return False
        batch.catch_up()
        return True

    def _end(self) -> None:
        if self._batch is not None:
            self._batch.end()
            self._batch = None


class RecordBatch(Follower):
    """Records whose arrays are rows of common arrays, int[record, row].

    What it has read is read for its records; one of them may have read more.
    """

    def __init__(self, records: "Sequence[Record]") -> None:
        first = records[0]
        super().__init__(first.snapshot.log, Depends.PODS)
        self.members = [ref(record) for record in records]
        self.begun_at = self.read_end
        self._snapshot = first.snapshot
        numbers = [record.numbers for record in records if record.numbers is not None]
        self._filters = [
            (step.filter_index, _asked(step, [each.filters[place] for each in numbers]))
            for place, step in enumerate(first.filters)
        ]
        self._scores = [
            (step.weight, _asked(step, [each.scores[place] for each in numbers]))
            for place, step in enumerate(first.scores)
        ]
        self._failed_by = np.stack([record.failed_by for record in records])
        self._codes = np.stack([record.codes for record in records])
        self._score = np.stack([record.score for record in records])
        for record in records:
            record.batch = self
        self._show()
        oldest = min(records, key=lambda record: record.read_end)
        self.pods_changed(oldest.unread() or array("q"))

    def records(self) -> "list[Record]":
        """The records that still take part."""
        found = [get() for get in self.members]
        return [each for each in found if each is not None and each.batch is self]

    def end(self) -> None:
        """End: every record has arrays of its own again."""
        for record in self.records():
            record.leave_batch()

    def rows_moved(self, sources: Sources | None) -> None:
        self.end()

    def pods_changed(self, rows: "array[int]") -> None:
        changed: IntpArray = np.array(list(dict.fromkeys(rows)), np.intp)
        nodes = nodes_of(self._snapshot, changed)
        verdicts, score = self._verdicts(nodes), self._sum(nodes)
        self._score[:, changed] = score
        self._enter(changed, verdicts)

    def _verdicts(self, nodes: Nodes) -> Verdicts | None:
        """int64[record, node]; None if every node passes for every request."""
        verdicts: Verdicts | None = None
        for index, answers in self._filters:
            found = answers(nodes)
            if found is None:
                continue
            if verdicts is None:
                verdicts = Verdicts(np.where(found, index, PASSED), found)
            else:
                is_first = (verdicts.failed_by == PASSED) & (found != 0)
                verdicts.failed_by[is_first] = index
                verdicts.codes[is_first] = found[is_first]
        return verdicts

    def _sum(self, nodes: Nodes) -> IntArray:
        total: IntArray = np.zeros((len(self.members), len(nodes)), np.int64)
        for weight, answers in self._scores:
            scores = answers(nodes)
            if scores is None or np.maximum.reduce(scores.view(np.uint64), None) > MAX_NODE_SCORE:
                raise FallBackToPlain
            total += scores if weight == 1 else scores * weight
        return total

    def _enter(self, rows: IntpArray, verdicts: Verdicts | None) -> None:
        before = self._failed_by[:, rows]
        was_rejected = before != PASSED
        if verdicts is None:
            if not was_rejected.any():
                return
            verdicts = Verdicts(np.full_like(before, PASSED), np.zeros_like(before))
        failed_by, codes = verdicts
        is_other = (before != failed_by) | (self._codes[:, rows] != codes)
        changed = np.flatnonzero(is_other.any(axis=1)).tolist()
        if not changed:
            return
        self._widen_codes(codes)
        self._failed_by[:, rows] = failed_by
        self._codes[:, rows] = codes
        more = np.count_nonzero(failed_by != PASSED, axis=1) - np.count_nonzero(
            was_rejected, axis=1
        )
        for place in changed:
            record = self.members[place]()
            if record is not None and record.batch is self:
                record.verdicts_changed(int(more[place]))

    def _widen_codes(self, codes: IntArray) -> None:
        width = np.dtype(narrow_type(int(codes.max())))
        if width.itemsize > self._codes.itemsize:
            self._codes = self._codes.astype(width)
            self._show()

    def _show(self) -> None:
        """Let the records read their rows of the arrays."""
        for place, get in enumerate(self.members):
            record = get()
            if record is not None and record.batch is self:
                record.failed_by = self._failed_by[place]
                record.codes = self._codes[place]
                record.score = self._score[place]


def _is_near(record: "Record") -> bool:
    """Whether there is not much to compute until it is up to date."""
    rows = record.unread()
    return rows is not None and len(rows) <= _ROWS_JOINING_MAX


def _asked(step: FilterStep | ScoreStep, numbers: Sequence[tuple[int, ...]]) -> _Answers:
    """What asks a plugin about some nodes for requests of these numbers."""
    form = step.many_form
    assert form is not None
    requests: IntArray = np.array(numbers, np.int64).T[:, :, np.newaxis]
    return lambda nodes: form.answers(requests, nodes)
