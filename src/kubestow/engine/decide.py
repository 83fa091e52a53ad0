"""Decides on which node a pod runs: the scheduling cycle as a plain function (spec 04 §3.1 to §9).

    PreFilter → the nominated node first → filter nodes in turn until enough fit → score → choose
                                                 └─ none fits → PostFilter (preemption)

Nothing here calls the API server or changes the cache. Only extenders are waited for: they block
the cycle until they have answered, as upstream. The result is a `Decision`.
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import wrap_int64
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decision import CLEAR_NOMINATION, Decision, Nomination
from kubestow.engine.equivalence.records import Records
from kubestow.engine.equivalence.verdicts import FallBackToPlain
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.search import FeasibleSearch
from kubestow.engine.select_host import HostSelector, PreorderSelector
from kubestow.errors import BudgetSpentError, PluginError, SetAsideError
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.diagnosis import Rejections
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.handle import Nominator
from kubestow.framework.hints import EXTENDER
from kubestow.framework.metrics import (
    FILTER,
    NO_METER,
    POST_FILTER,
    PRE_FILTER,
    SCORE,
    CycleMeter,
)
from kubestow.framework.profile import Profile
from kubestow.framework.runner import (
    PluginScores,
    ScoreError,
    Scores,
    nominated_ahead,
    run_filters_with,
    run_post_filter,
    run_scores,
)
from kubestow.framework.status import Code, Status
from kubestow.index.bare_nodes import BareNodes
from kubestow.index.nodes import SimulatedNode
from kubestow.logs import fail

log = logging.getLogger(__name__)

NO_NODES_TEXT: Final = "no nodes available to schedule pods"
NODES_TO_FIND_MIN: Final = 100
PERCENTAGE_MIN: Final = 5


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
    ) -> None:
        self._snapshot = snapshot
        self._nominator = nominator
        self._percentage = percentage_of_nodes_to_score
        self._selector = selector or PreorderSelector()
        # Extenders may replace nodes between Filter and Score, and cost more than reuse saves.
        reuses_answers = reuses_answers and extenders is None
        self._records = Records(snapshot, timer) if reuses_answers else None
        self._timer = timer
        self._extenders = extenders
        self.next_start_index = 0
        # Set while pods are tried together as a group.
        self.group_cycle: GroupCycle | None = None

    def decide(
        self,
        profile: Profile,
        pod: PodInfo,
        meter: CycleMeter = NO_METER,
        earlier_s: float = 0.0,
        *,
        may_be_set_aside: bool = True,
    ) -> Decision:
        """Choose a node for the pod; the caller has refreshed the snapshot.

        Raises SetAsideError if the attempt takes long and can go on later; `earlier_s` is then what
        it had taken.
        """
        if self._timer is not None:
            self._timer.start(pod, earlier_s, may_be_set_aside=may_be_set_aside)
        start_index = self.next_start_index
        try:
            if self._records is not None and self._snapshot.names:
                try:
                    evaluation = self._records.evaluation(profile, pod)
                    decision = self._decide(profile, pod, evaluation, meter)
                    self._records.looked_at(decision.evaluated_count)
                    return decision
                except FallBackToPlain:
                    self.next_start_index = start_index
            plain = PlainEvaluation(profile, pod, self._snapshot)
            return self._decide(profile, pod, plain, meter)
        except SetAsideError:
            self.next_start_index = start_index
            raise
        except BudgetSpentError as error:
            decision = Decision(pod, profile.name, self._snapshot.names)
            return decision.fail(Status.from_error(error), CLEAR_NOMINATION)

    def _decide(
        self, profile: Profile, pod: PodInfo, evaluation: Evaluation, meter: CycleMeter
    ) -> Decision:
        snapshot = self._snapshot
        evaluation.state.measure(meter, self._timer)
        # Earlier time belongs to no extension point.
        meter.resume()
        decision = Decision(pod, profile.name, snapshot.names, evaluation.state, profile.filter)
        decision.start_index = self.next_start_index
        if self.group_cycle is not None:
            _join(decision, self.group_cycle)
        if not snapshot.names:
            status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=PluginError(NO_NODES_TEXT))
            return decision.fail(status, CLEAR_NOMINATION)
        error = self._find_feasible(profile, decision, evaluation)
        if error is not None:
            return decision.fail(error, CLEAR_NOMINATION)
        match decision.feasible_count:
            case 0:
                decision.is_by_shape = evaluation.depends_on_shape()
                return self.after_filters_failed(profile, decision)
            case 1:
                decision.node_name = snapshot.names[decision.feasible_row(0)]
            case _:
                error = self._choose(profile, decision, evaluation)
                if error is not None:
                    return decision.fail(error, CLEAR_NOMINATION)
        return decision

    # --- feasible nodes ---

    def _find_feasible(
        self, profile: Profile, decision: Decision, evaluation: Evaluation
    ) -> Status | None:
        """Fill in the feasible nodes and the verdicts on the others; an error ends the attempt."""
        outcome = decision.pre_filter = evaluation.pre_filter()
        decision.state.meter.point_ended(PRE_FILTER, outcome.status)
        if outcome.restricting:
            decision.diagnosis.unschedulable_plugins.update(outcome.restricting)
        if outcome.status is not None:
            if not outcome.status.is_rejected:
                return outcome.status
            diagnosis = decision.diagnosis
            diagnosis.absent = outcome.status
            diagnosis.pre_filter_message = outcome.status.message
            diagnosis.add_plugin_of(outcome.status)
            return None
        if self._try_nominated_node(profile, decision, evaluation):
            return None
        nominated = self._nominated_rows()
        placement = None if self.group_cycle is None else self._placement()
        if outcome.node_names is None and not nominated and placement is None:
            if evaluation.passes_everywhere():
                self._take_in_turn(profile, decision)
                return None
            rejections = evaluation.rejections()
            if rejections is not None:
                evaluation.note_share(0.0)
                return self._reject_all(profile, decision, rejections)
        candidates = self._candidates(decision)
        decision.nodes_to_find = self._nodes_to_find(profile, len(candidates))
        if len(candidates) == 1 and not nominated and placement is None and self._extenders is None:
            row = int(candidates[0])
            if evaluation.passes_on(row):
                self._take_only(decision, row)
                return None
        search = FeasibleSearch(self._snapshot, profile, decision, evaluation, nominated)
        error = None
        start = self.next_start_index
        if placement is not None and outcome.node_names is None and len(candidates):
            # The search goes on in the list of the placement's nodes, not in that of all nodes.
            start = int(candidates[start % len(candidates)])
        try:
            error = search.run(candidates, start)
        finally:
            undecodable = search.conclude()
            error = error or undecodable
            decision.state.meter.point_ended(FILTER, error)
            self.next_start_index = (self.next_start_index + decision.evaluated_count) % (
                len(self._snapshot.names) if placement is None else len(placement)
            )
        if error is None and self._extenders is not None:
            found_count = decision.feasible_count
            # Before extenders replace reasons.
            error = decision.diagnosis.note_rejecting_plugins()
            if error is None:
                error = self._ask_extenders(self._extenders, decision)
            if decision.feasible_count != found_count:
                decision.diagnosis.unschedulable_plugins.add(EXTENDER)
        return error

    def _take_in_turn(self, profile: Profile, decision: Decision) -> None:
        """All nodes fit: take `nodes_to_find` of them, from where the last search ended."""
        count = len(self._snapshot.names)
        first = self.next_start_index % count
        found = decision.nodes_to_find = self._nodes_to_find(profile, count)
        end = first + found
        decision.set_feasible(
            slice(first, end)
            if end <= count
            else np.concatenate((np.arange(first, count), np.arange(end - count)))
        )
        decision.evaluated_count = found
        self.next_start_index = end % count
        decision.state.meter.point_ended(FILTER)

    def _take_only(self, decision: Decision, row: int) -> None:
        """The only candidate fits, as for most pods of a DaemonSet."""
        decision.set_feasible(slice(row, row + 1))
        decision.evaluated_count = 1
        self.next_start_index = (self.next_start_index + 1) % len(self._snapshot.names)
        decision.state.meter.point_ended(FILTER)

    def _reject_all(
        self, profile: Profile, decision: Decision, rejections: Rejections
    ) -> Status | None:
        """No node fits: all are looked at, and the next search begins where this one did."""
        count = len(self._snapshot.names)
        decision.nodes_to_find = self._nodes_to_find(profile, count)
        decision.evaluated_count = count
        self.next_start_index %= count
        error = decision.diagnosis.reject_all(rejections)
        decision.state.meter.point_ended(FILTER, error)
        return error

    def _ask_extenders(self, extenders: ExtenderChain, decision: Decision) -> Status | None:
        """Reduce the feasible nodes to those that extenders accept (spec 04 §13.3)."""
        pod, diagnosis = decision.pod.pod, decision.diagnosis
        outcome = extenders.filter(pod, decision.feasible, self._snapshot)
        decision.state.timer.resume()
        if outcome.error is not None:
            return Status.from_error(outcome.error)
        decision.set_feasible(outcome.rows)
        decision.are_nodes_bare = outcome.has_objects
        for row, status in outcome.statuses.items():
            diagnosis.set_explicit(row, status)
        decision.evaluated_count = len(outcome.rows) + diagnosis.failed_count
        return None

    def _try_nominated_node(
        self, profile: Profile, decision: Decision, evaluation: Evaluation
    ) -> bool:
        """A pod gets its nominated node if it fits there; no other is filtered (spec 04 §5)."""
        name = decision.pod.pod.status.nominated_node_name
        row = self._snapshot.row_of(name) if name else None
        if row is None:
            return False
        placement = self._placement()
        if placement is not None and row not in placement:
            return False
        state, pod, status = decision.state, decision.pod, None
        ahead = nominated_ahead(pod, self._nominator.nominated_pods_for_node(name))
        if ahead:
            node = SimulatedNode(self._snapshot, row)
            status = run_filters_with(profile, state, pod, node, ahead)
        if status is None:
            status = evaluation.status_on(row)
        # Measured as one Filter run, which only a fault makes unsuccessful (spec 04 §2.9).
        is_fault = status is not None and not status.is_rejected
        decision.state.meter.point_ended(FILTER, status if is_fault else None)
        if status is None:
            decision.set_feasible(slice(row, row + 1))
            decision.evaluated_count = 1
            decision.via_nominated_node = self._is_left_by_extenders(decision)
            return decision.via_nominated_node
        if status.is_rejected:
            decision.diagnosis.set_explicit(row, status)
            decision.diagnosis.unschedulable_plugins.add(status.plugin)
        return False

    def _is_left_by_extenders(self, decision: Decision) -> bool:
        """Whether the nominated node stays. An error only makes the search go on (spec 04 §5)."""
        if self._extenders is None:
            return True
        error = self._ask_extenders(self._extenders, decision)
        if error is not None:
            fail(log, "Evaluation failed on nominated node", error.as_error(), pod=decision.pod.key)
            return False
        return decision.feasible_count > 0

    def _candidates(self, decision: Decision) -> range | npt.NDArray[np.intp]:
        """Rows to filter in visiting order: all, or those PreFilter left; a range if contiguous."""
        names = decision.pre_filter.node_names
        placement = None if self.group_cycle is None else self._placement()
        if names is None:
            return range(len(self._snapshot.names)) if placement is None else placement
        # Spec 04 §6.1, recorded: all plugins that rejected so far are printed, so a filter that
        # rejected the nominated node just before is named as well.
        restricting = " ".join(sorted(decision.diagnosis.unschedulable_plugins))
        decision.diagnosis.absent = _unsatisfied(restricting)
        found = (self._snapshot.row_of(name) for name in names)
        rows = sorted(row for row in found if row is not None)
        if placement is not None:
            rows = [row for row in rows if row in placement]
        if len(rows) == 1:  # As for every pod of a DaemonSet.
            return range(rows[0], rows[0] + 1)
        return np.array(rows, np.intp)

    def _placement(self) -> npt.NDArray[np.intp] | None:
        """The only rows that may be used now; None for all."""
        cycle = self.group_cycle
        return None if cycle is None or cycle.placement is None else cycle.placement.rows

    def _nodes_to_find(self, profile: Profile, count: int) -> int:
        """How many feasible nodes are enough (spec 04 §6.2)."""
        extenders = self._extenders
        if not profile.score and (extenders is None or not extenders.affects_choice):
            return 1
        percentage = profile.percentage_of_nodes_to_score
        return _enough_nodes(count, self._percentage if percentage is None else percentage)

    def _nominated_rows(self) -> dict[int, Sequence[PodInfo]]:
        """Nominated pods by row; these nodes are filtered one by one."""
        rows: dict[int, Sequence[PodInfo]] = {}
        for name in self._nominator.nominated_nodes():
            row = self._snapshot.row_of(name)
            if row is not None:
                rows[row] = self._nominator.nominated_pods_for_node(name)
        return rows

    # --- choosing ---

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
            self._selector.select(scores.total)
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
            return self._selector.select(scores.total)
        total = scores.total.copy()
        parts = list(scores.by_plugin)
        for name, weight, given in priorities.parts:
            total += given * np.int64(wrap_int64(weight))
            parts.append(PluginScores(name, weight, given, given))
        decision.scores = Scores.known(total, tuple(parts))
        return self._selector.select(np.where(total == total.max(), priorities.randomizers, -1))

    def after_filters_failed(self, profile: Profile, decision: Decision) -> Decision:
        """No node fits: ask PostFilter and add its answer to the message (spec 04 §9)."""
        diagnosis = decision.diagnosis
        decision.fit_error_text = diagnosis.message()
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


@lru_cache(64)
def _enough_nodes(count: int, percentage: int) -> int:
    """How many of this many nodes have to fit; a percentage of 0 depends on their number."""
    if count < NODES_TO_FIND_MIN:
        return count
    if percentage == 0:
        percentage = max(50 - count // 125, PERCENTAGE_MIN)
    return max(count * percentage // 100, NODES_TO_FIND_MIN)


@lru_cache(64)
def _unsatisfied(restricting: str) -> Status:
    """The status of nodes that PreFilter left out."""
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{restricting}]")
