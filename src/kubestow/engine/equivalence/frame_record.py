"""What reused plugins read from Node objects alone, for pods of one frame.

A frame (`api.pod_shape`) is a pod's spec less its amounts, so the answers hold for pods of every
size. They are computed for all nodes once, then again only for Node objects that changed.

    failed_by, codes   the first of these filters to reject a node, and its code
    score              the sum of the weighted scores, without those that are normalised
    varying            raw scores, normalised over the feasible nodes of each attempt

The arrays are as narrow as their numbers allow, since there is one of each per frame.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray, IntpArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.numbering import numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.asked import AskedSteps, asked_steps
from kubestow.engine.equivalence.plan import ReusePlan, Versions
from kubestow.engine.equivalence.verdicts import FallBackToPlain, checked, override
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import MAX_NODE_SCORE, Restriction, StatusCodes
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.reuse import Reads
from kubestow.framework.runner import filter_of, normalize_of, score_of
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import are_most

_LARGEST_CODE: Final = np.iinfo(np.int32).max
_LARGEST_NARROW_SUM: Final = np.iinfo(np.int32).max


class FrameRecord(Follower):
    """The answers, and the plugins' state of which they are part.

    state            what PreFilter and PreScore of the prepared plugins wrote
    restriction      which of them left which nodes
    rejected_count   how many nodes are rejected
    constant         what normalised scores that are the same for all nodes add to each
    has_failed       whether a plugin failed while it was brought up to date
    seen_share       the share of nodes that fitted when the other filters were last asked
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
        super().__init__(snapshot.log, Depends.NODE)
        self.plan = plan
        self.profile = plan.profile
        self.reused = reused
        self.prepared = reused - plan.by_amounts
        self.snapshot = snapshot
        self.state = state
        self.restriction = restriction
        self.has_failed = False
        self.seen_share = 1.0
        self._pod = pod
        self._node_count = len(snapshot)
        self._versions: Versions = plan.versions()
        self._has_many_statuses = False
        self._asked: dict[frozenset[str], AskedSteps] = {}
        kept_scores = [step for step in self.profile.score_steps if self.keeps_score(step)]
        self._filters = [
            step
            for step in self.profile.filter_steps
            if self.keeps_filter(step) and step.name not in state.skip_filter
        ]
        kept_scores = [step for step in kept_scores if step.name not in state.skip_score]
        self._scores = [step for step in kept_scores if step.normalizer is None]
        self._normalized = [
            NormalizedScore(step, snapshot, state, pod)
            for step in kept_scores
            if step.normalizer is not None
        ]
        largest = sum(step.weight for step in self._scores) * MAX_NODE_SCORE
        self._score_type = np.int32 if largest <= _LARGEST_NARROW_SUM else np.int64
        self._compute_all()

    def is_valid(self, pod: PodInfo) -> bool:
        """Whether the answers still hold; `pod` is any pod of the frame."""
        # The number of nodes is part of some scores.
        if len(self.snapshot) != self._node_count or self._has_many_statuses or self.has_failed:
            return False
        versions = self.plan.versions()
        if versions != self._versions:
            if self.plan.reused(pod) != self.reused:
                return False
            self._versions = versions
        return True

    # --- which steps ---

    def keeps_filter(self, step: FilterStep) -> bool:
        return step.name in self.prepared and step.reuse.filter is Reads.NODE

    def keeps_score(self, step: ScoreStep) -> bool:
        return step.name in self.prepared and step.reuse.score is Reads.NODE

    def asked(self, skipped: frozenset[str]) -> AskedSteps:
        """The steps of an attempt that has nothing but this frame."""
        found = self._asked.get(skipped)
        if found is None:
            found = self._asked[skipped] = asked_steps(
                self.profile,
                is_prepared=self.prepared.__contains__,
                is_filter_kept=self.keeps_filter,
                is_score_kept=self.keeps_score,
                skipped=skipped,
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
        self.failed_by[changed], self.codes[changed], self.score[changed] = self._compute(changed)
        for each in self._normalized:
            each.compute_rows(changed)
        self._count()

    def _compute_all(self) -> None:
        failed_by, codes, score = self._compute(ALL_ROWS)
        self.failed_by = failed_by.astype(np.int16)
        self.codes = codes.astype(np.int32)
        self.score = score.astype(self._score_type)
        for each in self._normalized:
            each.compute_all()
        self._count()

    def _count(self) -> None:
        self.rejected_count = int(np.count_nonzero(self.failed_by != PASSED))
        # Which normalised scores differ between nodes, and what the others add to every node.
        constants = [each.constant() for each in self._normalized]
        found = list(zip(self._normalized, constants, strict=True))
        self.varying = [each for each, constant in found if constant is None]
        self.constant = sum(constant for _, constant in found if constant is not None)

    def _compute(self, rows: Rows) -> tuple[IntArray, IntArray, IntArray]:
        nodes = nodes_of(self.snapshot, rows)
        count = len(nodes)
        failed_by, codes = np.full(count, PASSED, np.int64), np.zeros(count, np.int64)
        score = np.zeros(count, np.int64)
        self.add_verdicts(failed_by, codes, self._filters, nodes, self.state, self._pod)
        add_scores(score, self._scores, nodes, self.state, self._pod)
        if codes.max(initial=0) > _LARGEST_CODE or codes.min(initial=0) < -_LARGEST_CODE:
            raise FallBackToPlain
        return failed_by, codes, score

    def add_verdicts(
        self,
        failed_by: IntArray,
        codes: IntArray,
        steps: Iterable[FilterStep],
        nodes: Nodes,
        state: CycleState,
        pod: PodInfo,
    ) -> None:
        for step in steps:
            found = filter_of(step.plugin, step.name, state, pod, nodes)
            if found is not None:
                override(failed_by, codes, found, step.filter_index)
        # Each distinct reason gets a number in the state, and reasons may hold a load or a date.
        statuses_max = numbered_max(self._node_count)
        for value in state.values():
            if isinstance(value, StatusCodes) and len(value) > statuses_max:
                self._has_many_statuses = True


def add_scores(
    total: IntArray, steps: Sequence[ScoreStep], nodes: Nodes, state: CycleState, pod: PodInfo
) -> None:
    for step in steps:
        score = checked(score_of(step, state, pod, nodes))
        total += score if step.weight == 1 else score * step.weight


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
        self._raw: IntArray | None = None

    def raw(self) -> IntArray:
        assert self._raw is not None
        return self._raw

    def compute_all(self) -> None:
        raw = self._compute(ALL_ROWS)
        # Scores of all rows may be an array of the snapshot.
        self._raw = raw.copy() if raw.any() else None

    def compute_rows(self, rows: IntpArray) -> None:
        found = self._compute(rows)
        if self._raw is not None:
            self._raw[rows] = found
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
