"""What one node has of a resource and how much of it is taken, as plain numbers.

Looked up once per attempt, then read for node after node.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from kubestow.arrays import IntArray
from kubestow.cache.node_info import NodeInfo

# One resource that counts on one node: allocatable, used, the pod's request and its weight.
NodeLoad = tuple[int, int, int, int]

# Where `Resources` keeps what is no scalar, and where `NodeInfo` keeps the sums with defaults.
_FIELDS: Final = {
    CPU: ("milli_cpu", "non_zero_cpu"),
    MEMORY: ("memory", "non_zero_memory"),
    EPHEMERAL_STORAGE: ("ephemeral_storage", "requested.ephemeral_storage"),
}


def amounts_reader(name: str, *, non_zero: bool = False) -> Callable[[NodeInfo], tuple[int, int]]:
    """A function that reads off a node how much it has of a resource, and how much is taken."""
    if name in _FIELDS:
        field, non_zero_field = _FIELDS[name]
        used = non_zero_field if non_zero else f"requested.{field}"
        return attrgetter(f"allocatable.{field}", used)
    return lambda info: (info.allocatable.scalar.get(name, 0), info.requested.scalar.get(name, 0))


def loads_reader(
    names: Iterable[str], amounts: IntArray, weights: IntArray, *, non_zero: bool
) -> Callable[[NodeInfo], list[NodeLoad]]:
    """A function that gives the loads of one node, for a request of these amounts.

    A resource the node lacks does not count; devices do not come in.
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
