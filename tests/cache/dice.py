"""Random choices for tests, from a seed."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def between(self, low: int, high: int) -> int:
        """Both included."""
        return int(self._rng.integers(low, high + 1))

    def choice(self, values: Sequence[T]) -> T:
        return values[self.between(0, len(values) - 1)]

    def is_likely(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def sample(self, values: Sequence[T], count: int) -> list[T]:
        return [values[int(index)] for index in self._rng.permutation(len(values))[:count]]
