"""How long to wait before repeating a request that failed (spec 09 §4.3)."""

from typing import Final

import numpy as np

BASE_S: Final = 0.8
FACTOR: Final = 2.0
MAX_S: Final = 30.0
RESET_AFTER_S: Final = 120.0


class Backoff:
    """Delays that double up to a cap and start from the base again after two minutes without use.

    Each is extended by up to its own length, so that a thousand clients do not return at once.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._next_s = BASE_S
        self._last_used_s: float | None = None

    def next_delay_s(self, now_s: float) -> float:
        """The next delay, at this reading of a monotonic clock."""
        if self._last_used_s is not None and now_s - self._last_used_s > RESET_AFTER_S:
            self._next_s = BASE_S
        self._last_used_s = now_s
        delay_s = self._next_s
        self._next_s = min(delay_s * FACTOR, MAX_S)
        return delay_s * (1.0 + self._rng.random())
