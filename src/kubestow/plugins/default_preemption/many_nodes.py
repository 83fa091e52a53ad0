"""Whom to evict from many nodes at once (spec 08 A6, A11 hints).

The same trial as in `one_node`, in step on all nodes: all less important pods off, then the first
pod of every node put back, then the second of every node, and so on. Each step asks the filters
once for all nodes where numbers decide, and node by node only where they do not (`asking`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.importance import by_importance
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Reads
from kubestow.framework.runner import run_add_pod, run_remove_pod
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.default_preemption.asking import Asker, FilterFault, TrialNode
from kubestow.plugins.default_preemption.candidates import (
    CRITERIA,
    HIGHEST_PRIORITY,
    PRIORITY_SHIFT,
    PRIORITY_SUM,
    VICTIM_COUNT,
    VIOLATIONS,
    YOUNGEST,
)
from kubestow.plugins.default_preemption.dry_run import (
    NO_VICTIMS,
    Question,
    Stretch,
)
from kubestow.plugins.default_preemption.evictable import (
    NOT_STARTED,
    PRIORITY,
    START,
    evictable_pods,
    lower_sums,
)
from kubestow.plugins.default_preemption.one_node import OneNode, no_victim_needed
from kubestow.plugins.default_preemption.thinned import Slots, ThinnedNodes

# How many nodes are asked about at once before it is known how many of them could help.
SCREENED_MAX: Final = 4096
LOWEST: Final = np.iinfo(np.int64).min


class ManyNodes:
    """Tries nodes by the hundred. Only for the default rules on victims."""

    def __init__(self, question: Question, statuses: StatusCodes | None = None) -> None:
        self._question = question
        self.statuses = StatusCodes() if statuses is None else statuses
        self._goes_by_node = any(asked.reads is Reads.PODS for asked in question.filters)

    def evaluate(self, rows: IntpArray, missing: int | None) -> Stretch:
        if missing is not None:
            tried = rows[: missing if self._goes_by_node else SCREENED_MAX]
        else:
            tried = rows
        try:
            return self._try(tried, missing)
        except FilterFault:
            # A filter failed for all nodes together. Only one by one can it say which it means.
            return OneNode(self._question, self.statuses).evaluate(rows, missing)

    def _try(self, rows: IntpArray, missing: int | None) -> Stretch:
        question, statuses = self._question, self.statuses
        codes = np.full(len(rows), statuses.code_of(NO_VICTIMS), np.int64)
        sums = lower_sums(nodes_of(question.snapshot, rows), question.pod.priority)
        positions = np.flatnonzero(sums[0])
        asker = Asker(question, statuses)
        if len(positions):
            screened = _Thought(question, rows[positions])
            codes[positions] = screened.first_failures(asker)
        fitting = np.flatnonzero(codes == 0)
        if missing is not None and len(fitting) > missing:
            # The others are most likely not needed. If they are, they will be asked about again.
            fitting = fitting[:missing]
            codes = codes[: fitting[-1] + 1]
        if len(fitting) == 0:
            return Stretch(codes, np.zeros((CRITERIA, 0), np.int64), _no_victims)
        victims = _reprieve(question, rows[fitting], asker)
        ranks = victims.ranks()
        has_victims = victims.mask.any(axis=0)
        if not has_victims.all():
            ranks = ranks[:, has_victims]
            for position in fitting[~has_victims].tolist():
                name = question.snapshot.names[rows[position]]
                codes[position] = statuses.code_of(no_victim_needed(name))
        return Stretch(codes, ranks, victims.of_row)


class _Victims(NamedTuple):
    """mask   bool[slot, node]: the pods that cannot be spared."""

    rows: IntpArray
    slots: Slots
    mask: BoolArray
    now_ns: int

    def of_row(self, row: int) -> Sequence[PodInfo]:
        position = int((self.rows == row).argmax())
        pods = self.slots.of_nodes[position].pods
        victims = [pods[slot] for slot in self.mask[:, position].nonzero()[0].tolist()]
        return by_importance(victims, self.now_ns)

    def ranks(self) -> IntArray:
        """int64[criterion, node], as `Candidate.ranks` has them."""
        mask, slots = self.mask, self.slots
        priorities, starts = slots.figures[PRIORITY], slots.figures[START]
        starts = np.where(starts == NOT_STARTED, self.now_ns, starts)
        ranks = np.zeros((CRITERIA, len(self.rows)), np.int64)
        is_violating = slots.is_violating()
        if is_violating is None:
            # Pods lie in order of importance, so the first victim says it for all.
            firsts, nodes = mask.argmax(axis=0), np.arange(len(self.rows))
            highest, earliest = priorities[firsts, nodes], starts[firsts, nodes]
        else:
            ranks[VIOLATIONS] = np.count_nonzero(mask & is_violating, axis=0)
            highest = np.where(mask, priorities, LOWEST).max(axis=0)
            is_highest = mask & (priorities == highest)
            earliest = np.where(is_highest, starts, NOT_STARTED).min(axis=0)
        ranks[HIGHEST_PRIORITY] = highest
        ranks[VICTIM_COUNT] = np.count_nonzero(mask, axis=0)
        ranks[PRIORITY_SUM] = (priorities * mask).sum(axis=0) + PRIORITY_SHIFT * ranks[VICTIM_COUNT]
        ranks[YOUNGEST] = -earliest
        return ranks


def _reprieve(question: Question, rows: IntpArray, asker: Asker) -> _Victims:
    """Put pods back where there is room; returns those that have to go."""
    evictable = evictable_pods(
        nodes_of(question.snapshot, rows), question.pod.priority, question.budgets, question.now_ns
    )
    slots = Slots.of(evictable)
    thought = _Thought(question, rows, slots)
    victims = np.zeros_like(slots.exists)
    for slot in range(len(slots)):
        thought.put_back(slot)
        rejected = thought.fails(asker, slots.exists[slot])
        if rejected.any():
            thought.take_away(slot, rejected)
            victims[slot] = rejected
    return _Victims(rows, slots, victims, question.now_ns)


class _Thought:
    """Some nodes without their less important pods, in every form filters may ask for."""

    def __init__(self, question: Question, rows: IntpArray, slots: Slots | None = None) -> None:
        self._question = question
        self._rows = rows
        self._slots = slots
        self._view = ThinnedNodes(question.snapshot, rows, question.pod.priority, slots)
        self._crowd = _Crowd.of(question, rows)
        self._trial_nodes: dict[int, TrialNode] = {}

    # --- asking about them, with and without nominated pods (spec 04 §7) ---

    def first_failures(self, asker: Asker) -> IntArray:
        failures = asker.first_failures(self._view, self._trial_node_at)
        crowd = self._crowd
        if crowd is not None:
            crowded = self._view.crowded(crowd.positions, crowd.pods)
            found = asker.first_failures(crowded, self._crowded_node_at)
            # Nominated pods are counted in first, so what fails with them is what is said.
            failures[crowd.positions[found != 0]] = found[found != 0]
        return failures

    def fails(self, asker: Asker, mask: BoolArray) -> BoolArray:
        fails = asker.fails(self._view, self._trial_node_at, mask)
        crowd = self._crowd
        if crowd is not None:
            crowded = self._view.crowded(crowd.positions, crowd.pods)
            mask = (mask & ~fails)[crowd.positions]
            fails[crowd.positions] |= asker.fails(crowded, self._crowded_node_at, mask)
        return fails

    # --- pods that come and go ---

    def put_back(self, slot: int) -> None:
        self._view.put_back(slot)
        for position, trial_node in self._trial_nodes.items():
            pod = self._pod(slot, position)
            if pod is not None:
                self._add(trial_node, pod)

    def take_away(self, slot: int, mask: BoolArray) -> None:
        self._view.take_away(slot, mask)
        for position, trial_node in self._trial_nodes.items():
            pod = self._pod(slot, position)
            if pod is not None and mask[position]:
                self._remove(trial_node, pod)

    def _pod(self, slot: int, position: int) -> PodInfo | None:
        assert self._slots is not None
        pods = self._slots.of_nodes[position].pods
        return pods[slot] if slot < len(pods) else None

    # --- nodes one by one, made when a filter asks for them ---

    def _trial_node_at(self, position: int) -> TrialNode:
        trial_node = self._trial_nodes.get(position)
        if trial_node is None:
            trial_node = self._trial_nodes[position] = self._make_trial_node(position)
        return trial_node

    def _make_trial_node(self, position: int) -> TrialNode:
        question = self._question
        node = SimulatedNode(question.snapshot, int(self._rows[position]))
        trial_node = TrialNode(node, question.state.clone())
        priority = question.pod.priority
        for pod in [pod for pod in node.info.pods if pod.priority < priority]:
            self._remove(trial_node, pod)
        for slot in self._view.slots_back(position):
            pod = self._pod(slot, position)
            assert pod is not None
            self._add(trial_node, pod)
        return trial_node

    def _crowded_node_at(self, position: int) -> TrialNode:
        assert self._crowd is not None
        plain = self._trial_node_at(int(self._crowd.positions[position]))
        trial_node = TrialNode(plain.node.clone(), plain.state.clone())
        for pod in self._crowd.pods[position]:
            self._add(trial_node, pod)
        return trial_node

    def _add(self, trial_node: TrialNode, pod: PodInfo) -> None:
        trial_node.node.add_pod(pod)
        question, row = self._question, trial_node.node.row
        if run_add_pod(question.profile, trial_node.state, question.pod, pod, row) is not None:
            raise FilterFault

    def _remove(self, trial_node: TrialNode, pod: PodInfo) -> None:
        trial_node.node.remove_pod(pod)
        question, row = self._question, trial_node.node.row
        if run_remove_pod(question.profile, trial_node.state, question.pod, pod, row) is not None:
            raise FilterFault


class _Crowd(NamedTuple):
    """Pods nominated to some of the nodes, that come before the pod in question."""

    positions: IntpArray
    pods: Sequence[Sequence[PodInfo]]

    @classmethod
    def of(cls, question: Question, rows: IntpArray) -> "_Crowd | None":
        crowds = crowds_by_row(question)
        if not crowds:
            return None
        positions = np.flatnonzero(np.isin(rows, np.fromiter(crowds, np.intp)))
        if len(positions) == 0:
            return None
        return cls(positions, [crowds[row] for row in rows[positions].tolist()])


def crowds_by_row(question: Question) -> dict[int, Sequence[PodInfo]]:
    """The rows of nodes that other pods are nominated to and come first, with these pods."""
    nominator, pod = question.nominator, question.pod
    crowds: dict[int, Sequence[PodInfo]] = {}
    for name in nominator.nominated_nodes():
        row = question.snapshot.row_of(name)
        if row is None:
            continue
        ahead = [
            other
            for other in nominator.nominated_pods_for_node(name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        if ahead:
            crowds[row] = ahead
    return crowds


def _no_victims(row: int) -> Sequence[PodInfo]:
    raise LookupError(f"row {row} is no candidate")
