"""Whom to evict from one node, found by trying (spec 08 A6).

    all less important pods off ─► does the pod fit? ─► put them back one by one, as long as it fits

Everything the plugins know takes part: the node and the plugins' state are copied and changed
along. This is the rule; `many_nodes` is a quicker way to the same answers.
"""

import numpy as np

from kubestow.api.disruption import BudgetSplit
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntpArray
from kubestow.errors import CacheError, PluginError
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.runner import run_add_pod, run_filters_with_nominated, run_remove_pod
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.default_preemption.candidates import CRITERIA, Candidate
from kubestow.plugins.default_preemption.dry_run import (
    NO_VICTIMS,
    Question,
    Stretch,
)


class OneNode:
    """Tries nodes one after the other."""

    def __init__(self, question: Question, statuses: StatusCodes | None = None) -> None:
        self._question = question
        self.statuses = StatusCodes() if statuses is None else statuses

    def evaluate(self, rows: IntpArray, missing: int | None) -> Stretch:
        if missing is not None:
            rows = rows[:1]
        codes = np.zeros(len(rows), np.int64)
        ranks: list[tuple[int, ...]] = []
        victims: dict[int, tuple[PodInfo, ...]] = {}
        for position, row in enumerate(rows.tolist()):
            found = select_victims(self._question, row)
            if isinstance(found, Status):
                codes[position] = self.statuses.code_of(found)
            else:
                ranks.append(found.ranks(self._question.now_ns))
                victims[row] = tuple(found.victims)
        table = np.array(ranks, np.int64).reshape(len(ranks), CRITERIA)
        return Stretch(codes, table.T, victims.__getitem__)


def select_victims(question: Question, row: int) -> Candidate | Status:
    """The pods to evict from the node; a status if that cannot help or fails."""
    try:
        candidate = _Trial(question, row).select_victims()
    except _Failed as failure:
        return failure.status
    except CacheError as error:
        return Status.from_error(error)
    if candidate.victims:
        return candidate
    return no_victim_needed(question.snapshot.names[row])


def no_victim_needed(node_name: str) -> Status:
    """The pod fits though nobody goes: then it should have fitted before."""
    return Status.from_error(PluginError(f'expected at least one victim pod on node "{node_name}"'))


class _Failed(Exception):
    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class _Trial:
    """One node in thought, with pods coming and going."""

    def __init__(self, question: Question, row: int) -> None:
        self._question = question
        self._row = row
        self._node = SimulatedNode(question.snapshot, row)
        # Nobody changes the state unless a filter follows pods.
        is_followed = any(taking_part.follows_pods for taking_part in question.filters)
        self._state = question.state.clone() if is_followed else question.state
        self._nominated = question.nominator.nominated_pods_for_node(question.snapshot.names[row])

    def select_victims(self) -> Candidate:
        question = self._question
        lower = self._lower_pods()
        for pod in lower:
            self._remove(pod)
        if not lower:
            raise _Failed(NO_VICTIMS)
        status = self._filter()
        if status is not None:
            raise _Failed(status)
        lower = self._by_importance(lower)
        budgets = question.budgets
        split = BudgetSplit([], lower) if budgets is None else budgets.split(lower)
        violating = self._reprieve(split.violating)
        victims = self._by_importance([*violating, *self._reprieve(split.non_violating)])
        return Candidate(self._row, victims, len(violating))

    def _lower_pods(self) -> list[PodInfo]:
        pod, may_evict = self._question.pod, self._question.rules.may_evict
        info = self._node.info
        return [
            other
            for other in info.pods
            if other.priority < pod.priority and may_evict(info, other, pod)
        ]

    def _reprieve(self, pods: list[PodInfo]) -> list[PodInfo]:
        """Put back whom there is room for; returns the others."""
        victims: list[PodInfo] = []
        for pod in pods:
            self._add(pod)
            if self._filter() is not None:
                self._remove(pod)
                victims.append(pod)
        return victims

    def _by_importance(self, pods: list[PodInfo]) -> list[PodInfo]:
        key, now_ns = self._question.rules.importance_key, self._question.now_ns
        return sorted(pods, key=lambda pod: key(pod, now_ns))

    def _filter(self) -> Status | None:
        return run_filters_with_nominated(
            self._question.profile, self._state, self._question.pod, self._node, self._nominated
        )

    def _add(self, pod: PodInfo) -> None:
        self._node.add_pod(pod)
        question = self._question
        _raise_on_failure(run_add_pod(question.profile, self._state, question.pod, pod, self._row))

    def _remove(self, pod: PodInfo) -> None:
        self._node.remove_pod(pod)
        question = self._question
        _raise_on_failure(
            run_remove_pod(question.profile, self._state, question.pod, pod, self._row)
        )


def _raise_on_failure(status: Status | None) -> None:
    if status is not None:
        raise _Failed(status)
