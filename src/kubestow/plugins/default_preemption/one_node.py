"""The victims on one node, found by simulation (spec 08 A6).

    remove all less important pods ─► does the pod fit? ─► put them back one by one while it fits

The node and the state of all plugins are copied and changed. This is the reference; `many_nodes` is
a faster way to the same results.
"""

import numpy as np

from kubestow.api.disruption import BudgetSplit
from kubestow.api.importance import by_importance, importance_key
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import Rows, row_numbers
from kubestow.errors import CacheError, PluginError
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.runner import run_add_pod, run_filters_with_nominated, run_remove_pod
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.default_preemption.candidates import CRITERIA, Candidate
from kubestow.plugins.default_preemption.dry_run import NO_VICTIMS, TrialInputs, TrialResults


class OneNode:
    """Tries nodes one after the other."""

    def __init__(self, inputs: TrialInputs, statuses: StatusCodes | None = None) -> None:
        self._inputs = inputs
        self.statuses = StatusCodes() if statuses is None else statuses

    def evaluate(self, rows: Rows, missing: int | None) -> TrialResults:
        rows = row_numbers(rows)
        if missing is not None:
            rows = rows[:1]
        codes = np.zeros(len(rows), np.int64)
        ranks: list[tuple[int, ...]] = []
        victims: dict[int, tuple[PodInfo, ...]] = {}
        for position, row in enumerate(rows.tolist()):
            found = self.select(row)
            if isinstance(found, Status):
                codes[position] = self.statuses.code_of(found)
            else:
                ranks.append(found.ranks(self._inputs.now_ns))
                victims[row] = tuple(found.victims)
        table = np.array(ranks, np.int64).reshape(len(ranks), CRITERIA)
        return TrialResults.of(rows, codes, table.T, victims.__getitem__)

    def select(self, row: int) -> Candidate | Status:
        """The victims on one node; a status if evicting cannot help or fails."""
        return select_victims(self._inputs, row)


def select_victims(inputs: TrialInputs, row: int) -> Candidate | Status:
    """The pods to evict from the node; a status if evicting cannot help or fails."""
    try:
        candidate = _Trial(inputs, row).select_victims()
    except _Failed as failure:
        return failure.status
    except CacheError as error:
        return Status.from_error(error)
    if candidate.victims:
        return candidate
    return no_victim_needed(inputs.snapshot.names[row])


def no_victim_needed(node_name: str) -> Status:
    """The pod fits without any eviction, so it should have fitted before."""
    return Status.from_error(PluginError(f'expected at least one victim pod on node "{node_name}"'))


class _Failed(Exception):
    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class _Trial:
    """One simulated node, from which pods are removed and put back."""

    def __init__(self, inputs: TrialInputs, row: int) -> None:
        self._inputs = inputs
        self._row = row
        self._node = SimulatedNode(inputs.snapshot, row)
        # The state changes only if a filter follows pods.
        self._state = inputs.state.clone() if inputs.filters.follow_pods else inputs.state
        self._nominated = inputs.nominator.nominated_pods_for_node(inputs.snapshot.names[row])

    def select_victims(self) -> Candidate:
        inputs = self._inputs
        lower = self._lower_pods()
        for pod in lower:
            self._remove(pod)
        if not lower:
            raise _Failed(NO_VICTIMS)
        status = self._filter()
        if status is not None:
            raise _Failed(status)
        lower = self._by_importance(lower)
        budgets = inputs.budgets
        split = BudgetSplit([], lower) if budgets is None else budgets.split(lower)
        violating = self._reprieve(split.violating)
        victims = [*violating, *self._reprieve(split.non_violating)]
        if split.violating and split.non_violating:
            victims = self._by_importance(victims)
        return Candidate(self._row, victims, len(violating))

    def _lower_pods(self) -> list[PodInfo]:
        pod, may_evict = self._inputs.pod, self._inputs.rules.may_evict
        info = self._node.info
        return [
            other
            for other in info.pods
            if other.priority < pod.priority and may_evict(info, other, pod)
        ]

    def _reprieve(self, pods: list[PodInfo]) -> list[PodInfo]:
        """Put pods back while the preemptor still fits; returns the others."""
        victims: list[PodInfo] = []
        for pod in pods:
            self._add(pod)
            if self._filter() is not None:
                self._remove(pod)
                victims.append(pod)
        return victims

    def _by_importance(self, pods: list[PodInfo]) -> list[PodInfo]:
        key, now_ns = self._inputs.rules.importance_key, self._inputs.now_ns
        if key is importance_key:
            return by_importance(pods, now_ns)
        return sorted(pods, key=lambda pod: key(pod, now_ns))

    def _filter(self) -> Status | None:
        return run_filters_with_nominated(
            self._inputs.profile, self._state, self._inputs.pod, self._node, self._nominated
        )

    def _add(self, pod: PodInfo) -> None:
        inputs = self._inputs
        inputs.state.timer.pause()
        self._node.add_pod(pod)
        _raise_on_failure(run_add_pod(inputs.profile, self._state, inputs.pod, pod, self._row))

    def _remove(self, pod: PodInfo) -> None:
        inputs = self._inputs
        inputs.state.timer.pause()
        self._node.remove_pod(pod)
        _raise_on_failure(run_remove_pod(inputs.profile, self._state, inputs.pod, pod, self._row))


def _raise_on_failure(status: Status | None) -> None:
    if status is not None:
        raise _Failed(status)
