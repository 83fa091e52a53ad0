"""Whom to evict from many nodes at once (spec 08 A6, A11 hints).

The same trial as in `one_node`, in step on all nodes: all less important pods off, then the first
pod of every node put back, then the second of every node, and so on. Each step asks the filters
once for all nodes (`asking`).

This needs that no plugin keeps a state which follows pods coming and going (`can_take`); with such
plugins at work, `one_node` does it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.importance import by_importance
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.nodes import SimulatedNode
from kubestow.framework.diagnosis import PASSED, decode_status
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.profile import plugin_name
from kubestow.plugins.default_preemption.asking import Asker, FilterFault
from kubestow.plugins.default_preemption.candidates import CRITERIA, PRIORITY_SHIFT
from kubestow.plugins.default_preemption.dry_run import (
    NO_VICTIMS,
    IntpArray,
    Question,
    Stretch,
)
from kubestow.plugins.default_preemption.eligibility import DEFAULT_RULES
from kubestow.plugins.default_preemption.evictable import (
    NOT_STARTED,
    PRIORITY,
    START,
    evictable_pods,
    lower_sums,
)
from kubestow.plugins.default_preemption.one_node import OneNode, no_victim_needed
from kubestow.plugins.default_preemption.thinned import NeedsMore, Slots, ThinnedNodes

# How many nodes are asked about at once before it is known how many of them could help.
SCREENED_MAX: Final = 4096


def can_take(question: Question) -> bool:
    """Whether many nodes can be tried at once with the same outcome."""
    skipped = question.state.skip_filter
    return question.rules is DEFAULT_RULES and all(
        plugin_name(plugin) in skipped for plugin in question.profile.pre_filter_extensions
    )


class ManyNodes:
    """Tries nodes by the hundred."""

    def __init__(self, question: Question) -> None:
        self._question = question

    def evaluate(self, rows: IntpArray, statuses: StatusCodes, missing: int | None) -> Stretch:
        try:
            return self._evaluate(rows[:SCREENED_MAX], statuses, missing)
        except (FilterFault, NeedsMore):
            # A filter failed for all nodes together. Only one by one can it say which it means.
            return OneNode(self._question).evaluate(rows, statuses, missing)

    def _evaluate(self, rows: IntpArray, statuses: StatusCodes, missing: int | None) -> Stretch:
        question = self._question
        codes = np.full(len(rows), statuses.code_of(NO_VICTIMS), np.int64)
        lower_counts = lower_sums(question.snapshot.view(rows), question.pod.priority)[0]
        positions = np.flatnonzero(lower_counts)
        asker = Asker(question)
        if len(positions):
            screened = _Thought(question, rows[positions])
            codes[positions] = _decoded(question, screened.first_failures(asker), statuses)
        fitting = np.flatnonzero(codes == 0)
        if missing is not None and len(fitting) > missing:
            # The others are most likely not needed. If they are, they will be asked about again.
            fitting = fitting[:missing]
            codes = codes[: fitting[-1] + 1]
        ranks = np.zeros((CRITERIA, len(codes)), np.int64)
        if len(fitting) == 0:
            return Stretch(codes, ranks, _no_victims)
        victims = _reprieve(question, rows[fitting], asker)
        ranks[:, fitting] = victims.ranks()
        for position in fitting[~victims.mask.any(axis=0)].tolist():
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
        position = int(np.flatnonzero(self.rows == row)[0])
        pods = self.slots.of_nodes[position].pods
        victims = [pods[slot] for slot in np.flatnonzero(self.mask[:, position]).tolist()]
        return by_importance(victims, self.now_ns)

    def ranks(self) -> IntArray:
        """int64[criterion, node], as `Candidate.ranks` has them."""
        mask, slots = self.mask, self.slots
        priorities, starts = slots.figures[PRIORITY], slots.figures[START]
        starts = np.where(starts == NOT_STARTED, self.now_ns, starts)
        lowest = np.iinfo(np.int64).min
        highest = np.where(mask, priorities, lowest).max(axis=0)
        earliest = np.where(mask & (priorities == highest), starts, NOT_STARTED).min(axis=0)
        is_violating = np.arange(len(slots))[:, np.newaxis] < slots.violating_counts
        return np.stack(
            (
                np.count_nonzero(mask & is_violating, axis=0),
                highest,
                ((priorities + PRIORITY_SHIFT) * mask).sum(axis=0),
                np.count_nonzero(mask, axis=0),
                -earliest,
            )
        )


def _reprieve(question: Question, rows: IntpArray, asker: Asker) -> _Victims:
    """Put pods back where there is room; returns those that have to go."""
    evictable = evictable_pods(
        question.snapshot.view(rows), question.pod.priority, question.budgets, question.now_ns
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
        self._view = ThinnedNodes(question.snapshot.view(rows), question.pod.priority, slots)
        self._crowd = _Crowd.of(question, rows)
        self._simulated: dict[int, SimulatedNode] = {}

    # --- asking about them, with and without nominated pods (spec 04 §7) ---

    def first_failures(self, asker: Asker) -> IntArray:
        failures = asker.first_failures(self._view, self._node_at)
        crowd = self._crowd
        if crowd is not None:
            crowded = self._view.crowded(crowd.positions, crowd.pods)
            found = asker.first_failures(crowded, self._crowded_node_at)
            # Nominated pods are counted in first, so what fails with them is what is said.
            failing = found[0] != PASSED
            failures[:, crowd.positions[failing]] = found[:, failing]
        return failures

    def fails(self, asker: Asker, mask: BoolArray) -> BoolArray:
        fails = asker.fails(self._view, self._node_at, mask)
        crowd = self._crowd
        if crowd is not None:
            crowded = self._view.crowded(crowd.positions, crowd.pods)
            mask = (mask & ~fails)[crowd.positions]
            fails[crowd.positions] |= asker.fails(crowded, self._crowded_node_at, mask)
        return fails

    # --- pods that come and go ---

    def put_back(self, slot: int) -> None:
        self._view.put_back(slot)
        for position, node in self._simulated.items():
            pod = self._pod(slot, position)
            if pod is not None:
                node.add_pod(pod)

    def take_away(self, slot: int, mask: BoolArray) -> None:
        self._view.take_away(slot, mask)
        for position, node in self._simulated.items():
            pod = self._pod(slot, position)
            if pod is not None and mask[position]:
                node.remove_pod(pod)

    def _pod(self, slot: int, position: int) -> PodInfo | None:
        assert self._slots is not None
        pods = self._slots.of_nodes[position].pods
        return pods[slot] if slot < len(pods) else None

    def _node_at(self, position: int) -> SimulatedNode:
        node = self._simulated.get(position)
        if node is None:
            node = self._simulated[position] = self._simulate(position)
        return node

    def _simulate(self, position: int) -> SimulatedNode:
        node = SimulatedNode(self._question.snapshot, int(self._rows[position]))
        priority = self._question.pod.priority
        for pod in [pod for pod in node.info.pods if pod.priority < priority]:
            node.remove_pod(pod)
        for slot in self._view.slots_back(position):
            pod = self._pod(slot, position)
            assert pod is not None
            node.add_pod(pod)
        return node

    def _crowded_node_at(self, position: int) -> SimulatedNode:
        assert self._crowd is not None
        node = self._node_at(int(self._crowd.positions[position])).clone()
        for pod in self._crowd.pods[position]:
            node.add_pod(pod)
        return node


class _Crowd(NamedTuple):
    """Pods nominated to some of the nodes, that come before the pod in question."""

    positions: IntpArray
    pods: Sequence[Sequence[PodInfo]]

    @classmethod
    def of(cls, question: Question, rows: IntpArray) -> "_Crowd | None":
        nominator, names, pod = question.nominator, question.snapshot.names, question.pod
        nominated = set(nominator.nominated_nodes())
        if not nominated:
            return None
        ahead: dict[int, Sequence[PodInfo]] = {}
        listed: list[int] = rows.tolist()
        for position, row in enumerate(listed):
            if names[row] in nominated:
                pods = [
                    other
                    for other in nominator.nominated_pods_for_node(names[row])
                    if other.priority >= pod.priority and other.uid != pod.uid
                ]
                if pods:
                    ahead[position] = pods
        if not ahead:
            return None
        return cls(np.array(list(ahead), np.intp), list(ahead.values()))


def _decoded(question: Question, failures: IntArray, statuses: StatusCodes) -> IntArray:
    """int64[node]: numbers of the statuses these failures stand for, 0 where all passed."""
    numbers = np.zeros(failures.shape[1], np.int64)
    for index in set[int](failures[0][failures[0] != PASSED].tolist()):
        of_filter = failures[0] == index
        for code in set[int](failures[1][of_filter].tolist()):
            status = decode_status(question.profile.filter[index], question.state, code)
            numbers[of_filter & (failures[1] == code)] = statuses.code_of(status)
    return numbers


def _no_victims(row: int) -> Sequence[PodInfo]:
    raise LookupError(f"row {row} is no candidate")
