"""Numbers for values, and how many are given out before values are renumbered.

Taint lists, resource names, label values, statuses and the like get a number at first use. In a
process that runs for months each new node or pod may bring a new value. So the values in use are
renumbered once there are many more numbers than a cluster of this size needs.
"""

from collections.abc import Hashable
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

NUMBERED_SPARE: Final = 1024


def numbered_max(in_use: int) -> int:
    """How many numbers may be given out where `in_use` values, or that many nodes, exist."""
    return 2 * in_use + NUMBERED_SPARE


class Numbers(dict[K, int]):
    """Numbers by value, in order of first use: a value that is looked up by `[]` gets the next one.

    So that all of very many values are numbered by `map`, without a step in Python for each.
    """

    def __missing__(self, value: K) -> int:
        number = self[value] = len(self)
        return number
