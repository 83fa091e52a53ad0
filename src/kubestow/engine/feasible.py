"""Finds the nodes on which a pod fits (spec 04 §5, §6, §13.3).

PreFilter → nominated node or hint alone → what is kept about all nodes → the search, node by node
                                                                   → extenders
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decision import Decision, Visited
from kubestow.engine.evaluation import Evaluation
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.search import FeasibleSearch
from kubestow.framework.diagnosis import Rejections
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.handle import Nominator
from kubestow.framework.hints import EXTENDER
from kubestow.framework.metrics import FILTER, PRE_FILTER
from kubestow.framework.profile import Profile
from kubestow.framework.runner import nominated_ahead, run_filters_with
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode
from kubestow.logs import fail

log = logging.getLogger(__name__)

NODES_TO_FIND_MIN: Final = 100
PERCENTAGE_MIN: Final = 5


class FeasibleNodes:
    """Keeps where the last search ended: one place for all profiles (spec 04 §6.3)."""

    def __init__(
        self,
        snapshot: Snapshot,
        nominator: Nominator,
        extenders: ExtenderChain | None,
        percentage_of_nodes_to_score: int,
    ) -> None:
        self._snapshot = snapshot
        self._nominator = nominator
        self._extenders = extenders
        self._percentage = percentage_of_nodes_to_score
        self.next_start_index = 0

    def find(self, profile: Profile, decision: Decision, evaluation: Evaluation) -> Status | None:
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
        # A pod with a nomination consumes the hint all the same.
        hint = "" if decision.batch is None else decision.batch.find_hint(decision, evaluation)
        name = decision.pod.pod.status.nominated_node_name or hint
        if name and self._try_nominated_node(name, profile, decision, evaluation):
            return None
        names = self._nominator.nominated_nodes()
        nominated = self._nominated_rows(names) if names else {}
        cycle = decision.state.group_cycle
        placement = None if cycle is None else _placement(cycle)
        candidates = self._candidates(decision, placement)
        decision.nodes_to_find = self._nodes_to_find(profile, len(candidates))
        if not nominated and placement is None:
            if self._take_known(decision, evaluation, candidates):
                return None
            rejections = evaluation.rejections() if outcome.node_names is None else None
            if rejections is not None:
                evaluation.note_search(0, len(self._snapshot.names))
                return self._reject_all(decision, rejections)
            if outcome.node_names is None and self._take_passing(decision, evaluation):
                return None
        search = FeasibleSearch(self._snapshot, profile, decision, evaluation, nominated)
        error = self._search(search, decision, candidates, placement)
        if error is None and self._extenders is not None:
            error = self._reduce_found(self._extenders, decision)
        return error

    # --- without a search ---

    def _take_known(
        self, decision: Decision, evaluation: Evaluation, candidates: range | npt.NDArray[np.intp]
    ) -> bool:
        """Take as many candidates as are needed, if they are known to fit."""
        count, wanted = len(self._snapshot.names), decision.nodes_to_find
        if decision.pre_filter.node_names is None:
            if not evaluation.passes_everywhere():
                return False
            first = self.next_start_index % count
            end = first + wanted
            decision.set_feasible(
                slice(first, end)
                if end <= count
                else np.concatenate((np.arange(first, count), np.arange(end - count)))
            )
        elif len(candidates) == 1 and evaluation.passes_on(row := int(candidates[0])):
            # As for most pods of a DaemonSet.
            decision.set_feasible(slice(row, row + 1))
        else:
            return False
        decision.evaluated_count = wanted
        self.next_start_index = (self.next_start_index + wanted) % count
        decision.state.meter.point_ended(FILTER)
        return True

    def _take_passing(self, decision: Decision, evaluation: Evaluation) -> bool:
        """Take as many nodes as are needed from a list of those that pass, if there is one."""
        passing = None if decision.has_diagnosis else evaluation.passing_nodes()
        if passing is None:
            return False
        count = len(self._snapshot.names)
        first = self.next_start_index % count
        rows, evaluated = passing.take(first, decision.nodes_to_find)
        decision.set_feasible(rows)
        decision.evaluated_count = evaluated
        decision.visited = Visited(passing, evaluation, first, evaluated)
        self.next_start_index = (first + evaluated) % count
        decision.state.meter.point_ended(FILTER)
        return True

    def _reject_all(self, decision: Decision, rejections: Rejections) -> Status | None:
        """No node fits: all are looked at, and the next search begins where this one did."""
        count = len(self._snapshot.names)
        decision.evaluated_count = count
        self.next_start_index %= count
        error = decision.diagnosis.reject_all(rejections)
        decision.state.meter.point_ended(FILTER, error)
        return error

    # --- with a search ---

    def _search(
        self,
        search: FeasibleSearch,
        decision: Decision,
        candidates: range | npt.NDArray[np.intp],
        placement: npt.NDArray[np.intp] | None,
    ) -> Status | None:
        error = None
        start = self.next_start_index
        if placement is not None and decision.pre_filter.node_names is None and len(candidates):
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
        return error

    def _reduce_found(self, extenders: ExtenderChain, decision: Decision) -> Status | None:
        found_count = decision.feasible_count
        # Before extenders replace reasons.
        error = decision.diagnosis.note_rejecting_plugins()
        if error is None:
            error = self._ask_extenders(extenders, decision)
        if decision.feasible_count != found_count:
            decision.diagnosis.unschedulable_plugins.add(EXTENDER)
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
        self, name: str, profile: Profile, decision: Decision, evaluation: Evaluation
    ) -> bool:
        """A pod gets the node that it is nominated to, or the hint, if it fits there; no other is
        filtered (spec 04 §5)."""
        row = self._snapshot.row_of(name)
        if row is None:
            return False
        cycle = decision.state.group_cycle
        placement = None if cycle is None else _placement(cycle)
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
            if not self._is_left_by_extenders(decision):
                return False
            decision.via_hint = not pod.pod.status.nominated_node_name
            decision.via_nominated_node = not decision.via_hint
            return True
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

    def _candidates(
        self, decision: Decision, placement: npt.NDArray[np.intp] | None
    ) -> range | npt.NDArray[np.intp]:
        """Rows to filter in visiting order: all, or those PreFilter left; a range if contiguous."""
        names = decision.pre_filter.node_names
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

    def _nodes_to_find(self, profile: Profile, count: int) -> int:
        """How many feasible nodes are enough (spec 04 §6.2)."""
        extenders = self._extenders
        if not profile.score and (extenders is None or not extenders.affects_choice):
            return 1
        percentage = profile.percentage_of_nodes_to_score
        return enough_nodes(count, self._percentage if percentage is None else percentage)

    def _nominated_rows(self, names: Sequence[str]) -> dict[int, Sequence[PodInfo]]:
        """The pods nominated to these nodes, by row; the nodes are filtered one by one."""
        rows: dict[int, Sequence[PodInfo]] = {}
        for name in names:
            row = self._snapshot.row_of(name)
            if row is not None:
                rows[row] = self._nominator.nominated_pods_for_node(name)
        return rows


def _placement(cycle: GroupCycle) -> npt.NDArray[np.intp] | None:
    """The only rows that may be used now; None for all."""
    return None if cycle.placement is None else cycle.placement.rows


@lru_cache(64)
def enough_nodes(count: int, percentage: int) -> int:
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
