"""Whom to evict from many nodes at once, where numbers decide (spec 08 A6, A11 hints).

The same trial as in `one_node`, in step on all nodes: all less important pods off, then the first
pod of every node put back, then the second of every node, and so on. Each step asks the filters
once for all nodes.

    filters that ask only what Node objects say    asked once: pods do not change their answer
    filters that ask for numbers                   asked at every step, for all nodes at once
    filters that ask for more                      asked at every step, node by node

What a filter asks for is seen when it is first asked. A filter answers for each node by itself, so
one that saw neither pods nor numbers then would say the same at every later step.

This needs that no plugin keeps a state which follows pods coming and going (`can_take`); with such
plugins at work, `one_node` does it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.importance import by_importance
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.nodes import Nodes, SimulatedNode
from kubestow.framework.diagnosis import PASSED, decode_status
from kubestow.framework.plugin import FilterPlugin, StatusCodes
from kubestow.framework.profile import plugin_name
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
    may_have_victims,
)
from kubestow.plugins.default_preemption.one_node import OneNode, no_victim_needed
from kubestow.plugins.default_preemption.thinned import NeedsMore, Slots, ThinnedNodes


def can_take(question: Question) -> bool:
    """Whether many nodes can be tried at once with the same outcome."""
    skipped = question.state.skip_filter
    return question.rules is DEFAULT_RULES and all(
        plugin_name(plugin) in skipped for plugin in question.profile.pre_filter_extensions
    )


class ManyNodes:
    """Evaluates nodes by the hundred."""

    takes_many = True

    def __init__(self, question: Question) -> None:
        self._question = question

    def evaluate(self, rows: IntpArray, statuses: StatusCodes) -> Stretch:
        try:
            return self._evaluate(rows, statuses)
        except (_FilterFault, NeedsMore):
            # A filter failed for all nodes together. Only one by one can it say which it means.
            return OneNode(self._question).evaluate(rows, statuses)

    def _evaluate(self, rows: IntpArray, statuses: StatusCodes) -> Stretch:
        question = self._question
        nodes = question.snapshot.view(rows)
        codes = np.full(len(rows), statuses.code_of(NO_VICTIMS), np.int64)
        ranks = np.zeros((CRITERIA, len(rows)), np.int64)
        positions = np.flatnonzero(may_have_victims(nodes, question.pod.priority))
        if len(positions) == 0:
            return Stretch(codes, ranks, _no_victims)
        trial = _Trial(question, nodes.subset(positions), rows[positions])
        failures = trial.filter_without_victims(statuses)
        codes[positions] = failures
        fitting = np.flatnonzero(failures == 0)
        if len(fitting) == 0:
            return Stretch(codes, ranks, _no_victims)
        if len(fitting) < len(positions):
            trial.keep_only(fitting)
            positions = positions[fitting]
        victims = trial.reprieve()
        ranks[:, positions] = victims.ranks(question.now_ns)
        for position in positions[~victims.mask.any(axis=0)].tolist():
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

    def ranks(self, now_ns: int) -> IntArray:
        """int64[criterion, node], as `Candidate.ranks` has them."""
        mask, slots = self.mask, self.slots
        priorities, starts = slots.figures[PRIORITY], slots.figures[START]
        starts = np.where(starts == NOT_STARTED, now_ns, starts)
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


class _Trial:
    """Some nodes in thought, all without their less important pods at first."""

    def __init__(self, question: Question, nodes: Nodes, rows: IntpArray) -> None:
        self._question = question
        self._rows = rows
        pod = question.pod
        evictable = evictable_pods(nodes, pod.priority, question.budgets, question.now_ns)
        self._view = ThinnedNodes(nodes, Slots.of(evictable))
        self._crowd = _Crowd.of(question, rows)
        self._by_numbers: list[FilterPlugin] = []
        self._by_node: list[FilterPlugin] = []
        self._simulated: dict[int, SimulatedNode] = {}

    def filter_without_victims(self, statuses: StatusCodes) -> IntArray:
        """int64[node]: the status of the first filter that fails, as a number; 0 if none does."""
        failures = self._first_failures(self._view, None)
        crowd = self._crowd
        if crowd is not None:
            # Nominated pods are counted in first, so what fails with them is what is said.
            crowded = self._view.crowded(crowd.positions, crowd.pods)
            found = self._first_failures(crowded, crowd)
            failing = found[0] != PASSED
            failures[:, crowd.positions[failing]] = found[:, failing]
        return self._decoded(failures, statuses)

    def keep_only(self, positions: IntpArray) -> None:
        """Go on with the nodes at these positions."""
        self._view = self._view.subset(positions)
        self._rows = self._rows[positions]
        self._crowd = _Crowd.of(self._question, self._rows)
        self._simulated = {
            position: self._simulated[old]
            for position, old in enumerate(positions.tolist())
            if old in self._simulated
        }

    def reprieve(self) -> _Victims:
        """Put pods back where there is room; returns those that have to go."""
        view, slots = self._view, self._view.slots
        victims = np.zeros_like(slots.exists)
        for slot in range(len(slots)):
            self._put_back(slot)
            rejected = self._rejected(slot)
            if rejected.any():
                self._take_away(slot, rejected)
                victims[slot] = rejected
        return _Victims(self._rows, view.slots, victims, self._question.now_ns)

    # --- asking filters ---

    def _first_failures(self, view: ThinnedNodes, crowd: "_Crowd | None") -> IntArray:
        """int64[2, node]: which filter fails first, or PASSED, and its code.

        Without a crowd, which is how all nodes are asked about first, notes what filters ask for.
        """
        skipped = self._question.state.skip_filter
        failures = np.zeros((2, len(view)), np.int64)
        failures[0] = PASSED
        for index, name, plugin, evaluates_each_node in self._question.profile.filter_steps:
            if name in skipped:
                continue
            passing = np.flatnonzero(failures[0] == PASSED)
            if len(passing) == 0:
                break
            view.asked.for_numbers = False
            is_narrowed = evaluates_each_node and len(passing) < len(view)
            try:
                codes = self._ask(plugin, view.subset(passing) if is_narrowed else view)
                if codes is not None and not is_narrowed:
                    codes = codes[passing]
            except NeedsMore:
                codes = self._ask_each(plugin, passing, crowd)
                if crowd is None:
                    self._by_node.append(plugin)
            else:
                if crowd is None and view.asked.for_numbers:
                    self._by_numbers.append(plugin)
            if codes is not None:
                failing = np.flatnonzero(codes)
                failures[0, passing[failing]] = index
                failures[1, passing[failing]] = codes[failing]
        return failures

    def _rejected(self, slot: int) -> BoolArray:
        """bool[node]: where there is no room beside the pod put back last."""
        exists = self._view.slots.exists[slot]
        rejected = self._fails(self._view, None, exists)
        crowd = self._crowd
        if crowd is not None:
            crowded = self._view.crowded(crowd.positions, crowd.pods)
            mask = (exists & ~rejected)[crowd.positions]
            rejected[crowd.positions] |= self._fails(crowded, crowd, mask)
        return rejected

    def _fails(self, view: ThinnedNodes, crowd: "_Crowd | None", mask: BoolArray) -> BoolArray:
        """bool[node]: where some filter fails, of the nodes in the mask."""
        fails = np.zeros(len(mask), np.bool_)
        for plugin in self._by_numbers:
            codes = self._ask(plugin, view)
            if codes is not None:
                fails |= codes != 0
        fails &= mask
        for plugin in self._by_node:
            fitting = np.flatnonzero(mask & ~fails)
            fails[fitting] = self._ask_each(plugin, fitting, crowd) != 0
        return fails

    def _ask(self, plugin: FilterPlugin, view: ThinnedNodes) -> IntArray | None:
        """The filter's answer for the whole view; NeedsMore if it cannot go by numbers."""
        question, asked = self._question, view.asked
        asked.for_more = False
        try:
            codes = plugin.filter(question.state, question.pod, view)
        except Exception as error:  # A fault in one plugin must not stop the scheduler.
            if asked.for_more:
                raise NeedsMore from error
            raise _FilterFault from error
        if asked.for_more:  # The plugin took the refusal for an answer.
            raise NeedsMore
        if codes is not None and codes.shape != (len(view),):
            raise _FilterFault
        return codes

    def _ask_each(
        self, plugin: FilterPlugin, positions: IntpArray, crowd: "_Crowd | None"
    ) -> IntArray:
        """The filter's answers for these nodes, or for these of the crowded nodes, one by one."""
        codes = np.zeros(len(positions), np.int64)
        question = self._question
        for index, position in enumerate(positions.tolist()):
            node = self._simulated_node(position, crowd)
            try:
                answer = plugin.filter(question.state, question.pod, node)
            except Exception as error:  # As above.
                raise _FilterFault from error
            if answer is not None:
                codes[index] = answer[0]
        return codes

    def _decoded(self, failures: IntArray, statuses: StatusCodes) -> IntArray:
        """int64[node]: numbers of the statuses these failures stand for, 0 where all passed."""
        numbers = np.zeros(failures.shape[1], np.int64)
        filters, state = self._question.profile.filter, self._question.state
        for index in set[int](failures[0][failures[0] != PASSED].tolist()):
            of_filter = failures[0] == index
            for code in set[int](failures[1][of_filter].tolist()):
                status = decode_status(filters[index], state, code)
                numbers[of_filter & (failures[1] == code)] = statuses.code_of(status)
        return numbers

    # --- pods that come and go ---

    def _put_back(self, slot: int) -> None:
        self._view.put_back(slot)
        for position, node in self._simulated.items():
            if self._view.slots.exists[slot, position]:
                node.add_pod(self._pod(slot, position))

    def _take_away(self, slot: int, mask: BoolArray) -> None:
        self._view.take_away(slot, mask)
        for position, node in self._simulated.items():
            if mask[position]:
                node.remove_pod(self._pod(slot, position))

    def _pod(self, slot: int, position: int) -> PodInfo:
        return self._view.slots.of_nodes[position].pods[slot]

    def _simulated_node(self, position: int, crowd: "_Crowd | None") -> SimulatedNode:
        if crowd is not None:
            node = self._simulated_node(int(crowd.positions[position]), None).clone()
            for pod in crowd.pods[position]:
                node.add_pod(pod)
            return node
        node = self._simulated.get(position)
        if node is None:
            # Filters are first asked when all less important pods are gone.
            node = SimulatedNode(self._question.snapshot, int(self._rows[position]))
            priority = self._question.pod.priority
            for pod in [pod for pod in node.info.pods if pod.priority < priority]:
                node.remove_pod(pod)
            self._simulated[position] = node
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


def _no_victims(row: int) -> Sequence[PodInfo]:
    raise LookupError(f"row {row} is no candidate")


class _FilterFault(Exception):
    """A filter failed, and not for one node alone."""
