"""What one node has of a resource and how much of it is taken, as plain numbers.

For the row forms of the resource plugins: looked up once per shape, then read for node after node.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from kubestow.cache.node_info import NodeInfo

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
