"""Nodes without their pods of lower priority.

Whether a preemptor fits then, and which pods can be put back, is arithmetic on what these nodes
have left (`many_nodes`). It depends on the priority of the preemptor, not on what it requests.

    column   LOWER                    PODS               AMOUNTS: cpu, memory, …
             pods of lower priority   places for pods    what is left of each resource

A filter that reads these numbers in another way gets a view of the nodes. One that reads more of
the pods is called for one simulated node after the other.

Invariant: the numbers are those of a `SimulatedNode` with the same pods.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import wrap_int64
from kubestow.arrays import BoolArray, IntArray, IntpArray, Rows, rows_at
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.resource_columns import BASIC_RESOURCES
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.reuse import Needs
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes, SnapshotNodes, nodes_of
from kubestow.plugins.default_preemption.evictable import BACK, FEW, RankedPods

LOWER: Final = 0
PODS: Final = 1
AMOUNTS: Final = 2
SCALARS: Final = AMOUNTS + len(BASIC_RESOURCES)

# For how many pairs of a priority and some extended resources numbers are kept.
_FREED_MAX: Final = 32

# No node has less.
_ANY: Final = np.iinfo(np.int64).min


class FreedByPriority:
    """By priority and extended resources: `snapshot.derived(FreedByPriority)`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._kept: OrderedDict[tuple[int, tuple[str, ...]], Freed] = OrderedDict()

    def of(self, priority: int, scalars: tuple[str, ...]) -> "Freed":
        """For preemptors of this priority, with these resources besides the basic ones."""
        key = priority, scalars
        freed = self._kept.get(key)
        if freed is None:
            freed = self._kept[key] = Freed(self._snapshot, priority, scalars)
            if len(self._kept) > _FREED_MAX:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
            freed.catch_up()
        return freed


class Freed(Follower):
    """What nodes would have left for pods of one priority. Rows are read when they are asked about.

    reach   how far the last search went
    """

    def __init__(self, snapshot: Snapshot, priority: int, scalars: tuple[str, ...]) -> None:
        super().__init__(snapshot.log, Depends.PODS)
        self._snapshot = snapshot
        self._priority = priority
        self._scalars = scalars
        self.reach = 0
        self.rows_moved(None)

    def rows_moved(self, sources: Sources | None) -> None:
        row_count = len(self._snapshot)
        self._is_stale: BoolArray = np.ones(row_count, np.bool_)
        # int64[column, row]
        self._left: IntArray = np.zeros((SCALARS + len(self._scalars), row_count), np.int64)

    def pods_changed(self, rows: Sequence[int]) -> None:
        self._is_stale[np.asarray(rows)] = True

    def left(self, rows: Rows) -> IntArray:
        """int64[column, row of these], as of the last `FreedByPriority.of`. Read-only."""
        is_stale = self._is_stale[rows]
        if np.count_nonzero(is_stale):
            stale = rows_at(rows, is_stale.nonzero()[0])
            self._left[:, stale] = self._computed(stale)
            self._is_stale[stale] = False
        return self._left[:, rows] if isinstance(rows, slice) else self._left.take(rows, axis=1)

    def _computed(self, rows: IntpArray) -> IntArray:
        nodes = nodes_of(self._snapshot, rows)
        infos = nodes.infos()
        if len(rows) > FEW:
            # Most of them will be tried, and ranking them is most of the work of both.
            ranked = self._snapshot.derived(RankedPods).below(rows, self._priority)
            lower = ranked.values[:, :BACK].sum(axis=0)
        else:
            lower = np.array([self._of_lower(info.pods) for info in infos], np.int64).T
        left: IntArray = np.empty((len(self._left), len(rows)), np.int64)
        left[LOWER] = lower[0]
        left[PODS] = nodes.allowed_pods - nodes.pod_count
        left[AMOUNTS:SCALARS] = nodes.basic_allocatable - nodes.basic_requested
        left[PODS:SCALARS] += lower
        for column, name in enumerate(self._scalars, SCALARS):
            left[column] = [self._left_of(name, info) for info in infos]
        return left

    def _of_lower(self, pods: Iterable[PodInfo]) -> list[int]:
        """How many of these pods have a lower priority, and what they request."""
        count = cpu = memory = storage = 0
        for pod in pods:
            if pod.priority < self._priority:
                requested = pod.accounted.requested
                count += 1
                cpu += requested.milli_cpu
                memory += requested.memory
                storage += requested.ephemeral_storage
        # Sums wrap, as those of `NodeInfo` do.
        return [count, wrap_int64(cpu), wrap_int64(memory), wrap_int64(storage)]

    def _left_of(self, name: str, info: NodeInfo) -> int:
        left = info.allocatable.scalar.get(name, 0) - info.requested.scalar.get(name, 0)
        for pod in info.pods:
            if pod.priority < self._priority:
                left += pod.accounted.requested.scalar.get(name, 0)
        return wrap_int64(left)


def amounts_of(needs: Needs | None) -> IntArray:
    """int64[column, 1]: the least that a node must have left; at least one pod to evict."""
    if needs is None:
        least = [1, *[_ANY] * (SCALARS - PODS)]
    else:
        basic = [_ANY if amount is None else amount for amount in needs.amounts]
        least = [1, 1, *basic, *[amount for _, amount in needs.scalars]]
    return np.array(least, np.int64)[:, np.newaxis]


class ReducedNodes(SnapshotNodes):
    """Nodes without the pods of lower priority."""

    __slots__ = ("_nominated", "_priority", "_row_numbers")

    def __init__(
        self,
        snapshot: Snapshot,
        rows: IntpArray,
        priority: int,
        nominated: Sequence[Sequence[PodInfo]] = (),
    ) -> None:
        """`nominated` are pods counted on each node in addition to its own."""
        super().__init__(snapshot, rows)
        self._row_numbers = rows
        self._priority = priority
        self._nominated = nominated

    @property
    def unchanged(self) -> Nodes:
        """These nodes with all their pods."""
        return SnapshotNodes(self.snapshot, self.rows)

    def subset(self, positions: IntpArray) -> "ReducedNodes":
        listed: list[int] = positions.tolist()
        nominated = [self._nominated[position] for position in listed] if self._nominated else ()
        rows = self._row_numbers[positions]
        return ReducedNodes(self.snapshot, rows, self._priority, nominated)

    # --- numbers ---

    @property
    def basic_requested(self) -> IntArray:
        requested = self.basic_allocatable - self._left()[AMOUNTS:SCALARS]
        for position, pods in enumerate(self._nominated):
            for pod in pods:
                requested[:, position] += basic_amounts(pod)
        return requested

    def few_with(self, column: int) -> list[tuple[int, int, int]] | None:
        return None  # The snapshot has the pods that are taken away.

    def requested(self, column: int) -> IntArray:
        if column < len(BASIC_RESOURCES):
            return self.basic_requested[column]
        name = self._columns.resources.names[column]
        requested = self.allocatable(column) - self._left(name)[SCALARS]
        if self._nominated:
            requested += [
                sum(pod.accounted.requested.scalar.get(name, 0) for pod in pods)
                for pods in self._nominated
            ]
        return requested

    @property
    def pod_count(self) -> IntArray:
        count = self.allowed_pods - self._left()[PODS]
        if self._nominated:
            count += [len(pods) for pods in self._nominated]
        return count

    def _left(self, *scalars: str) -> IntArray:
        freed = self.snapshot.derived(FreedByPriority)
        return freed.of(self._priority, scalars).left(self._row_numbers)

    # --- not available in this view ---

    def non_zero_requested(self, column: int) -> IntArray:
        raise _undeclared("non_zero_requested")

    @property
    def non_zero(self) -> IntArray:
        raise _undeclared("non_zero")

    def infos(self) -> list[NodeInfo]:
        raise _undeclared("infos")

    @property
    def has_affinity(self) -> BoolArray:
        raise _undeclared("has_affinity")

    @property
    def has_required_anti_affinity(self) -> BoolArray:
        raise _undeclared("has_required_anti_affinity")

    def tracked(
        self,
        key: Hashable,
        depends: Depends,
        compute: Callable[[Nodes], npt.NDArray[Any]],
        *,
        is_large: bool = False,
    ) -> npt.NDArray[Any]:
        if depends is Depends.NODE:
            return super().tracked(key, depends, compute, is_large=is_large)
        raise _undeclared("tracked with more than Depends.NODE")


def _undeclared(what: str) -> PluginError:
    return PluginError(f"a filter that declares Reads.NUMBERS read {what}; declare Reads.PODS")


def basic_amounts(pod: PodInfo) -> list[int]:
    """What a pod requests of each basic resource."""
    requested = pod.accounted.requested
    return [requested.milli_cpu, requested.memory, requested.ephemeral_storage]
