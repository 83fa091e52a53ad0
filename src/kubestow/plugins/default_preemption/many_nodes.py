"""The victims on many nodes at once (spec 08 A6, A11 hints).

The same trial as in `one_node`, in step on all nodes: all less important pods are removed, then the
first pod of every node is put back, then the second, and so on. Where a filter can say what a node
must have left, each step is arithmetic on all nodes together (`reduced_nodes`). Filters that read
pods are called node by node (`filter_runner`).
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.importance import by_importance
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import (
    BoolArray,
    IntArray,
    IntpArray,
    Rows,
    row_count,
    row_numbers,
    rows_at,
    rows_between,
)
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Needs, Reads
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
    BACK,
    NOT_STARTED,
    PRIORITY,
    START,
    PodSlots,
    RankedPods,
)
from kubestow.plugins.default_preemption.filter_runner import FilterFault, FilterRunner, TrialNode
from kubestow.plugins.default_preemption.filters import TrialFilter
from kubestow.plugins.default_preemption.one_node import OneNode, no_victim_needed
from kubestow.plugins.default_preemption.reduced_nodes import (
    LOWER,
    PODS,
    FreedByPriority,
    ReducedNodes,
    amounts_of,
)

LOWEST: Final = np.iinfo(np.int64).min

# Instead of the number of a status: the node has no pods to evict, or too little is left without
# them. What is lacking is found out where it is asked for.
_LACKING: Final = np.iinfo(np.int64).max

# How many nodes more than last time are tried together.
_MARGIN: Final = 32


class ManyNodes:
    """Tries hundreds of nodes together. Only for the default rules on victims."""

    def __init__(self, inputs: TrialInputs, statuses: StatusCodes | None = None) -> None:
        self._inputs = inputs
        self.statuses = StatusCodes() if statuses is None else statuses
        self._runner = FilterRunner(inputs, self.statuses)
        counted, needs = _counted_filter(inputs)
        # The other filters, and those of them that read pods.
        self._others = [each for each in inputs.filters if each is not counted]
        self._by_node = [each for each in self._others if each.reads is not Reads.NODE]
        self._scalars = () if needs is None else tuple([name for name, _ in needs.scalars])
        self._least = amounts_of(needs)
        freed = inputs.snapshot.derived(FreedByPriority)
        self._freed = freed.of(inputs.pod.priority, self._scalars)
        self._nominated = nominated_by_row(inputs)

    def evaluate(self, rows: Rows, missing: int | None) -> TrialResults:
        try:
            return self._try(rows, missing)
        except FilterFault:
            # A filter failed for all nodes together. One by one shows which node it fails on.
            return OneNode(self._inputs, self.statuses).evaluate(rows, missing)

    def _try(self, rows: Rows, missing: int | None) -> TrialResults:
        codes = self._screen(rows, missing)
        fitting = (codes == 0).nonzero()[0]
        if missing is not None and len(fitting) >= missing:
            # The others are most likely not needed. If they are, they are tried again.
            fitting = fitting[:missing]
            codes = codes[: fitting[-1] + 1]
            self._freed.reach = len(codes)

        def name_codes() -> None:
            lacking = (codes == _LACKING).nonzero()[0]
            if len(lacking):
                codes[lacking] = self._why_lacking(rows_at(rows, lacking))

        if len(fitting) == 0:
            ranks: IntArray = np.zeros((CRITERIA, 0), np.int64)
            return TrialResults(codes, fitting, fitting, ranks, _no_victims, name_codes)
        victims = self._reprieve(rows_at(rows, fitting))
        ranks = victims.ranks()
        has_victims = np.logical_or.reduce(victims.mask)
        if np.count_nonzero(has_victims) != len(fitting):
            ranks = ranks[:, has_victims]
            for position in fitting[~has_victims].tolist():
                row = int(row_numbers(rows)[position])
                status = no_victim_needed(self._inputs.snapshot.names[row])
                codes[position] = self.statuses.code_of(status)
            fitting = fitting[has_victims]
        return TrialResults(
            codes,
            fitting,
            rows_at(rows, fitting),
            ranks,
            victims.without_values().of_row,
            name_codes,
        )

    # --- which nodes the pod fits on without the pods of lower priority ---

    def _screen(self, rows: Rows, missing: int | None) -> IntArray:
        """int64[node]: 0 for those of the first nodes that the pod fits on without the pods of
        lower priority. As many nodes as are needed for `missing` to fit, if there are."""
        count = row_count(rows)
        if missing is None:
            return self._screen_together(rows)
        if self._by_node:  # It takes long for each node, so none is tried in advance.
            return self._screen_together(rows_between(rows, 0, min(missing, count)))
        parts: list[IntArray] = []
        end, size, found = 0, max(2 * missing, self._freed.reach + _MARGIN), 0
        while end < count and found < missing:
            part = rows_between(rows, end, min(end + size, count))
            parts.append(self._screen_together(part))
            found += len(parts[-1]) - int(np.count_nonzero(parts[-1]))
            end += size
            size *= 2
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _screen_together(self, rows: Rows) -> IntArray:
        left = self._freed.left(rows)
        fits = np.logical_and.reduce(left >= self._least)
        nominated = _Nominated.of(self._nominated, rows)
        if nominated is not None:
            without = left[PODS:, nominated.positions] - nominated.amounts(self._scalars)
            fits[nominated.positions] &= np.logical_and.reduce(without >= self._least[PODS:])
        codes = ~fits * np.int64(_LACKING)
        if self._others:
            positions = fits.nonzero()[0]
            codes[positions] = self._first_failures(self._others, rows_at(rows, positions))
        return codes

    def _why_lacking(self, rows: IntpArray) -> IntArray:
        """int64[node]: the numbers of the statuses of nodes that lack something."""
        has_lower = self._freed.left(rows)[LOWER] > 0
        codes = np.full(len(rows), self.statuses.code_of(NO_VICTIMS), np.int64)
        try:
            codes[has_lower] = self._first_failures(self._inputs.filters, rows[has_lower])
        except FilterFault:
            codes = OneNode(self._inputs, self.statuses).evaluate(rows, None).codes
        return codes

    def _first_failures(self, filters: Sequence[TrialFilter], rows: IntpArray) -> IntArray:
        """int64[node]: the first of these filters that fails without the pods of lower priority."""
        inputs, runner = self._inputs, self._runner
        nodes = _TrialNodes(inputs, rows)
        view = ReducedNodes(inputs.snapshot, rows, inputs.pod.priority)
        failures = runner.first_failures(filters, view, nodes.at)
        nominated = _Nominated.of(self._nominated, rows)
        if nominated is not None:
            positions, pods = nominated
            view = ReducedNodes(inputs.snapshot, rows[positions], inputs.pod.priority, pods)
            found = runner.first_failures(
                filters,
                view,
                lambda index: nodes.with_pods(int(positions[index]), pods[index]),
            )
            # The run with nominated pods comes first upstream, so its failure is reported.
            failures[positions[found != 0]] = found[found != 0]
        return failures

    # --- which pods can stay ---

    def _reprieve(self, rows: IntpArray) -> "_Victims":
        """Put pods back where the preemptor still fits; the others are victims."""
        inputs, runner, by_node = self._inputs, self._runner, self._by_node
        ranked, pause = inputs.snapshot.derived(RankedPods), inputs.state.timer.pause
        slots = ranked.reprieved(rows, inputs.pod.priority, inputs.budgets, inputs.now_ns, pause)
        nominated = _Nominated.of(self._nominated, rows)
        left, least = self._freed.left(rows)[PODS:], self._least[PODS:]
        back = slots.values[:, :BACK]
        if self._scalars:
            amounts = [slots.scalar_amounts(name) for name in self._scalars]
            back = np.concatenate((back, np.stack(amounts, axis=1)), axis=1)
        if nominated is not None:
            # Once without the nominated pods, and once with them.
            counted = left.copy()
            counted[:, nominated.positions] -= nominated.amounts(self._scalars)
            left, least = np.concatenate((left, counted)), np.concatenate((least, least))
            back = np.concatenate((back, back), axis=1)
        nodes = _TrialNodes(inputs, rows) if by_node else None
        victims = np.zeros_like(slots.exists)
        used: list[int] = np.logical_or.reduce(slots.exists, axis=1).nonzero()[0].tolist()
        for slot in used:
            pause()
            left_with = left - back[slot]
            fits = np.logical_and.reduce(left_with >= least)
            if nodes is not None:
                listed: list[int] = (slots.exists[slot] & fits).nonzero()[0].tolist()
                for position in listed:
                    ahead = () if nominated is None else nominated.pods_at(position)
                    pod = slots.pods[position][slot]
                    fits[position] = nodes.take_back(position, pod, ahead, runner, by_node)
            np.copyto(left, left_with, where=fits)
            np.greater(slots.exists[slot], fits, out=victims[slot])
        return _Victims(rows, slots, victims, inputs.now_ns)


class _Victims(NamedTuple):
    """mask   bool[slot, node]: the pods that cannot be reprieved."""

    rows: IntpArray
    slots: PodSlots
    mask: BoolArray
    now_ns: int

    def without_values(self) -> "_VictimPods":
        """Only what is kept: the numbers of all pods would take most of the memory of a record."""
        places: dict[int, int] = {row: place for place, row in enumerate(self.rows.tolist())}
        slots, are_mixed = self.slots, None
        if slots.is_violating is not None:
            are_mixed = np.logical_or.reduce(slots.is_violating)
            are_mixed &= np.logical_or.reduce(slots.exists & ~slots.is_violating)
        return _VictimPods(places, self.slots.pods, are_mixed, self.mask, self.now_ns)

    def ranks(self) -> IntArray:
        """int64[criterion, node], as `Candidate.ranks` has them."""
        mask, slots = self.mask, self.slots
        priorities, starts = slots.values[:, PRIORITY], slots.values[:, START]
        ranks = np.zeros((CRITERIA, len(self.rows)), np.int64)
        is_violating = slots.is_violating
        if is_violating is None:
            # Pods are in order of importance, so the first victim has the highest priority.
            firsts, nodes = mask.argmax(axis=0), np.arange(len(self.rows))
            highest, earliest = priorities[firsts, nodes], starts[firsts, nodes]
            earliest[earliest == NOT_STARTED] = self.now_ns
        else:
            starts = np.where(starts == NOT_STARTED, self.now_ns, starts)
            ranks[VIOLATIONS] = np.count_nonzero(mask & is_violating, axis=0)
            highest = np.where(mask, priorities, LOWEST).max(axis=0)
            is_highest = mask & (priorities == highest)
            earliest = np.where(is_highest, starts, NOT_STARTED).min(axis=0)
        ranks[HIGHEST_PRIORITY] = highest
        ranks[VICTIM_COUNT] = np.add.reduce(mask)
        ranks[PRIORITY_SUM] = np.add.reduce(priorities * mask)
        ranks[PRIORITY_SUM] += PRIORITY_SHIFT * ranks[VICTIM_COUNT]
        ranks[YOUNGEST] = -earliest
        return ranks


class _VictimPods(NamedTuple):
    """places      by row, the position in the others
    pods        per node, by slot
    are_mixed   bool[node]: some pods would violate a budget, and some would not; None if no pod
                would on any node
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


class _TrialNodes:
    """Single nodes without their less important pods, made when a filter needs them."""

    def __init__(self, inputs: TrialInputs, rows: IntpArray) -> None:
        self._inputs = inputs
        self._rows = rows
        self._made: dict[int, TrialNode] = {}

    def at(self, position: int) -> TrialNode:
        """The node at this position of the rows."""
        made = self._made.get(position)
        if made is None:
            inputs = self._inputs
            node = SimulatedNode(inputs.snapshot, int(self._rows[position]))
            made = self._made[position] = TrialNode(node, inputs.state.clone())
            priority = inputs.pod.priority
            for pod in [pod for pod in node.info.pods if pod.priority < priority]:
                self._remove(made, pod)
        return made

    def with_pods(self, position: int, pods: Sequence[PodInfo]) -> TrialNode:
        """A copy of the node with more pods on it."""
        plain = self.at(position)
        copy = TrialNode(plain.node.clone(), plain.state.clone())
        for pod in pods:
            self._add(copy, pod)
        return copy

    def take_back(
        self,
        position: int,
        pod: PodInfo,
        nominated: Sequence[PodInfo],
        runner: FilterRunner,
        filters: Sequence[TrialFilter],
    ) -> bool:
        """Put the pod back on the node if these filters still pass it; return whether they do."""
        trial_node = self.at(position)
        self._add(trial_node, pod)
        fails = runner.fails_on(filters, trial_node)
        if not fails and nominated:
            fails = runner.fails_on(filters, self.with_pods(position, nominated))
        if fails:
            self._remove(trial_node, pod)
        return not fails

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
    def of(cls, by_row: dict[int, Sequence[PodInfo]], rows: Rows) -> "_Nominated | None":
        """The nominated pods of these rows; None if there are none."""
        if not by_row:
            return None
        numbers = row_numbers(rows)
        positions = np.flatnonzero(np.isin(numbers, np.fromiter(by_row, np.intp)))
        if len(positions) == 0:
            return None
        return cls(positions, [by_row[row] for row in numbers[positions].tolist()])

    def pods_at(self, position: int) -> Sequence[PodInfo]:
        found = (self.positions == position).nonzero()[0]
        return self.pods[int(found[0])] if len(found) else ()

    def amounts(self, scalars: Sequence[str]) -> IntArray:
        """int64[column, node of these]: how many pods, and what they request of the resources."""
        requested = [[pod.accounted.requested for pod in pods] for pods in self.pods]
        table = [
            (
                len(resources),
                sum(each.milli_cpu for each in resources),
                sum(each.memory for each in resources),
                sum(each.ephemeral_storage for each in resources),
                *[sum(each.scalar.get(name, 0) for each in resources) for name in scalars],
            )
            for resources in requested
        ]
        return np.array(table, np.int64).T


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


def _counted_filter(inputs: TrialInputs) -> tuple[TrialFilter | None, Needs | None]:
    """The filter that compares what nodes have left, and what it asks of them."""
    for each in inputs.filters:
        rule = each.step.rule
        if each.reads is Reads.NUMBERS and rule is not None:
            needs = rule(inputs.state, inputs.pod).needs()
            if needs is not None:
                return each, needs
    return None, None


def _no_victims(row: int) -> Sequence[PodInfo]:
    raise LookupError(f"row {row} is no candidate")
