"""The result of one scheduling attempt: what was decided, and why.

It is the only source for messages, events, conditions, explanations, reports and the conformance
runner. It refers to the arrays of the attempt, and texts are made on demand. So it is valid only
within its scheduling cycle: the next one overwrites these arrays. `freeze` gives a copy to keep.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import row_numbers
from kubestow.engine.equivalence.passing_nodes import PassingNodes
from kubestow.engine.evaluation import Evaluation
from kubestow.engine.frozen_decision import (
    FrozenDecision,
    FrozenScores,
    FrozenStatus,
    NodeNames,
    NodesWithStatus,
    PodRef,
    read_only,
)
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.plugin import FilterPlugin, PostFilterResult
from kubestow.framework.runner import UNRESTRICTED, FilterError, ScoreError, Scores
from kubestow.framework.status import Code, Status

if TYPE_CHECKING:
    from kubestow.engine.batching import BatchAttempt


class Nomination(NamedTuple):
    """Sets the pod's nominated node; the empty name clears it."""

    node_name: str


_NO_ROWS: Final = np.empty(0, np.intp)
CLEAR_NOMINATION = Nomination("")


class FitError(Exception):
    """The pod fits on no node. Becomes the pod's condition and event text."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.message())
        self.diagnosis = diagnosis


class GroupMisfitError(PluginError):
    """The pod's group does not fit. By choice the pod then waits for events of that plugin."""

    def __init__(self, text: str, rejector: str) -> None:
        super().__init__(text)
        self.rejector = rejector


class Visited(NamedTuple):
    """The rows that a search looked at, from `first` on and round, where it took those that pass
    from a list. Their verdicts are found when they are read, mostly never."""

    passing: PassingNodes
    evaluation: Evaluation
    first: int
    evaluated: int

    def rejected_counts(self, found: int) -> Mapping[int, int]:
        return self.passing.rejected_counts(self.first, self.evaluated, found)

    def record_in(self, diagnosis: Diagnosis) -> None:
        count, end = diagnosis.node_count, self.first + self.evaluated
        for rows in (slice(self.first, min(end, count)), slice(0, max(end - count, 0))):
            if rows.stop > rows.start:
                diagnosis.record(rows, *self.evaluation.verdicts(rows))


class Decision:
    """One attempt to place one pod.

    status       None when a node was chosen; otherwise why not
    nomination   the change of the pod's nominated node; None leaves it as it is
    """

    start_index = 0
    nodes_to_find = 0
    pre_filter = UNRESTRICTED
    feasible_rows: slice | npt.NDArray[np.intp] = _NO_ROWS
    feasible_count = 0
    evaluated_count = 0
    scores: Scores | None = None
    node_name = ""
    status: Status | None = None
    nomination: Nomination | None = None
    via_nominated_node = False
    via_hint = False
    # What is carried over from pod to pod; None for a pod that is decided on alone.
    batch: "BatchAttempt | None" = None
    # An extender sent the nodes as objects: they are scored as if no pods were on them.
    are_nodes_bare = False
    fit_error_text = ""
    # No node fits, nor would one fit another pod of the same shape.
    is_by_shape = False
    post_filter: PostFilterResult | None = None
    post_filter_status: Status | None = None
    # The nodes a search looked at whose verdicts are not in the diagnosis yet.
    visited: Visited | None = None
    _diagnosis: Diagnosis | None = None

    def __init__(
        self,
        pod: PodInfo,
        profile_name: str,
        node_names: Sequence[str],
        state: CycleState | None = None,
        filters: Sequence[FilterPlugin] = (),
    ) -> None:
        self.pod = pod
        self.profile_name = profile_name
        self.node_names = node_names
        self.state = state if state is not None else CycleState()
        self._filters = filters

    @property
    def diagnosis(self) -> Diagnosis:
        """The verdicts on nodes that do not fit; made when first needed, since most pods fit."""
        if self._diagnosis is None:
            self._diagnosis = Diagnosis(self.node_names, self.state, self._filters)
            if self.visited is not None:
                self.visited.record_in(self._diagnosis)
        return self._diagnosis

    @property
    def has_diagnosis(self) -> bool:
        return self._diagnosis is not None

    def rejected_counts(self) -> Mapping[int, int]:
        """How many nodes each filter rejected, by its index."""
        if self._diagnosis is None and self.visited is not None:
            return self.visited.rejected_counts(self.feasible_count)
        return self.diagnosis.rejected_counts()

    @property
    def feasible(self) -> npt.NDArray[np.intp]:
        """intp[k]: rows of the nodes found to fit, in the order they were found."""
        return row_numbers(self.feasible_rows)

    def set_feasible(self, rows: slice | npt.NDArray[np.intp]) -> None:
        self.feasible_rows = rows
        self.feasible_count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    def feasible_row(self, position: int) -> int:
        """The row of one of the nodes found to fit."""
        rows = self.feasible_rows
        return rows.start + position if isinstance(rows, slice) else rows.item(position)

    @property
    def is_scheduled(self) -> bool:
        return bool(self.node_name)

    @property
    def has_victims(self) -> bool:
        """Whether pods are evicted to make this one fit."""
        return self.post_filter is not None and len(self.post_filter.victims) > 0

    @property
    def message(self) -> str:
        """The text of the pod's condition and event; empty when a node was chosen."""
        return self.status.message if self.status is not None else ""

    def fail(self, status: Status, nomination: Nomination | None) -> "Decision":
        self.status = status
        self.nomination = nomination
        return self

    def fail_to_fit(self) -> "Decision":
        """No node fits; the diagnosis already has the answer of PostFilter."""
        self.status = Status(Code.UNSCHEDULABLE, error=FitError(self.diagnosis))
        return self

    def repeated_for(self, pod: PodInfo) -> "Decision":
        """This result for another pod of the same shape; nothing changed meanwhile."""
        repeated = copy(self)
        repeated.pod = pod
        return repeated

    def freeze(self) -> FrozenDecision:
        """A copy that later cycles do not change. Call it within the cycle.

        Plugins whose part in the scores is not known yet are asked.
        """
        names, diagnosis, outcome = self.node_names, self.diagnosis, self.pre_filter
        feasible, rejected = self.feasible, diagnosis.rows_by_status()
        is_absent = np.ones(len(names), np.bool_)
        for rows in (feasible, *(rows for _, rows in rejected)):
            is_absent[rows] = False
        return FrozenDecision(
            pod=PodRef.of(self.pod),
            profile=self.profile_name,
            node=self.node_name,
            status=self.status and FrozenStatus.of(self.status),
            nominated_node=None if self.nomination is None else self.nomination.node_name,
            via_nominated_node=self.via_nominated_node,
            via_hint=self.via_hint,
            start_index=self.start_index,
            nodes_to_find=self.nodes_to_find,
            evaluated_count=self.evaluated_count,
            pre_filter=outcome.status and FrozenStatus.of(outcome.status),
            restricted_to=None if outcome.node_names is None else tuple(sorted(outcome.node_names)),
            restricted_by=outcome.restricting,
            feasible=NodeNames(names, feasible),
            rejected=tuple(
                NodesWithStatus(FrozenStatus.of(status), NodeNames(names, rows))
                for status, rows in rejected
            ),
            absent=NodesWithStatus(
                FrozenStatus.of(diagnosis.absent), NodeNames(names, np.flatnonzero(is_absent))
            ),
            total=None if self.scores is None else read_only(self.scores.total.copy()),
            scores=() if self.scores is None else _frozen_scores(self.scores),
            post_filter=self.post_filter_status and FrozenStatus.of(self.post_filter_status),
            victims=tuple(map(PodRef.of, self.post_filter.victims if self.post_filter else ())),
            unschedulable_plugins=tuple(sorted(diagnosis.unschedulable_plugins)),
            pending_plugins=tuple(sorted(diagnosis.pending_plugins)),
            failed_node="" if diagnosis.error_row is None else names[diagnosis.error_row],
            timings=tuple(self.state.meter.timings),
        )


def _frozen_scores(scores: Scores) -> tuple[FrozenScores, ...]:
    try:
        return tuple(map(FrozenScores.of, scores.by_plugin))
    except (FilterError, ScoreError):
        # A plugin that answered in the cycle failed when asked again. The totals are still right.
        return ()
