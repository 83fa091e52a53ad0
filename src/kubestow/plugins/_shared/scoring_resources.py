"""The resources a score is configured with, and how much of each the nodes have (spec 05 §8.4).

Not here: the score of a load (the plugins), the request of a pod (`api.requests`).
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import AccountedRequest, request_value
from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from kubestow.arrays import IntArray
from kubestow.cache import columns
from kubestow.config.plugin_args import CPU_AND_MEMORY, ResourceSpec
from kubestow.index.devices.counts import DeviceCounts
from kubestow.index.nodes import Nodes

# Fields of `AccountedRequest`: as requested, and with defaults for what is not requested.
_FIELDS: Final = {
    CPU: ("requested.milli_cpu", "non_zero_cpu"),
    MEMORY: ("requested.memory", "non_zero_memory"),
    EPHEMERAL_STORAGE: ("requested.ephemeral_storage", "requested.ephemeral_storage"),
}


class ScoredRequest(NamedTuple):
    """What a pod requests of the resources that count for it, and their weights.

    amounts, weights   int64[resource, 1]
    """

    names: tuple[str, ...]
    amounts: IntArray
    weights: IntArray


class Loads(NamedTuple):
    """The resources that count for a pod, over some nodes; the pod's request is not yet added.

    allocatable       int64[resource, node], 0 where the node lacks the resource: it is left out
    used              int64[resource, node], what the pods there request
    request, weight   int64[resource, 1]
    """

    allocatable: IntArray
    used: IntArray
    request: IntArray
    weight: IntArray

    def at(self, kept: Sequence[bool], positions: npt.NDArray[np.intp]) -> "Loads":
        """Some of the resources on some of the nodes."""
        mask = np.array(kept, np.bool_)
        return Loads(
            self.allocatable[mask][:, positions],
            self.used[mask][:, positions],
            self.request[mask],
            self.weight[mask],
        )


class ScoringResources:
    """The configured resources in their order; by default cpu and memory with equal weights.

    `use_non_zero`: pods on the nodes without requests for cpu and memory count with the defaults.
    `devices` count where a node publishes none of a resource that devices serve; None if they serve
    none.
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
        names = tuple(name for name, _ in self._specs)
        self._read = _reader_of(names, use_non_zero=use_non_zero)
        # Names and weights, if they are the same for every pod.
        weights = [weight for _, weight in self._specs]
        self._always = None if any(map(is_scalar, names)) else (names, _column(weights))
        # Whether they are cpu and memory with equal weights.
        self.are_basic: Final = names == (CPU, MEMORY) and weights[0] == weights[1]

    def __len__(self) -> int:
        return len(self._specs)

    def request_of(self, pod: PodInfo, view: Callable[[Pod], ResourceList]) -> ScoredRequest:
        """The resources that count for the pod; `view` as in `amounts_of`."""
        return self.counting(self.amounts_of(pod, view))

    def amounts_of(self, pod: PodInfo, view: Callable[[Pod], ResourceList]) -> Sequence[int]:
        """What the pod requests of each configured resource.

        `view` has the defaults of `api.requests` if and only if `use_non_zero` is set.
        """
        shape = pod.shape
        if self._read is None or not shape.is_plain:
            return self.amounts(view(pod.pod))
        return self._read(shape.accounted)

    def amounts(self, total: ResourceList) -> list[int]:
        """What a pod with this total requests of each configured resource."""
        return [request_value(name, total) for name, _ in self._specs]

    def counting(self, amounts: Sequence[int]) -> ScoredRequest:
        """The resources that count for a request of these amounts."""
        if self._always is not None:
            names, weights = self._always
            return ScoredRequest(names, _column(amounts), weights)
        counting = [
            (name, amount, weight)
            for (name, weight), amount in zip(self._specs, amounts, strict=True)
            # A pod without a GPU request is not attracted or repelled by nodes with GPUs.
            if amount != 0 or not is_scalar(name)
        ]
        return ScoredRequest(
            tuple([name for name, _, _ in counting]),
            _column([amount for _, amount, _ in counting]),
            _column([weight for _, _, weight in counting]),
        )

    def loads(self, nodes: Nodes, request: ScoredRequest) -> Loads:
        """The resources that count for a pod with this request."""
        if request.names == (CPU, MEMORY):
            used = nodes.non_zero if self._use_non_zero else nodes.basic_requested[:2]
            return Loads(nodes.basic_allocatable[:2], used, request.amounts, request.weights)
        allocatable: IntArray = np.empty((len(request.names), len(nodes)), np.int64)
        used = np.empty_like(allocatable)
        for place, name in enumerate(request.names):
            allocatable[place], used[place] = self._capacity(nodes, name)
        return Loads(allocatable, used, request.amounts, request.weights)

    def _capacity(self, nodes: Nodes, name: str) -> tuple[IntArray | int, IntArray | int]:
        """What the nodes have of one resource, and how much of it is requested."""
        if name == EPHEMERAL_STORAGE:
            column = columns.EPHEMERAL_STORAGE
            return nodes.allocatable(column), nodes.requested(column)
        if name not in (CPU, MEMORY):
            return scalar_capacity(nodes, name, self._devices) or (0, 0)
        column = columns.CPU if name == CPU else columns.MEMORY
        used = nodes.non_zero_requested if self._use_non_zero else nodes.requested
        return nodes.allocatable(column), used(column)


def scalar_capacity(
    nodes: Nodes, name: str, devices: DeviceCounts | None = None
) -> tuple[IntArray, IntArray] | None:
    """What the nodes have of a scalar resource; None for names no node and no pod has.

    Spec 05 §8.6: where a node publishes none, the devices of the class that serves it count.
    """
    column = nodes.resource_column(name)
    published = None if column is None else (nodes.allocatable(column), nodes.requested(column))
    counted = None if devices is None else devices.of_resource(name, nodes)
    if counted is None or published is None:
        return counted or published
    is_published = published[0] > 0
    return (
        np.where(is_published, published[0], counted[0]),
        np.where(is_published, published[1], counted[1]),
    )


def _reader_of(
    names: Sequence[str], *, use_non_zero: bool
) -> Callable[[AccountedRequest], Sequence[int]] | None:
    """Reads these resources; None if one of them is no part of the accounted request."""
    if len(names) > 1 and all(name in _FIELDS for name in names):
        return attrgetter(*(_FIELDS[name][use_non_zero] for name in names))
    if not all(name in _FIELDS or is_scalar(name) for name in names):
        return None
    readers = [_reader(name, use_non_zero=use_non_zero) for name in names]
    return lambda accounted: [read(accounted) for read in readers]


def _reader(name: str, *, use_non_zero: bool) -> Callable[[AccountedRequest], int]:
    fields = _FIELDS.get(name)
    if fields is not None:
        return attrgetter(fields[use_non_zero])
    return lambda accounted: accounted.requested.scalar.get(name, 0)


def _column(values: Sequence[int]) -> IntArray:
    """int64[value, 1]"""
    return np.array(values, np.int64)[:, np.newaxis]
