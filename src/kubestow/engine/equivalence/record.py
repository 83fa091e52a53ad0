"""What is known of how pods of one shape fare on every node, brought up to date when asked for.

For plugins that look at one node at a time (`SharingPlugin`), what a node is worth to a pod
depends on the pod's shape and on that node alone. It is computed for all nodes once, and then again
only for the nodes that changed.

    fixed      what depends on Node objects        first filter to reject, its code, weighted score
    local      what depends on pods as well        the same, with the filters and scores on pods
    varying    raw scores that are normalised over whichever nodes turn out to be feasible

Not here: who asks for a record and when one is made (`shapes`), which plugins share (`sharing`).
"""

from array import array
from collections.abc import Sequence
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.sharing import Sharing, Token, Versions
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    Restriction,
    SharingPlugin,
)
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.runner import filter_of, normalize_of, score_of
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import Tracked, are_most

# Rows of the array of what depends on Node objects.
_FAILED_BY: Final = 0
_CODE: Final = 1
_SCORE: Final = 2

# With so many changed rows it is quicker to take them all together than one by one.
_ROWS_FEW: Final = 8


class AskEverybodyError(Exception):
    """Something out of the ordinary came up, and how it is told depends on the order of all
    plugins: the attempt has to be made anew, asking every plugin."""


class ShapeRecord(Follower):
    """Verdicts and scores of the plugins that share.

    failed_by        int64[row]   index of the first of these filters to reject the node, or PASSED
    codes            int64[row]   that filter's code
    score            int64[row]   weighted scores, less those in `varying`; not up to date while no
                                  node fits
    rejected_count   how many nodes are rejected
    is_used          whether a second pod of the shape has come
    """

    def __init__(
        self,
        sharing: Sharing,
        token: Token,
        pod: PodInfo,
        snapshot: Snapshot,
        state: CycleState,
        restriction: tuple[str, Restriction] | None,
    ) -> None:
        super().__init__(snapshot.log, Depends.PODS)
        profile = sharing.profile
        shared = sharing.shared_names(token)
        self.profile = profile
        self.snapshot = snapshot
        self.state = state
        self.restriction = restriction
        self.is_used = False
        self._sharing = sharing
        self._token = token
        self._versions: Versions = sharing.versions()
        self._node_count = len(snapshot)
        self._pod = pod
        self.alone_pre_filter = [
            (name, plugin) for name, plugin in profile.pre_filter_steps if name not in shared
        ]
        self.alone_filter = [step for step in profile.filter_steps if step.name not in shared]
        self.alone_pre_score = [
            (name, plugin) for name, plugin in profile.pre_score_steps if name not in shared
        ]
        self.alone_score = [step for step in profile.score_steps if step.name not in shared]
        self._steps = _SharedSteps(
            sharing,
            [
                step
                for step in profile.filter_steps
                if step.name in shared and step.name not in state.skip_filter
            ],
            [
                step
                for step in profile.score_steps
                if step.name in shared and step.name not in state.skip_score
            ],
            state,
        )
        self._normalized = [NormalizedScore(step, self._raw(step)) for step in self._steps.varying]
        self.varying: list[NormalizedScore] = []
        self._constant = 0
        self._fixed = Tracked[np.int64](snapshot.log, Depends.NODE, self._compute_fixed)
        self._compute_all()

    def is_valid(self, pod: PodInfo) -> bool:
        """Whether it still holds for pods of its shape, of which this is one."""
        # The number of nodes is part of some scores.
        if len(self.snapshot) != self._node_count:
            return False
        versions = self._sharing.versions()
        if versions != self._versions:
            if self._sharing.token(pod) != self._token:
                return False
            self._versions = versions
        return True

    # --- following the snapshot ---

    def relaid(self, sources: Sources | None) -> None:
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
        """No node fits, and mostly that stays so: then nobody asks for scores."""
        if is_few:
            for row in rows:
                self._enter_verdict(row, *self._fixed.values()[:_SCORE, row].tolist())
            has_hope = self.rejected_count < self._node_count
        else:
            changed = np.array(rows, np.intp)
            verdicts = self._fixed_at(changed)
            self._add_verdicts(verdicts, self._steps.pod_filters, nodes_of(self.snapshot, changed))
            self.failed_by[changed], self.codes[changed] = verdicts[:_SCORE]
            has_hope = bool(np.count_nonzero(verdicts[_FAILED_BY] == PASSED))
        if has_hope:
            self._compute_all()

    def _compute_row(self, row: int) -> None:
        """One node changed, as after every pod that was placed: plain numbers are quickest."""
        failed_by, code, score = self._fixed.values()[:, row].tolist()
        self._enter_verdict(row, failed_by, code)
        info = self.snapshot.node_infos[row]
        for weight, score_of_row in self._steps.row_scores:
            one = score_of_row(info)
            if not MIN_NODE_SCORE <= one <= MAX_NODE_SCORE:
                raise AskEverybodyError
            score += one * weight
        self.score[row] = score + self._constant

    def _enter_verdict(self, row: int, failed_by: int, code: int) -> None:
        """`failed_by` and `code` are the verdict as far as it depends on the Node object."""
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
        """A copy of what depends on Node objects, to be added to."""
        fixed = self._fixed.values()
        return fixed.copy() if isinstance(rows, slice) else fixed.take(rows, axis=1)

    def _add_verdicts(self, result: IntArray, steps: Sequence[FilterStep], nodes: Nodes) -> None:
        for step in steps:
            codes = filter_of(step.plugin, step.name, self.state, self._pod, nodes)
            if codes is not None:
                override(result[_FAILED_BY], result[_CODE], codes, step.filter_index)

    def _add_scores(self, result: IntArray, steps: Sequence[ScoreStep], nodes: Nodes) -> None:
        total = result[_SCORE]
        for step in steps:
            score = checked(score_of(step, self.state, self._pod, nodes))
            total += score if step.weight == 1 else score * step.weight

    def _raw(self, step: ScoreStep) -> Tracked[np.int64]:
        depends = cast(SharingPlugin, step.plugin).score_depends  # only these are kept
        return Tracked[np.int64](
            self.snapshot.log,
            depends,
            lambda rows: score_of(step, self.state, self._pod, nodes_of(self.snapshot, rows)),
        )

    def _sort_normalized(self) -> None:
        """Which normalised scores differ between nodes, and what the others add to every node."""
        constants = [each.constant(self.state, self._pod) for each in self._normalized]
        found = list(zip(self._normalized, constants, strict=True))
        self.varying = [each for each, constant in found if constant is None]
        self._constant = sum(constant for _, constant in found if constant is not None)


class _SharedSteps:
    """The filters and scores that share, by what they depend on."""

    def __init__(
        self,
        sharing: Sharing,
        filters: Sequence[FilterStep],
        scores: Sequence[ScoreStep],
        state: CycleState,
    ) -> None:
        self.node_filters = _filtering_on(Depends.NODE, filters)
        self.pod_filters = _filtering_on(Depends.PODS, filters)
        # A score that is normalised over the feasible nodes is kept raw.
        self.varying = [step for step in scores if step.normalizer is not None]
        plain = [step for step in scores if step.normalizer is None]
        self.node_scores = _scoring_on(Depends.NODE, plain)
        self.pod_scores = _scoring_on(Depends.PODS, plain)
        self.row_filters = [
            (step.filter_index, sharing.row_filters[step.name].row_filter(state))
            for step in self.pod_filters
            if step.name in sharing.row_filters
        ]
        self.row_scores = [
            (step.weight, sharing.row_scores[step.name].row_score(state))
            for step in self.pod_scores
            if step.name in sharing.row_scores
        ]
        self.has_row_forms = len(self.row_filters) == len(self.pod_filters) and len(
            self.row_scores
        ) == len(self.pod_scores)


class NormalizedScore:
    """A raw score that is kept. Most are zero on all nodes, and then normalising gives a
    constant."""

    def __init__(self, step: ScoreStep, raw: Tracked[np.int64]) -> None:
        self.step = step
        self._raw = raw

    def raw(self) -> IntArray:
        return self._raw.values()

    def constant(self, state: CycleState, pod: PodInfo) -> int | None:
        """The weighted score of every node if it is known to be the same, else None."""
        # With scores that depend on pods, any pod that is placed may end it.
        if cast(SharingPlugin, self.step.plugin).score_depends is Depends.PODS or self.raw().any():
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
    """The same scores, if all are in range."""
    # Read without a sign, negative numbers are huge: one look finds both kinds.
    if scores.astype(np.int64, copy=False).view(np.uint64).max(initial=0) > MAX_NODE_SCORE:
        raise AskEverybodyError
    return scores


def _filtering_on(depends: Depends, steps: Sequence[FilterStep]) -> list[FilterStep]:
    return [step for step in steps if getattr(step.plugin, "filter_depends", None) is depends]


def _scoring_on(depends: Depends, steps: Sequence[ScoreStep]) -> list[ScoreStep]:
    return [step for step in steps if getattr(step.plugin, "score_depends", None) is depends]
