"""Many nodes without some of their pods, for filters that read numbers only.

A filter that compares requested with allocatable amounts answers for hundreds of such nodes at
once. One that reads more of the pods declares it, and is called for one simulated node after the
other.

The pods that are removed and put back are in slots (`evictable`).

Invariant: the view gives the same numbers as a `SimulatedNode` with the same pods.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.index.nodes import Nodes, SnapshotNodes
from kubestow.plugins.default_preemption.evictable import (
    BASIC_COUNT,
    PodSlots,
    lower_scalar_sums,
)


class ReducedNodes(SnapshotNodes):
    """Nodes without the pods of lower priority, except those put back slot by slot."""

    __slots__ = (
        "_amounts",
        "_basic",
        "_nominated",
        "_pod_count",
        "_present",
        "_priority",
        "_row_numbers",
        "_scalars",
        "_slots",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        rows: IntpArray,
        priority: int,
        slots: PodSlots,
        *,
        present: BoolArray | None = None,
        nominated: Sequence[Sequence[PodInfo]] = (),
    ) -> None:
        """`nominated` are pods counted on each node in addition to its own."""
        super().__init__(snapshot, rows)
        self._row_numbers = rows
        self._priority = priority
        self._slots = slots
        # bool[slot, node]: the pods that are back; None while there are none.
        self._present = present
        self._nominated = nominated
        # int64[basic resource, node]
        self._basic: IntArray | None = None
        # Of extended resources, by column: int64[node], and int64[slot, node] of the pods in slots.
        self._scalars: dict[int, IntArray] = {}
        self._amounts: dict[int, IntArray] = {}
        self._pod_count: IntArray | None = None

    @property
    def unchanged(self) -> Nodes:
        """These nodes with all their pods."""
        return SnapshotNodes(self.snapshot, self.rows)

    # --- adding and removing pods ---

    def put_back(self, slot: int) -> None:
        """Put the pod of this slot back on every node that has one."""
        exists = self._slots.exists[slot]
        if self._present is None:
            self._present = np.zeros_like(self._slots.exists)
        self._present[slot] = exists
        if self._basic is not None:
            self._basic += self._slots.values[:BASIC_COUNT, slot]
        for column, requested in self._scalars.items():
            requested += self._amounts_of(column)[slot]
        if self._pod_count is not None:
            self._pod_count += exists

    def take_away(self, slot: int, mask: BoolArray) -> None:
        """Remove the pod of this slot again from the nodes of the mask."""
        assert self._present is not None
        self._present[slot] &= ~mask
        if self._basic is not None:
            self._basic -= self._slots.values[:BASIC_COUNT, slot] * mask
        for column, requested in self._scalars.items():
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
            self._slots.subset(positions),
            present=None if self._present is None else self._present[:, positions],
            nominated=nominated,
        )

    def subset(self, positions: IntpArray) -> "ReducedNodes":
        listed: list[int] = positions.tolist()
        nominated = [self._nominated[position] for position in listed] if self._nominated else ()
        return self.with_nominated(positions, nominated)

    # --- numbers ---

    @property
    def basic_requested(self) -> IntArray:
        basic = self._basic
        if basic is None:
            amounts = self._slots.values[:BASIC_COUNT]
            if self._present is not None:
                amounts = amounts * ~self._present
            basic = self._basic = super().basic_requested - amounts.sum(axis=1)
            for position, pods in enumerate(self._nominated):
                basic[:, position] += [
                    self._requested_by(pods, column) for column in range(BASIC_COUNT)
                ]
        return basic

    def few_with(self, column: int) -> list[tuple[int, int, int]] | None:
        return None  # The snapshot has the pods that are taken away.

    def requested(self, column: int) -> IntArray:
        if column < BASIC_COUNT:
            return self.basic_requested[column]
        requested = self._scalars.get(column)
        if requested is None:
            name = self._columns.resources.names[column]
            lower = lower_scalar_sums(self.unchanged, self._priority, name)
            requested = self._scalars[column] = super().requested(column) - lower
            if self._present is not None:
                requested += (self._amounts_of(column) * self._present).sum(axis=0)
            if self._nominated:
                requested += [self._requested_by(pods, column) for pods in self._nominated]
        return requested

    def _amounts_of(self, column: int) -> IntArray:
        """int64[slot, node]: what the pods in the slots request of an extended resource."""
        amounts = self._amounts.get(column)
        if amounts is None:
            name = self._columns.resources.names[column]
            amounts = self._amounts[column] = self._slots.scalar_amounts(name)
        return amounts

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
            away = self._slots.exists
            if self._present is not None:
                away = away & ~self._present
            pod_count = super().pod_count - np.count_nonzero(away, axis=0)
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
        self,
        key: Hashable,
        depends: Depends,
        compute: Callable[[Nodes], npt.NDArray[Any]],
        *,
        is_large: bool = False,
    ) -> npt.NDArray[Any]:
        if depends is Depends.NODE:
            return super().tracked(key, depends, compute, is_large=is_large)
        raise _undeclared("tracked with Depends.PODS")


def _undeclared(what: str) -> PluginError:
    return PluginError(f"a filter that declares Reads.NUMBERS read {what}; declare Reads.PODS")
