"""The resources a score is configured with, and how much of each the nodes have (spec 05 §8.4).

Not here: what a load is worth (the plugins), how a pod's request adds up (`api.requests`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.meta import ResourceList
from kubestow.api.requests import request_value
from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from kubestow.arrays import IntArray
from kubestow.cache import columns
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.nodes import Nodes
from kubestow.config.plugin_args import CPU_AND_MEMORY, ResourceSpec
from kubestow.plugins._shared.devices.counts import DeviceCounts
from kubestow.plugins._shared.node_amounts import amounts_reader


class Capacity(NamedTuple):
    """One resource over the nodes.

    allocatable   int64[node], 0 where the node lacks the resource and it does not count
    used          int64[node], what the pods there take of it
    """

    allocatable: IntArray
    used: IntArray


class Load(NamedTuple):
    """One resource that counts for a pod: what it asks for, where, and how much that weighs."""

    capacity: Capacity
    request: int
    weight: int

    def at(self, positions: npt.NDArray[np.intp]) -> "Load":
        """The same for some of the nodes."""
        allocatable, used = self.capacity
        return self._replace(capacity=Capacity(allocatable[positions], used[positions]))


# One resource that counts on one node: allocatable, used, the pod's request and its weight.
NodeLoad = tuple[int, int, int, int]


class ScoringResources:
    """The configured resources in their order; without any, cpu and memory alike.

    `use_non_zero`: pods on the nodes that do not say what they need of cpu and memory count as if
    they asked for the defaults. `devices` count where a node publishes none of a resource that
    devices serve; None if they serve none.
    """

    def __init__(
        self,
        specs: Sequence[ResourceSpec],
        *,
        use_non_zero: bool,
        devices: DeviceCounts | None = None,
    ) -> None:
        self._devices = devices
        self._specs = tuple((spec.name, spec.weight or 1) for spec in specs or CPU_AND_MEMORY)
        self._use_non_zero = use_non_zero

    def requests(self, total: ResourceList) -> tuple[int, ...]:
        """What a pod with this total asks for of each resource."""
        return tuple(request_value(name, total) for name, _ in self._specs)

    def loads(self, nodes: Nodes, requests: Sequence[int]) -> list[Load]:
        """The resources that count on some node, given a pod's requests."""
        loads: list[Load] = []
        for (name, weight), request in zip(self._specs, requests, strict=True):
            # A pod that asks no GPU is not sent towards, or away from, nodes with GPUs.
            if request == 0 and is_scalar(name):
                continue
            capacity = self._capacity(nodes, name)
            if capacity is not None:
                loads.append(Load(capacity, request, weight))
        return loads

    def loads_on(self, requests: Sequence[int]) -> Callable[[NodeInfo], list[NodeLoad]]:
        """A function that gives the same for one node, as plain numbers; devices do not come in.

        A resource the node lacks does not count.
        """
        readers = [
            (amounts_reader(name, non_zero=self._use_non_zero), request, weight)
            for (name, weight), request in zip(self._specs, requests, strict=True)
            if request != 0 or not is_scalar(name)
        ]

        def loads(info: NodeInfo) -> list[NodeLoad]:
            found: list[NodeLoad] = []
            for read, request, weight in readers:
                allocatable, used = read(info)
                if allocatable:
                    found.append((allocatable, used, request, weight))
            return found

        return loads

    def _capacity(self, nodes: Nodes, name: str) -> Capacity | None:
        """None for resources no node has."""
        if name == EPHEMERAL_STORAGE:
            return _column_capacity(nodes, columns.EPHEMERAL_STORAGE)
        if name not in (CPU, MEMORY):
            return scalar_capacity(nodes, name, self._devices)
        column = columns.CPU if name == CPU else columns.MEMORY
        if not self._use_non_zero:
            return _column_capacity(nodes, column)
        return Capacity(nodes.allocatable(column), nodes.non_zero_requested(column))


def scalar_capacity(
    nodes: Nodes, name: str, devices: DeviceCounts | None = None
) -> Capacity | None:
    """What the nodes have of a scalar resource; None for names no node and no pod ever had.

    Spec 05 §8.6: where a node publishes none, the devices of the class behind the name count.
    """
    column = nodes.resource_column(name)
    published = None if column is None else _column_capacity(nodes, column)
    counted = None if devices is None else devices.of_resource(name, nodes)
    if counted is None:
        return published
    if published is None:
        return Capacity(*counted)
    is_published = published.allocatable > 0
    return Capacity(
        np.where(is_published, published.allocatable, counted[0]),
        np.where(is_published, published.used, counted[1]),
    )


def _column_capacity(nodes: Nodes, column: int) -> Capacity:
    return Capacity(nodes.allocatable(column), nodes.requested(column))
