"""Many nodes without some of their pods, for filters that read numbers only.

A filter that compares requested with allocatable amounts answers for hundreds of such nodes at
once. One that reads more of the pods declares it, and is called for one simulated node after the
other.

The pods that are removed and put back are in slots, one row per slot of all nodes:

    slot 0   a0 b0 c0      values[value, slot, node], 0 where a node has no pod in a slot
    slot 1   a1  - c1      exists[slot, node]

Invariant: the view gives the same numbers as a `SimulatedNode` with the same pods.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.resource_columns import BASIC_RESOURCES
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.index.nodes import Nodes, SnapshotNodes
from kubestow.plugins.default_preemption.evictable import (
    VALUE_COUNT,
    Evictable,
    lower_scalar_sums,
    lower_sums,
)

BASIC_COUNT: Final = len(BASIC_RESOURCES)


class PodSlots:
    """The evictable pods of some nodes, by slot."""

    __slots__ = ("exists", "of_nodes", "values")

    def __init__(self, of_nodes: Sequence[Evictable], values: IntArray, exists: BoolArray) -> None:
        self.of_nodes = of_nodes
        self.values = values
        self.exists = exists

    @classmethod
    def of(cls, of_nodes: Sequence[Evictable]) -> "PodSlots":
        """There must be at least one node, and a pod on each."""
        node_count = len(of_nodes)
        counts = np.array([len(evictable.pods) for evictable in of_nodes], np.intp)
        # int64[pod, value], the pods of the first node first.
        listed = np.array(
            [values for evictable in of_nodes for values in evictable.values], np.int64
        )
        width = int(counts.max())
        if len(listed) == width * node_count:
            by_node = listed.reshape(node_count, width, VALUE_COUNT)
        else:
            by_node = np.zeros((node_count, width, VALUE_COUNT), np.int64)
            firsts = np.cumsum(counts) - counts
            slots = np.arange(len(listed)) - np.repeat(firsts, counts)
            by_node[np.repeat(np.arange(node_count), counts), slots] = listed
        return cls(
            of_nodes,
            np.ascontiguousarray(by_node.transpose(2, 1, 0)),
            np.arange(width)[:, np.newaxis] < counts,
        )

    def subset(self, positions: IntpArray) -> "PodSlots":
        listed: list[int] = positions.tolist()
        return PodSlots(
            [self.of_nodes[position] for position in listed],
            self.values[:, :, positions],
            self.exists[:, positions],
        )

    def is_violating(self) -> BoolArray | None:
        """bool[slot, node]: the pods that would violate a budget; None if there is none."""
        counts = [evictable.violating_count for evictable in self.of_nodes]
        return np.arange(len(self))[:, np.newaxis] < counts if any(counts) else None

    def __len__(self) -> int:
        """How many slots there are."""
        return len(self.exists)

    def amounts(self, column: int, resource: str) -> IntArray:
        """int64[slot, node]: what the pods request of one resource."""
        if column < BASIC_COUNT:
            return self.values[column]
        amounts = np.zeros(self.exists.shape, np.int64)
        for position, evictable in enumerate(self.of_nodes):
            for slot, pod in enumerate(evictable.pods):
                amounts[slot, position] = pod.accounted.requested.scalar.get(resource, 0)
        return amounts


class ReducedNodes(SnapshotNodes):
    """Nodes without the pods of lower priority, except those put back slot by slot."""

    __slots__ = (
        "_amounts",
        "_nominated",
        "_pod_count",
        "_present",
        "_priority",
        "_requested",
        "_row_numbers",
        "_slots",
        "_sums",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        rows: IntpArray,
        priority: int,
        slots: PodSlots | None = None,
        *,
        present: BoolArray | None = None,
        nominated: Sequence[Sequence[PodInfo]] = (),
    ) -> None:
        """Pods can be put back only where there are slots.

        `nominated` are pods counted on each node in addition to its own.
        """
        super().__init__(snapshot, rows)
        self._row_numbers = rows
        self._priority = priority
        self._slots = slots
        # bool[slot, node]: the pods that are back.
        if present is None and slots is not None:
            present = np.zeros_like(slots.exists)
        self._present = present
        self._nominated = nominated
        self._sums: IntArray | None = None
        self._amounts: dict[int, IntArray] = {}
        self._requested: dict[int, IntArray] = {}
        self._pod_count: IntArray | None = None

    @property
    def unchanged(self) -> Nodes:
        """The same nodes with all their pods."""
        return SnapshotNodes(self.snapshot, self.rows)

    # --- adding and removing pods ---

    def put_back(self, slot: int) -> None:
        """Put the pod of this slot back on every node that has one."""
        assert self._slots is not None
        assert self._present is not None
        exists = self._slots.exists[slot]
        self._present[slot] = exists
        for column, requested in self._requested.items():
            requested += self._amounts_of(column)[slot]
        if self._pod_count is not None:
            self._pod_count += exists

    def take_away(self, slot: int, mask: BoolArray) -> None:
        """Remove the pod of this slot again from the nodes of the mask."""
        assert self._present is not None
        self._present[slot] &= ~mask
        for column, requested in self._requested.items():
            requested -= self._amounts_of(column)[slot] * mask
        if self._pod_count is not None:
            self._pod_count -= mask

    def slots_back(self, position: int) -> list[int]:
        """The slots of the pods that are back on the node at this position."""
        return [] if self._present is None else np.flatnonzero(self._present[:, position]).tolist()

    def with_nominated(
        self, positions: IntpArray, nominated: Sequence[Sequence[PodInfo]]
    ) -> "ReducedNodes":
        """The nodes at these positions in their current state, each with additional pods."""
        return ReducedNodes(
            self.snapshot,
            self._row_numbers[positions],
            self._priority,
            None if self._slots is None else self._slots.subset(positions),
            present=None if self._present is None else self._present[:, positions],
            nominated=nominated,
        )

    def subset(self, positions: IntpArray) -> "ReducedNodes":
        listed: list[int] = positions.tolist()
        nominated = [self._nominated[position] for position in listed] if self._nominated else ()
        return self.with_nominated(positions, nominated)

    def _amounts_of(self, column: int) -> IntArray:
        """int64[slot, node]: what the pods in the slots request of one resource."""
        amounts = self._amounts.get(column)
        if amounts is None:
            assert self._slots is not None
            name = self._columns.resources.names[column]
            amounts = self._amounts[column] = self._slots.amounts(column, name)
        return amounts

    # --- numbers ---

    @property
    def basic_requested(self) -> IntArray:
        return np.stack([self.requested(column) for column in range(BASIC_COUNT)])

    def requested(self, column: int) -> IntArray:
        requested = self._requested.get(column)
        if requested is None:
            requested = self._requested[column] = self._count_requested(column)
        return requested

    def _count_requested(self, column: int) -> IntArray:
        requested = super().requested(column)
        if column < BASIC_COUNT:
            requested = requested - self._lower_sums()[column + 1]
        else:
            name = self._columns.resources.names[column]
            requested = requested - lower_scalar_sums(self.unchanged, self._priority, name)
        if self._present is not None and self._present.any():
            requested += (self._amounts_of(column) * self._present).sum(axis=0)
        if self._nominated:
            requested += [self._requested_by(pods, column) for pods in self._nominated]
        return requested

    def _lower_sums(self) -> IntArray:
        if self._sums is None:
            self._sums = lower_sums(self.unchanged, self._priority)
        return self._sums

    def _requested_by(self, pods: Sequence[PodInfo], column: int) -> int:
        requests = [pod.accounted.requested for pod in pods]
        match column:
            case 0:
                return sum(request.milli_cpu for request in requests)
            case 1:
                return sum(request.memory for request in requests)
            case 2:
                return sum(request.ephemeral_storage for request in requests)
            case _:
                name = self._columns.resources.names[column]
                return sum(request.scalar.get(name, 0) for request in requests)

    @property
    def pod_count(self) -> IntArray:
        pod_count = self._pod_count
        if pod_count is None:
            pod_count = super().pod_count - self._lower_sums()[0]
            if self._present is not None:
                pod_count += np.count_nonzero(self._present, axis=0)
            if self._nominated:
                pod_count += [len(pods) for pods in self._nominated]
            self._pod_count = pod_count
        return pod_count

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
        self, key: Hashable, depends: Depends, compute: Callable[[Nodes], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        if depends is Depends.NODE:
            return super().tracked(key, depends, compute)
        raise _undeclared("tracked with Depends.PODS")


def _undeclared(what: str) -> PluginError:
    return PluginError(f"a filter that declares Reads.NUMBERS read {what}; declare Reads.PODS")
