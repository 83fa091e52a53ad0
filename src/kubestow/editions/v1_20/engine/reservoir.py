"""How v1.17 to v1.20 chose among the best nodes: at random (spec 04 §19.2)."""

import numpy as np

from kubestow.arrays import NarrowArray


class ReservoirSelector:
    """Reservoir sampling: the k-th of the best nodes replaces the choice with probability 1/k."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def select(self, totals: NarrowArray) -> int:
        best = np.flatnonzero(totals == totals.max()).tolist()
        chosen = best[0]
        for count, position in enumerate(best[1:], start=2):
            if self._rng.integers(count) == 0:
                chosen = position
        return int(chosen)
