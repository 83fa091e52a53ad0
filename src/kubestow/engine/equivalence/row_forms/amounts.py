"""What one node has of a resource and how much of it is used, as plain numbers."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from kubestow.arrays import IntArray
from kubestow.cache.node_info import NodeInfo

# One resource that counts on one node: allocatable, used, the pod's request and its weight.
NodeLoad = tuple[int, int, int, int]

# Fields of `Resources` that are no scalar resource, and fields of `NodeInfo` with default requests.
_FIELDS: Final = {
    CPU: ("milli_cpu", "non_zero_cpu"),
    MEMORY: ("memory", "non_zero_memory"),
    EPHEMERAL_STORAGE: ("ephemeral_storage", "requested.ephemeral_storage"),
}


def amounts_reader(name: str, *, non_zero: bool = False) -> Callable[[NodeInfo], tuple[int, int]]:
    """A function that gives how much a node has of a resource, and how much is used."""
    if name in _FIELDS:
        field, non_zero_field = _FIELDS[name]
        used = non_zero_field if non_zero else f"requested.{field}"
        return attrgetter(f"allocatable.{field}", used)
    return lambda info: (info.allocatable.scalar.get(name, 0), info.requested.scalar.get(name, 0))


def loads_reader(
    names: Iterable[str], amounts: IntArray, weights: IntArray, *, non_zero: bool
) -> Callable[[NodeInfo], list[NodeLoad]]:
    """A function that gives the loads of one node, for a request of these amounts.

    A resource the node lacks does not count; devices are not included.
    """
    readers = [
        (amounts_reader(name, non_zero=non_zero), amount, weight)
        for name, amount, weight in zip(
            names, amounts.ravel().tolist(), weights.ravel().tolist(), strict=True
        )
    ]

    def loads(info: NodeInfo) -> list[NodeLoad]:
        found: list[NodeLoad] = []
        for read, amount, weight in readers:
            allocatable, used = read(info)
            if allocatable:
                found.append((allocatable, used, amount, weight))
        return found

    return loads
