"""What one node has of a resource and how much of it is used, as plain numbers."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from kubestow.arrays import IntArray
from kubestow.cache.node_info import NodeInfo

# How much a node has of a resource, and how much of it is used.
AmountsReader = Callable[[NodeInfo], tuple[int, int]]

# One resource that counts: what a node has of it, the pod's request and its weight.
LoadReader = tuple[AmountsReader, int, int]

# Fields of `Resources` that are no scalar resource, and fields of `NodeInfo` with default requests.
_FIELDS: Final = {
    CPU: ("milli_cpu", "non_zero_cpu"),
    MEMORY: ("memory", "non_zero_memory"),
    EPHEMERAL_STORAGE: ("ephemeral_storage", "requested.ephemeral_storage"),
}


def amounts_reader(name: str, *, non_zero: bool = False) -> AmountsReader:
    if name in _FIELDS:
        field, non_zero_field = _FIELDS[name]
        used = non_zero_field if non_zero else f"requested.{field}"
        return attrgetter(f"allocatable.{field}", used)
    return lambda info: (info.allocatable.scalar.get(name, 0), info.requested.scalar.get(name, 0))


def load_readers(
    names: Iterable[str], amounts: IntArray, weights: IntArray, *, non_zero: bool
) -> list[LoadReader]:
    """What reads the loads of one node, for a request of these amounts; without devices."""
    return [
        (amounts_reader(name, non_zero=non_zero), amount, weight)
        for name, amount, weight in zip(
            names, amounts.ravel().tolist(), weights.ravel().tolist(), strict=True
        )
    ]
