"""What reused plugins read from Node objects alone, for pods that they do not distinguish.

Such pods have equal bases (`plan`), mostly without amounts: the answers hold for pods that request
anything. They are computed for all nodes once, then again only for Node objects that changed.

    failed_by, codes   the first of these filters to reject a node, and its code
    score              the sum of the weighted scores, without those that are normalised
    varying            raw scores, normalised over the feasible nodes of each attempt

The arrays are as narrow as their numbers allow, since there is one of each per frame.
"""

from array import array
from collections.abc import Hashable
from weakref import ReferenceType, ref

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray, IntpArray, NarrowArray, Rows, narrowed, put
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.asked import AskedSteps, Skipped, asked_steps
from kubestow.engine.equivalence.passing_nodes import PassingBook
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.verdicts import (
    add_scores,
    all_passing,
    checked,
    find_verdicts,
    has_many_statuses,
    index_type,
    score_type,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import Restriction
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.reuse import Reads
from kubestow.framework.runner import (
    UNRESTRICTED,
    PreFilterOutcome,
    Verdicts,
    normalize_of,
    score_of,
)
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import nodes_of
from kubestow.index.tracked import are_most


class FrameRecord(Follower):
    """The answers, and the plugins' state of which they are part.

    state            what PreFilter and PreScore of the prepared plugins wrote
    outcome          what PreFilter comes to: which of them left which nodes
    rejected_count   how many nodes are rejected
    has_scores       whether `score` differs from 0 anywhere
    constant         what normalised scores that are the same for all nodes add to each
    has_failed       whether a plugin failed while it was brought up to date
    seen_share       the share of nodes that fitted in the last search
    has_row_forms    whether all plugins of a record of these pods have one
    used_at          the number of the last attempt that had it
    """

    used_at = 0

    def __init__(
        self,
        plan: ReusePlan,
        reused: frozenset[str],
        pod: PodInfo,
        snapshot: Snapshot,
        state: CycleState,
        restriction: tuple[str, Restriction] | None,
    ) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self.plan = plan
        self.profile = plan.profile
        self.reused = reused
        self.prepared = reused - plan.by_amounts
        self.snapshot = snapshot
        self.state = state
        self.outcome = UNRESTRICTED
        if restriction is not None:
            plugin_name, left = restriction
            self.outcome = PreFilterOutcome(left.node_names, None, (plugin_name,))
        self.has_failed = False
        self.seen_share = 1.0
        self._passing: ReferenceType[PassingBook] | None = None
        self._pod = pod
        self._node_count = len(snapshot)
        self._has_many_statuses = False
        self._asked: dict[Hashable, AskedSteps] = {}
        self._filters = [
            step
            for step in self.profile.filter_steps
            if self._keeps_filter(step) and step.name not in state.skip_filter
        ]
        kept_scores = [
            step
            for step in self.profile.score_steps
            if self._keeps_score(step) and step.name not in state.skip_score
        ]
        self._scores = [step for step in kept_scores if step.normalizer is None]
        self._normalized = [
            NormalizedScore(step, snapshot, state, pod)
            for step in kept_scores
            if step.normalizer is not None
        ]
        self._score_type = score_type(self._scores)
        # What is left for a record (`record`), and whether frames may share it.
        self.record_filters = [
            step
            for step in self.profile.filter_steps
            if step.name in reused
            and not self._keeps_filter(step)
            and step.name not in state.skip_filter
        ]
        self.record_scores = [
            step
            for step in self.profile.score_steps
            if self._in_record(step)
            and not self._keeps_score(step)
            and step.name not in state.skip_score
        ]
        steps = *self.record_filters, *self.record_scores
        self.has_row_forms = all([step.row_form for step in steps])
        names = frozenset(step.name for step in steps)
        self.shares_record = names <= plan.by_requests
        self._record_group = self.profile.name, names
        self._compute_all()

    def is_valid(self) -> bool:
        """Whether the answers still hold."""
        # The number of nodes is part of some scores.
        return (
            len(self.snapshot.names) == self._node_count
            and not self._has_many_statuses
            and not self.has_failed
        )

    def passing_book(self) -> PassingBook:
        """The lists of pods of this frame without a record; kept by the shapes that came last."""
        book = None if self._passing is None else self._passing()
        if book is None:
            book = PassingBook()
            self._passing = ref(book)
        return book

    def record_key(self, pod: PodInfo) -> Hashable:
        """Equal for pods that have the same record: not only those of this frame if it reads
        nothing but requests."""
        if self.shares_record:
            return self._record_group, pod.shape.requests
        return self._record_group, pod.full_shape if self.plan.reads_all else pod.shape

    # --- which steps ---

    def _keeps_filter(self, step: FilterStep) -> bool:
        return step.name in self.prepared and step.reuse.filter is Reads.NODE

    def _keeps_score(self, step: ScoreStep) -> bool:
        return step.name in self.prepared and step.reuse.score is Reads.NODE

    def _is_reused(self, step: FilterStep) -> bool:
        return step.name in self.reused

    def _in_record(self, step: ScoreStep) -> bool:
        # A normalised score that reads pods is asked for: any placed pod may change all of it.
        return step.name in self.reused and (step.normalizer is None or self._keeps_score(step))

    def asked(
        self, skipped: Skipped, by_record: Skipped | None, answered: str | None
    ) -> AskedSteps:
        """The steps of an attempt that has this frame.

        `by_record` are the plugins that left themselves out of the record; None if there is none.
        Those of the plugin `answered` are in the record as well.
        """
        key = skipped, by_record, answered
        found = self._asked.get(key)
        if found is None:
            has_record = by_record is not None
            prepared = Skipped(self.state.skip_filter, self.state.skip_score)
            found = self._asked[key] = asked_steps(
                self.profile,
                is_prepared=(
                    self.reused | {answered} if has_record else self.prepared
                ).__contains__,
                is_filter_kept=self._is_reused if has_record else self._keeps_filter,
                is_score_kept=self._in_record if has_record else self._keeps_score,
                answered=answered,
                skipped=skipped,
                prepared=prepared if by_record is None else prepared.joined(by_record),
            )
        return found

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self._compute_all()

    def nodes_changed(self, rows: "array[int]") -> None:
        if are_most(rows, self._node_count):
            self._compute_all()
            return
        changed = np.array(list(dict.fromkeys(rows)), np.intp)
        (failed_by, codes), score = self._compute(changed)
        self.failed_by[changed] = failed_by
        self.codes = put(self.codes, changed, codes)
        self.score[changed] = score
        for each in self._normalized:
            each.compute_rows(changed)
        self._count()

    def _compute_all(self) -> None:
        (failed_by, codes), score = self._compute(ALL_ROWS)
        self.failed_by = failed_by.astype(index_type(self.profile))
        self.codes = narrowed(codes)
        self.score = score.astype(self._score_type)
        for each in self._normalized:
            each.compute_all()
        self._count()

    def _count(self) -> None:
        self.rejected_count = int(np.count_nonzero(self.failed_by != PASSED))
        self.has_scores = bool(self.score.any())
        # Which normalised scores differ between nodes, and what the others add to every node.
        constants = [each.constant() for each in self._normalized]
        found = list(zip(self._normalized, constants, strict=True))
        self.varying = [each for each, constant in found if constant is None]
        self.constant = sum(constant for _, constant in found if constant is not None)

    def _compute(self, rows: Rows) -> tuple[Verdicts, IntArray]:
        nodes = nodes_of(self.snapshot, rows)
        verdicts = find_verdicts(self._filters, nodes, self.state, self._pod)
        self._has_many_statuses = has_many_statuses(self.state, self._node_count)
        score = np.zeros(len(nodes), np.int64)
        add_scores(score, self._scores, nodes, self.state, self._pod)
        return verdicts or all_passing(len(nodes)), score


class NormalizedScore:
    """A raw score of all nodes. Most are zero on all of them: then no array is kept, since
    normalising gives a constant."""

    def __init__(
        self, step: ScoreStep, snapshot: Snapshot, state: CycleState, pod: PodInfo
    ) -> None:
        self.step = step
        # Not the frame's record, which owns this: objects that refer to each other are freed by
        # the garbage collector alone, and that rarely looks at what has lived for long.
        self._snapshot = snapshot
        self._state = state
        self._pod = pod
        self._raw: NarrowArray | None = None

    def raw(self, rows: Rows) -> IntArray:
        """The raw scores of these rows, where they are not all zero; a copy."""
        assert self._raw is not None
        return self._raw[rows].astype(np.int64)

    def compute_all(self) -> None:
        raw = self._compute(ALL_ROWS)
        self._raw = narrowed(raw) if raw.any() else None

    def compute_rows(self, rows: IntpArray) -> None:
        found = self._compute(rows)
        if self._raw is not None:
            self._raw = put(self._raw, rows, found)
        elif found.any():
            self.compute_all()

    def constant(self) -> int | None:
        """The weighted score of every node if it is known to be the same, else None."""
        if self._raw is not None:
            return None
        zero = normalize_of(self.step, self._state, self._pod, np.zeros(1, np.int64))
        return int(checked(zero)[0]) * self.step.weight

    def _compute(self, rows: Rows) -> IntArray:
        nodes = nodes_of(self._snapshot, rows)
        return score_of(self.step, self._state, self._pod, nodes)
