"""The pods a preemptor may evict from each node, in the order in which they are reprieved.

The pods of a node and their ranking change only when the node does, so each node is ranked once, at
first use, and its numbers are kept for preemptors of every priority: pods of lower priority than
the preemptor's are the end of the node's list by importance.

The pods of several nodes are in slots, one row per slot of all nodes:

    slot 0   a0 b0 c0      values[slot, value, node], 0 where a node has no pod in a slot
    slot 1   a1  - c1      exists[slot, node]

Not here: whether a pod can be reprieved (`one_node`, `many_nodes`).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.importance import by_importance, start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.cache.change_log import Depends
from kubestow.cache.resource_columns import BASIC_RESOURCES
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.attempt_timer import NO_TIMER
from kubestow.index.follow import Follower, Sources

# Indices of the values of a pod: first 1 for itself and its basic resources, which are what comes
# back to a node's pods and amounts (`reduced_nodes`) without it.
BACK: Final = 1 + len(BASIC_RESOURCES)
PRIORITY: Final = 4
START: Final = 5
VALUE_COUNT: Final = 6

NOT_STARTED: Final = 2**63 - 1
# In place of the time until which an order depends on the current time: it never does.
ALL_STARTED: Final = -2

# The slots of the first allocation.
_SLOTS_MIN: Final = 4
# Up to this many nodes, looking at one after the other is faster.
FEW: Final = 8


class RankedPods(Follower):
    """The pods of every node by importance: `snapshot.derived(RankedPods)`.

    Rows are ranked when they are asked about. Memory for the others is reserved, but not used.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.PODS)
        self._snapshot = snapshot
        self.rows_moved(None)

    def rows_moved(self, sources: Sources | None) -> None:
        row_count = len(self._snapshot)
        self._is_stale = np.ones(row_count, np.bool_)
        self._pods: list[tuple[PodInfo, ...]] = [()] * row_count
        self._counts = np.zeros(row_count, np.intp)
        self._until_ns = np.zeros(row_count, np.int64)
        # By row, of the last priority and table of budgets.
        self._splits: dict[int, _Arranged | None] = {}
        self._split_by: tuple[int, int] | None = None
        # int64[slot, value, row]
        self._values = np.zeros((_SLOTS_MIN, VALUE_COUNT, row_count), np.int64)

    def pods_changed(self, rows: Sequence[int]) -> None:
        self._is_stale[np.asarray(rows)] = True
        for row in rows:
            self._pods[row] = ()  # Pods that are gone are not kept in memory.
            self._splits.pop(row, None)

    def reprieved(
        self,
        rows: IntpArray,
        priority: int,
        budgets: BudgetTable | None,
        now_ns: int,
        pause: Callable[[], None] = NO_TIMER.pause,
    ) -> "PodSlots":
        """The pods of lower priority on these nodes, in the order in which they are reprieved.

        First those that would violate a budget, each part most important first. `budgets` None
        means that the cluster has none. `pause` is called between nodes.
        """
        slots = self.below(rows, priority)
        # A pod that has not started counts as started now; some pod starts later than that.
        is_late = self._until_ns[rows] >= now_ns
        late = frozenset[int](is_late.nonzero()[0].tolist())
        if budgets is None and not late:
            return slots
        listed: list[int] = rows.tolist()
        for position, row in enumerate(listed):
            pause()
            if position in late:
                on_node = self._snapshot.node_infos[row].pods
                lower = by_importance([pod for pod in on_node if pod.priority < priority], now_ns)
                arranged = _arranged(self._pods[row], lower, budgets)
            else:
                arranged = self._kept_split(row, priority, budgets)
            if arranged is not None:
                slots.arrange(position, arranged)
        return slots

    def _kept_split(
        self, row: int, priority: int, budgets: BudgetTable | None
    ) -> "_Arranged | None":
        """The pods of one node in the order of `reprieved`; None if they are by importance."""
        if budgets is None:
            return None
        # Only the number of the table is kept: the table is as large as the cluster.
        if self._split_by != (priority, budgets.number):
            self._splits.clear()
            self._split_by = priority, budgets.number
        try:
            return self._splits[row]
        except KeyError:
            ranked = self._pods[row]
            lower = [pod for pod in ranked if pod.priority < priority]
            split = self._splits[row] = _arranged(ranked, lower, budgets)
            return split

    def below(self, rows: IntpArray, priority: int) -> "PodSlots":
        """The pods of lower priority on these nodes, most important first.

        Those that have not started come after those of their priority that have.
        """
        self._bring_up_to_date(rows)
        width = int(self._counts[rows].max(initial=0))
        values = self._values[:width].take(rows, axis=2)
        is_pod = values[:, 0] != 0
        exists = (values[:, PRIORITY] < priority) & is_pod
        if np.count_nonzero(exists) != np.count_nonzero(is_pod):
            values *= exists[:, np.newaxis]
        return PodSlots(rows, self._pods, values, exists)

    def until_ns(self, rows: IntpArray) -> IntArray:
        """int64[row of these]: `unstarted_until_ns` of the pods on the node."""
        self._bring_up_to_date(rows)
        return self._until_ns[rows]

    def _bring_up_to_date(self, rows: IntpArray) -> None:
        self.catch_up()
        stale = rows[self._is_stale[rows]]
        if len(stale) > FEW:
            self._rank_together(stale)
        else:
            listed: list[int] = stale.tolist()
            for row in listed:
                self._rank(row)

    def _rank(self, row: int) -> None:
        pods = by_importance(self._snapshot.node_infos[row].pods, NOT_STARTED)
        self._reserve(len(pods))
        self._values[:, :, row] = 0
        self._values[: len(pods), :, row] = _values_of(pods)
        self._counts[row] = len(pods)
        starts = [start_time_ns(pod.pod, NOT_STARTED) for pod in pods]
        self._until_ns[row] = unstarted_until_ns(starts)
        self._pods[row] = tuple(pods)
        self._is_stale[row] = False

    def _rank_together(self, rows: IntpArray) -> None:
        infos = self._snapshot.node_infos
        listed: list[int] = rows.tolist()
        of_nodes = [infos[row].pods for row in listed]
        pods = [*chain.from_iterable(of_nodes)]
        counts = np.array([*map(len, of_nodes)], np.intp)
        ends = np.cumsum(counts)
        nodes = np.repeat(np.arange(len(rows)), counts)
        slots = np.arange(len(pods)) - (ends - counts)[nodes]
        values = _values_of(pods)
        # Equals stay in the order in which they are on the node (`by_importance`).
        ties = slots
        if pods and pods[0].reverses_unstarted:
            ties = np.where(values[:, START] == NOT_STARTED, -slots, slots)
        order: IntpArray = np.lexsort((ties, values[:, START], -values[:, PRIORITY], nodes))
        self._reserve(int(counts.max()))
        self._values[:, :, rows] = 0
        self._values[slots, :, rows[nodes]] = values[order]
        self._counts[rows] = counts
        self._until_ns[rows] = _unstarted_until(self._values[:, START, rows], counts)
        places: list[int] = order.tolist()
        pods = [pods[place] for place in places]
        first = 0
        for row, end in zip(listed, ends.tolist(), strict=True):
            self._pods[row] = tuple(pods[first:end])
            first = end
        self._is_stale[rows] = False

    def _reserve(self, width: int) -> None:
        """Make room for this many pods on each node."""
        old_width, _, row_count = self._values.shape
        if width > old_width:
            wider = np.zeros((max(width, 2 * old_width), VALUE_COUNT, row_count), np.int64)
            known = np.flatnonzero(self._counts)
            wider[:old_width, :, known] = self._values[:, :, known]
            self._values = wider


class PodSlots:
    """The evictable pods of some nodes, by slot.

    rows     intp[node]
    values   int64[slot, value, node]: 1 where there is a pod, cpu, memory, ephemeral storage,
             priority, start in nanoseconds or NOT_STARTED
    exists   bool[slot, node]; the slots of a node follow each other
    is_violating   bool[slot, node]: the pods that would violate a budget; None if there is none
    """

    __slots__ = ("_pods", "_ranked", "exists", "is_violating", "rows", "values")

    def __init__(
        self,
        rows: IntpArray,
        ranked: Sequence[Sequence[PodInfo]],
        values: IntArray,
        exists: BoolArray,
    ) -> None:
        """`ranked` are the pods of every row of the snapshot."""
        self.rows = rows
        self._ranked = ranked
        self._pods: list[Sequence[PodInfo]] | None = None
        self.values = values
        self.exists = exists
        self.is_violating: BoolArray | None = None

    def __len__(self) -> int:
        """How many slots there are."""
        return len(self.exists)

    @property
    def pods(self) -> list[Sequence[PodInfo]]:
        """Per node, the pods by slot; in slots that do not exist, those that may not be evicted."""
        if self._pods is None:
            self._pods = [self._ranked[row] for row in self.rows.tolist()]
        return self._pods

    def arrange(self, position: int, arranged: "_Arranged") -> None:
        """Put the pods of this node into its slots in another order."""
        pods, slots, violating_count = arranged
        first = len(pods) - len(slots)
        self.pods[position] = pods
        self.values[first : len(pods), :, position] = self.values[slots, :, position]
        if violating_count:
            if self.is_violating is None:
                self.is_violating = np.zeros_like(self.exists)
            self.is_violating[first : first + violating_count, position] = True

    def scalar_amounts(self, resource: str) -> IntArray:
        """int64[slot, node]: what the pods request of an extended resource."""
        amounts = np.zeros(self.exists.shape, np.int64)
        for position, pods in enumerate(self.pods):
            for slot, pod in enumerate(pods):
                amounts[slot, position] = pod.accounted.requested.scalar.get(resource, 0)
        return amounts * self.exists


class _Arranged(NamedTuple):
    """The pods of one node: those of lower priority are the last, and not by importance.

    slots             intp[lower pod]: where they are by importance
    violating_count   how many of them, the first ones, would violate a budget
    """

    pods: Sequence[PodInfo]
    slots: IntpArray
    violating_count: int


def _arranged(
    ranked: Sequence[PodInfo], lower: Sequence[PodInfo], budgets: BudgetTable | None
) -> _Arranged | None:
    """The ranked pods with the lower ones in this order, but those that would violate a budget
    first; None if that changes nothing."""
    violating_count = 0
    if budgets is not None:
        split = budgets.split(lower)
        violating_count = len(split.violating)
        lower = [*split.violating, *split.non_violating]
    higher = ranked[: len(ranked) - len(lower)]
    pods = (*higher, *lower)
    if not violating_count and pods == ranked:
        return None
    slot_of = {pod.uid: slot for slot, pod in enumerate(ranked)}
    return _Arranged(pods, np.array([slot_of[pod.uid] for pod in lower], np.intp), violating_count)


def unstarted_until_ns(starts: Sequence[int]) -> int:
    """Until when the order of pods with these starts depends on the current time.

    A pod that has not started counts as started now, and some pod may have a later start time.
    ALL_STARTED if each of them has a start; else the last of them, -1 if there is none.
    """
    if NOT_STARTED not in starts:
        return ALL_STARTED
    return max([start for start in starts if start != NOT_STARTED], default=-1)


def _values_of(pods: Iterable[PodInfo]) -> IntArray:
    """int64[pod, value]"""
    values = [
        (
            1,
            requested.milli_cpu,
            requested.memory,
            requested.ephemeral_storage,
            pod.priority,
            start_time_ns(pod.pod, NOT_STARTED),
        )
        for pod in pods
        for requested in (pod.accounted.requested,)
    ]
    return np.array(values, np.int64).reshape(-1, VALUE_COUNT)


def _unstarted_until(starts: IntArray, counts: IntpArray) -> IntArray:
    """int64[node]: `unstarted_until_ns` of starts[slot, node], of which the first ones count."""
    exists = np.arange(len(starts))[:, np.newaxis] < counts
    has_unstarted = np.logical_or.reduce(exists & (starts == NOT_STARTED), axis=0)
    latest = np.where(exists & (starts != NOT_STARTED), starts, -1).max(axis=0)
    return np.where(has_unstarted, latest, ALL_STARTED)
