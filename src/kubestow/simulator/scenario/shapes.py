"""Which requests occurred in a run, and what is free but too little for any of them.

A node is of no use for a resource if no request that asks for it would fit there: then what the
node has left of it is stranded. Only amounts count, not taints or affinity.

Of all requests only the smallest decide: where a larger one fits, a smaller one does too. So the
minimal ones are kept, one list for each resource, and the answer is the same as with all of them.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from kubestow.arrays import BoolArray, IntArray

# Minimal requests kept for each resource; more are counted, and left out.
MINIMAL_MAX: Final = 256

Amounts = Mapping[str, int]


class RequestShapes:
    def __init__(self, minimal_max: int = MINIMAL_MAX) -> None:
        self._minimal_max = minimal_max
        self._minimal: dict[str, list[Amounts]] = {}
        self.dropped_count = 0

    @property
    def resources(self) -> list[str]:
        """The resources that some request asks for."""
        return list(self._minimal)

    def add(self, request: Amounts) -> None:
        """A pod with these amounts has occurred."""
        for name, amount in request.items():
            if amount > 0:
                self._add_to(self._minimal.setdefault(name, []), request)

    def _add_to(self, minimal: list[Amounts], request: Amounts) -> None:
        if any(_is_within(known, request) for known in minimal):
            return
        minimal[:] = [known for known in minimal if not _is_within(request, known)]
        if len(minimal) < self._minimal_max:
            minimal.append(request)
        else:
            self.dropped_count += 1

    def stranded(self, free: Mapping[str, IntArray], free_pods: IntArray) -> dict[str, int]:
        """For each resource that is asked for, how much of it is free where it cannot be used.

        free       resource → int64[node], 0 or more
        free_pods  int64[node], how many more pods the node may have
        """
        return {
            name: int(free[name][~self._usable(minimal, free, free_pods)].sum())
            for name, minimal in self._minimal.items()
            if name in free
        }

    def _usable(
        self, minimal: list[Amounts], free: Mapping[str, IntArray], free_pods: IntArray
    ) -> BoolArray:
        """bool[node]: whether one of the requests fits."""
        usable = np.zeros(len(free_pods), np.bool_)
        for request in minimal:
            fits = free_pods > 0
            for name, amount in request.items():
                if amount > 0:
                    fits = fits & (free[name] >= amount) if name in free else fits & False
            usable |= fits
        return usable


def _is_within(small: Amounts, large: Amounts) -> bool:
    """Whether `small` fits wherever `large` does."""
    return all(amount <= large.get(name, 0) for name, amount in small.items())
