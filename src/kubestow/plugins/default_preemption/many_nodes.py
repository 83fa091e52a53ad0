"""The victims on many nodes at once (spec 08 A6, A11 hints).

The same trial as in `one_node`, in step on all nodes: all less important pods are removed, then the
first pod of every node is put back, then the second, and so on. Each step calls a filter once for
all nodes if it reads numbers only, and node by node otherwise (`filter_runner`).
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.importance import by_importance
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, IntpArray, Rows, row_numbers
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Reads
from kubestow.framework.runner import run_add_pod, run_remove_pod
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.default_preemption.candidates import (
    CRITERIA,
    HIGHEST_PRIORITY,
    PRIORITY_SHIFT,
    PRIORITY_SUM,
    VICTIM_COUNT,
    VIOLATIONS,
    YOUNGEST,
)
from kubestow.plugins.default_preemption.dry_run import NO_VICTIMS, TrialInputs, TrialResults
from kubestow.plugins.default_preemption.evictable import (
    NOT_STARTED,
    PRIORITY,
    START,
    PodSlots,
    RankedPods,
)
from kubestow.plugins.default_preemption.filter_runner import FilterFault, FilterRunner, TrialNode
from kubestow.plugins.default_preemption.one_node import OneNode, no_victim_needed
from kubestow.plugins.default_preemption.reduced_nodes import ReducedNodes

LOWEST: Final = np.iinfo(np.int64).min


class ManyNodes:
    """Tries hundreds of nodes together. Only for the default rules on victims."""

    def __init__(
        self, inputs: TrialInputs, statuses: StatusCodes | None = None, expected: int = 0
    ) -> None:
        """`expected` is how many nodes will probably have to be tried."""
        self._inputs = inputs
        self.statuses = StatusCodes() if statuses is None else statuses
        self._expected = expected
        self._is_per_node = any(trial_filter.reads is Reads.PODS for trial_filter in inputs.filters)

    def evaluate(self, rows: Rows, missing: int | None) -> TrialResults:
        rows = row_numbers(rows)
        try:
            return self._try(rows, missing)
        except FilterFault:
            # A filter failed for all nodes together. One by one shows which node it fails on.
            return OneNode(self._inputs, self.statuses).evaluate(rows, missing)

    def _try(self, rows: IntpArray, missing: int | None) -> TrialResults:
        inputs, statuses = self._inputs, self.statuses
        runner = FilterRunner(inputs, statuses)
        codes = self._screen(rows, missing, runner)
        fitting = (codes == 0).nonzero()[0]
        if missing is not None and len(fitting) > missing:
            # The others are most likely not needed. If they are, they are tried again.
            fitting = fitting[:missing]
            codes = codes[: fitting[-1] + 1]
        if len(fitting) == 0:
            return TrialResults.of(rows, codes, np.zeros((CRITERIA, 0), np.int64), _no_victims)
        victims = _reprieve(inputs, rows[fitting], runner)
        ranks = victims.ranks()
        has_victims = victims.mask.any(axis=0)
        if not has_victims.all():
            ranks = ranks[:, has_victims]
            for position in fitting[~has_victims].tolist():
                name = inputs.snapshot.names[rows[position]]
                codes[position] = statuses.code_of(no_victim_needed(name))
        return TrialResults.of(rows, codes, ranks, victims.without_values().of_row)

    def _screen(self, rows: IntpArray, missing: int | None, runner: FilterRunner) -> IntArray:
        """int64[node]: 0 for those of the first nodes that the pod fits on without the pods of
        lower priority. So many nodes that `missing` of them fit, if there are."""
        if missing is None:
            return self._screen_together(rows, runner)
        if self._is_per_node:  # It takes long for each node, so none is tried in advance.
            return self._screen_together(rows[:missing], runner)
        parts: list[IntArray] = []
        end, size, found = 0, max(2 * missing, self._expected), 0
        while end < len(rows) and found < missing:
            parts.append(self._screen_together(rows[end : end + size], runner))
            found += len(parts[-1]) - int(np.count_nonzero(parts[-1]))
            end += size
            size *= 2
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _screen_together(self, rows: IntpArray, runner: FilterRunner) -> IntArray:
        inputs = self._inputs
        slots = inputs.snapshot.derived(RankedPods).below(rows, inputs.pod.priority)
        positions = np.flatnonzero(slots.exists.any(axis=0))
        if len(positions) == len(rows):
            return _SimulatedNodes(inputs, rows, slots).first_failures(runner)
        codes = np.full(len(rows), self.statuses.code_of(NO_VICTIMS), np.int64)
        if len(positions):
            screened = _SimulatedNodes(inputs, rows[positions], slots.subset(positions))
            codes[positions] = screened.first_failures(runner)
        return codes


class _Victims(NamedTuple):
    """mask   bool[slot, node]: the pods that cannot be reprieved."""

    rows: IntpArray
    slots: PodSlots
    mask: BoolArray
    now_ns: int

    def without_values(self) -> "_VictimPods":
        """Only what is kept: the numbers of all pods would take most of the memory of a record."""
        places: dict[int, int] = {row: place for place, row in enumerate(self.rows.tolist())}
        is_violating = self.slots.is_violating
        are_mixed = None if is_violating is None else np.logical_or.reduce(is_violating)
        return _VictimPods(places, self.slots.pods, are_mixed, self.mask, self.now_ns)

    def ranks(self) -> IntArray:
        """int64[criterion, node], as `Candidate.ranks` has them."""
        mask, slots = self.mask, self.slots
        priorities, starts = slots.values[PRIORITY], slots.values[START]
        starts = np.where(starts == NOT_STARTED, self.now_ns, starts)
        ranks = np.zeros((CRITERIA, len(self.rows)), np.int64)
        is_violating = slots.is_violating
        if is_violating is None:
            # Pods are in order of importance, so the first victim has the highest priority.
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


class _VictimPods(NamedTuple):
    """places      by row, the position in the others
    pods        per node, by slot
    are_mixed   bool[node]: some pods would violate a budget; None if no pod would
    mask        bool[slot, node]"""

    places: Mapping[int, int]
    pods: Sequence[Sequence[PodInfo]]
    are_mixed: BoolArray | None
    mask: BoolArray
    now_ns: int

    def of_row(self, row: int) -> Sequence[PodInfo]:
        position = self.places[row]
        victims = [*compress(self.pods[position], self.mask[:, position].tolist())]
        if self.are_mixed is None or not self.are_mixed[position]:
            return victims  # They are in order of importance already.
        return by_importance(victims, self.now_ns)


def _reprieve(inputs: TrialInputs, rows: IntpArray, runner: FilterRunner) -> _Victims:
    """Put pods back where the preemptor still fits; returns the others."""
    ranked = inputs.snapshot.derived(RankedPods)
    pause = inputs.state.timer.pause
    slots = ranked.reprieved(rows, inputs.pod.priority, inputs.budgets, inputs.now_ns, pause)
    simulated = _SimulatedNodes(inputs, rows, slots)
    victims = np.zeros_like(slots.exists)
    used: list[int] = np.flatnonzero(slots.exists.any(axis=1)).tolist()
    for slot in used:
        pause()
        simulated.put_back(slot)
        rejected = simulated.fails(runner, slots.exists[slot])
        if rejected.any():
            simulated.take_away(slot, rejected)
            victims[slot] = rejected
    return _Victims(rows, slots, victims, inputs.now_ns)


class _SimulatedNodes:
    """Some nodes without their less important pods, as arrays and as single nodes."""

    def __init__(self, inputs: TrialInputs, rows: IntpArray, slots: PodSlots) -> None:
        self._inputs = inputs
        self._rows = rows
        self._slots = slots
        self._view = ReducedNodes(inputs.snapshot, rows, inputs.pod.priority, slots)
        self._nominated = _Nominated.of(inputs, rows)
        self._trial_nodes: dict[int, TrialNode] = {}

    # --- filtering them, with and without nominated pods (spec 04 §7) ---

    def first_failures(self, runner: FilterRunner) -> IntArray:
        failures = runner.first_failures(self._view, self._trial_node_at)
        nominated = self._nominated
        if nominated is not None:
            view = self._view.with_nominated(nominated.positions, nominated.pods)
            found = runner.first_failures(view, self._node_with_nominated)
            # The run with nominated pods comes first upstream, so its failure is reported.
            failures[nominated.positions[found != 0]] = found[found != 0]
        return failures

    def fails(self, runner: FilterRunner, mask: BoolArray) -> BoolArray:
        fails = runner.fails(self._view, self._trial_node_at, mask)
        nominated = self._nominated
        if nominated is not None:
            view = self._view.with_nominated(nominated.positions, nominated.pods)
            mask = (mask & ~fails)[nominated.positions]
            fails[nominated.positions] |= runner.fails(view, self._node_with_nominated, mask)
        return fails

    # --- adding and removing pods ---

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
        return self._slots.pods[position][slot] if self._slots.exists[slot, position] else None

    # --- single nodes, made when a filter needs them ---

    def _trial_node_at(self, position: int) -> TrialNode:
        trial_node = self._trial_nodes.get(position)
        if trial_node is None:
            trial_node = self._trial_nodes[position] = self._make_trial_node(position)
        return trial_node

    def _make_trial_node(self, position: int) -> TrialNode:
        inputs = self._inputs
        node = SimulatedNode(inputs.snapshot, int(self._rows[position]))
        trial_node = TrialNode(node, inputs.state.clone())
        priority = inputs.pod.priority
        for pod in [pod for pod in node.info.pods if pod.priority < priority]:
            self._remove(trial_node, pod)
        for slot in self._view.slots_back(position):
            pod = self._pod(slot, position)
            assert pod is not None
            self._add(trial_node, pod)
        return trial_node

    def _node_with_nominated(self, position: int) -> TrialNode:
        assert self._nominated is not None
        plain = self._trial_node_at(int(self._nominated.positions[position]))
        trial_node = TrialNode(plain.node.clone(), plain.state.clone())
        for pod in self._nominated.pods[position]:
            self._add(trial_node, pod)
        return trial_node

    def _add(self, trial_node: TrialNode, pod: PodInfo) -> None:
        # A single pod may have thousands of terms, and so may the preemptor.
        self._inputs.state.timer.pause()
        trial_node.node.add_pod(pod)
        inputs, row = self._inputs, trial_node.node.row
        if run_add_pod(inputs.profile, trial_node.state, inputs.pod, pod, row) is not None:
            raise FilterFault

    def _remove(self, trial_node: TrialNode, pod: PodInfo) -> None:
        self._inputs.state.timer.pause()
        trial_node.node.remove_pod(pod)
        inputs, row = self._inputs, trial_node.node.row
        if run_remove_pod(inputs.profile, trial_node.state, inputs.pod, pod, row) is not None:
            raise FilterFault


class _Nominated(NamedTuple):
    """Pods nominated to some of the nodes, of equal or higher priority than the preemptor."""

    positions: IntpArray
    pods: Sequence[Sequence[PodInfo]]

    @classmethod
    def of(cls, inputs: TrialInputs, rows: IntpArray) -> "_Nominated | None":
        nominated = nominated_by_row(inputs)
        if not nominated:
            return None
        positions = np.flatnonzero(np.isin(rows, np.fromiter(nominated, np.intp)))
        if len(positions) == 0:
            return None
        return cls(positions, [nominated[row] for row in rows[positions].tolist()])


def nominated_by_row(inputs: TrialInputs) -> dict[int, Sequence[PodInfo]]:
    """By row, the pods nominated to the node that have equal or higher priority."""
    nominator, pod = inputs.nominator, inputs.pod
    nominated: dict[int, Sequence[PodInfo]] = {}
    for name in nominator.nominated_nodes():
        row = inputs.snapshot.row_of(name)
        if row is None:
            continue
        ahead = [
            other
            for other in nominator.nominated_pods_for_node(name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        if ahead:
            nominated[row] = ahead
    return nominated


def _no_victims(row: int) -> Sequence[PodInfo]:
    raise LookupError(f"row {row} is no candidate")
