"""Decides on which node a pod runs: the scheduling cycle as a plain function (spec 04 §3.1 to §9).

    PreFilter → nominated node or hint → filter nodes in turn until enough fit → score → choose
                                           └─ none fits → PostFilter (preemption)

Nothing here calls the API server or changes the cache. Only extenders are waited for: they block
the cycle until they have answered, as upstream. The result is a `Decision`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import wrap_int64
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decision import CLEAR_NOMINATION, Decision, Nomination
from kubestow.engine.equivalence.records import Records
from kubestow.engine.equivalence.verdicts import FallBackToPlain
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.feasible import FeasibleNodes
from kubestow.engine.observer import Observer, callers
from kubestow.engine.select_host import HostSelector, PreorderSelector
from kubestow.errors import BudgetSpentError, PluginError, SetAsideError
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.handle import Nominator
from kubestow.framework.metrics import (
    NO_METER,
    POST_FILTER,
    SCORE,
    CycleMeter,
)
from kubestow.framework.profile import Profile
from kubestow.framework.runner import (
    PluginScores,
    ScoreError,
    Scores,
    run_post_filter,
    run_scores,
)
from kubestow.framework.status import Code, Status
from kubestow.index.bare_nodes import BareNodes

if TYPE_CHECKING:
    from kubestow.engine.batching import BatchAttempt

log = logging.getLogger(__name__)

NO_NODES_TEXT: Final = "no nodes available to schedule pods"


class Decider:
    """Decides for one pod after the other.

    It keeps where the last search ended (`next_start_index`, one for all profiles: spec 04 §6.3)
    and, unless `reuses_answers` is off, the records of pods of the same shape.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        nominator: Nominator,
        *,
        percentage_of_nodes_to_score: int = 0,
        reuses_answers: bool = True,
        extenders: ExtenderChain | None = None,
        selector: HostSelector | None = None,
        timer: AttemptTimer | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._snapshot = snapshot
        self._feasible = FeasibleNodes(snapshot, nominator, extenders, percentage_of_nodes_to_score)
        self._selector = selector or PreorderSelector()
        # Extenders may replace nodes between Filter and Score, and cost more than reuse saves.
        reuses_answers = reuses_answers and extenders is None
        self._records = Records(snapshot, timer) if reuses_answers else None
        self._timer = timer
        self._extenders = extenders
        self._on_searched = callers(observers, Observer.searched)
        # Set while pods are tried together as a group.
        self.group_cycle: GroupCycle | None = None
        # Whether every plugin is asked for a pod; an edition has pods whose answers are their own.
        self.is_asked_for: Callable[[PodInfo], bool] | None = None

    @property
    def next_start_index(self) -> int:
        return self._feasible.next_start_index

    @next_start_index.setter
    def next_start_index(self, index: int) -> None:
        self._feasible.next_start_index = index

    def start_group(self) -> None:
        """Decisions on the members of a group follow; call `rest` between them."""
        if self._timer is not None:
            self._timer.start_group()

    def rest(self) -> None:
        """Let the event loop go on if the members of a group have taken long."""
        if self._timer is not None:
            self._timer.rest()

    def decide(
        self,
        profile: Profile,
        pod: PodInfo,
        meter: CycleMeter = NO_METER,
        earlier_s: float = 0.0,
        *,
        may_be_set_aside: bool = True,
        batch: "BatchAttempt | None" = None,
    ) -> Decision:
        """Choose a node for the pod; the caller has refreshed the snapshot.

        Raises SetAsideError if the attempt takes long and can go on later; `earlier_s` is then what
        it had taken. `batch` has what the pod before left, and takes what this one leaves; without
        it the pod is decided on alone.
        """
        if self._timer is not None:
            self._timer.start(
                pod,
                earlier_s,
                may_be_set_aside=may_be_set_aside,
                is_member=self.group_cycle is not None,
            )
        start_index = self._feasible.next_start_index
        try:
            is_asked_for = self.is_asked_for
            if (
                self._records is not None
                and self._snapshot.names
                and (is_asked_for is None or not is_asked_for(pod))
            ):
                try:
                    evaluation = self._records.evaluation(profile, pod)
                    decision = self._decide(profile, pod, evaluation, meter, batch)
                    self._records.looked_at(decision.evaluated_count, decision.feasible_count > 0)
                    if batch is not None:
                        batch.conclude(decision)
                    return decision
                except FallBackToPlain:
                    self._feasible.next_start_index = start_index
            plain = PlainEvaluation(profile, pod, self._snapshot)
            decision = self._decide(profile, pod, plain, meter, batch)
            if batch is not None:
                batch.conclude(decision)
            return decision
        except SetAsideError:
            self._feasible.next_start_index = start_index
            raise
        except BudgetSpentError as error:
            decision = Decision(pod, profile.name, self._snapshot.names)
            return decision.fail(Status.from_error(error), CLEAR_NOMINATION)

    def _decide(
        self,
        profile: Profile,
        pod: PodInfo,
        evaluation: Evaluation,
        meter: CycleMeter,
        batch: "BatchAttempt | None",
    ) -> Decision:
        snapshot = self._snapshot
        evaluation.state.measure(meter, self._timer)
        # Earlier time belongs to no extension point.
        meter.resume()
        decision = Decision(pod, profile.name, snapshot.names, evaluation.state, profile.filter)
        decision.start_index = self._feasible.next_start_index
        if batch is not None:
            decision.batch = batch
        if self.group_cycle is not None:
            _join(decision, self.group_cycle)
        if not snapshot.names:
            status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=PluginError(NO_NODES_TEXT))
            return decision.fail(status, CLEAR_NOMINATION)
        error = self._feasible.find(profile, decision, evaluation)
        if error is not None:
            return decision.fail(error, CLEAR_NOMINATION)
        for call in self._on_searched:
            call(decision)
        match decision.feasible_count:
            case 0:
                decision.is_by_shape = evaluation.depends_on_shape()
                return self._after_filters_failed(profile, decision)
            case 1:
                decision.node_name = snapshot.names[decision.feasible_row(0)]
            case _:
                error = self._choose(profile, decision, evaluation)
                if error is not None:
                    return decision.fail(error, CLEAR_NOMINATION)
        return decision

    def _choose(
        self, profile: Profile, decision: Decision, evaluation: Evaluation
    ) -> Status | None:
        try:
            if decision.are_nodes_bare:
                nodes = BareNodes(self._snapshot, decision.feasible)
                scores = run_scores(profile, decision.state, decision.pod, nodes)
            else:
                scores = evaluation.scores(decision.feasible_rows)
        except ScoreError as error:
            decision.state.meter.point_ended(SCORE, error.status)
            return error.status
        decision.scores = scores
        decision.state.meter.point_ended(SCORE)
        position = (
            self._selector.select(scores.varying)
            if self._extenders is None
            else self._select_with(self._extenders, decision, scores)
        )
        decision.node_name = self._snapshot.names[decision.feasible_row(position)]
        return None

    def _select_with(self, extenders: ExtenderChain, decision: Decision, scores: Scores) -> int:
        """Add the extenders' scores. Ties between nodes that an extender named are broken at random
        (spec 04 §8.4, §13.4)."""
        priorities = extenders.prioritize(decision.pod.pod, decision.feasible, self._snapshot)
        decision.state.timer.resume()
        if priorities is None:
            return self._selector.select(scores.varying)
        total = scores.total.copy()
        parts = list(scores.by_plugin)
        for name, weight, given in priorities.parts:
            total += given * np.int64(wrap_int64(weight))
            parts.append(PluginScores(name, weight, given, given))
        decision.scores = Scores.known(total, tuple(parts))
        return self._selector.select(np.where(total == total.max(), priorities.randomizers, -1))

    def _after_filters_failed(self, profile: Profile, decision: Decision) -> Decision:
        """No node fits: ask PostFilter and add its answer to the message (spec 04 §9)."""
        diagnosis = decision.diagnosis
        decision.fit_error_text = diagnosis.message()
        cycle = decision.state.group_cycle
        if cycle is not None and not cycle.has_post_filter:
            return decision.fail_to_fit()
        if not profile.post_filter:
            decision.nomination = CLEAR_NOMINATION
            return decision.fail_to_fit()
        result, status = run_post_filter(profile, decision.state, decision.pod, diagnosis)
        decision.state.meter.point_ended(POST_FILTER, status)
        decision.post_filter, decision.post_filter_status = result, status
        diagnosis.post_filter_message = status.message
        if result is not None:
            decision.nomination = Nomination(result.nominated_node_name)
        return decision.fail_to_fit()


def _join(decision: Decision, cycle: GroupCycle) -> None:
    """Make the attempt part of the cycle of a group."""
    state = decision.state
    state.group_cycle = cycle
    state.skip_post_filter = not cycle.runs_post_filter or cycle.is_surplus
    if cycle.placement is not None:
        decision.diagnosis.node_count = len(cycle.placement.rows)
