"""How long to wait before repeating a request that failed (spec 09 §4.3)."""

from typing import Final

import numpy as np

BASE_S: Final = 0.8
FACTOR: Final = 2.0
MAX_S: Final = 30.0
RESET_AFTER_S: Final = 120.0


class Backoff:
    """Delays that double up to a cap. More than two minutes after the last reset, or after the
    start, the next one begins at the base again, also if requests kept failing meanwhile.

    Each is extended by up to its own length, so that a thousand clients do not return at once.
    """

    def __init__(self, rng: np.random.Generator, now_s: float) -> None:
        self._rng = rng
        self._next_s = BASE_S
        self._reset_at_s = now_s

    def next_delay_s(self, now_s: float) -> float:
        """The next delay, at this reading of a monotonic clock."""
        if now_s - self._reset_at_s > RESET_AFTER_S:
            self._next_s = BASE_S
            self._reset_at_s = now_s
        delay_s = self._next_s
        self._next_s = min(delay_s * FACTOR, MAX_S)
        return delay_s * (1.0 + self._rng.random())
