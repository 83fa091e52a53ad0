"""How many pods have which priority: whether any could be evicted for another."""

import sys
from typing import Final

# The lowest priority of no pods: nothing is lower than any.
NO_PODS: Final = sys.maxsize
# Up to this many distinct ones are compared to find the lowest.
_FEW: Final = 256


class PriorityCounts:
    """The priorities of all pods on nodes. Few are distinct.

    counts   how many pods have each priority; all of them 1 or more
    lowest   no pod has a lower one; it may be too low while very many are distinct
    """

    __slots__ = ("counts", "lowest")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.lowest = NO_PODS

    def add(self, priority: int) -> None:
        count = self.counts.get(priority, 0)
        self.counts[priority] = count + 1
        if not count and priority < self.lowest:
            self.lowest = priority

    def remove(self, priority: int) -> None:
        count = self.counts[priority] - 1
        if count:
            self.counts[priority] = count
            return
        del self.counts[priority]
        # Of very many it stays too low: that costs only a search for pods to evict.
        if self.lowest not in self.counts and len(self.counts) <= _FEW:
            self.lowest = min(self.counts, default=NO_PODS)
