"""A clock that moves only when advanced, so that no test ever waits.

Wall time and the monotonic clock move together. Seconds may be given as floats: they are rounded to
whole nanoseconds, so that `ManualClock(100.7)` shows exactly 100,700,000,000 ns.
"""

from kubestow.clock import NANOSECONDS


class ManualClock:
    """A `Clock` that the test sets and advances."""

    __slots__ = ("_now_ns",)

    def __init__(self, now_s: float = 0) -> None:
        self._now_ns = nanoseconds(now_s)

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_s(self) -> float:
        return self._now_ns / NANOSECONDS

    def set_s(self, now_s: float) -> None:
        self.set_ns(nanoseconds(now_s))

    def set_ns(self, now_ns: int) -> None:
        """Set the time; it may go back, as a wall clock does after a correction."""
        self._now_ns = now_ns

    def advance_s(self, seconds: float) -> None:
        self.advance_ns(nanoseconds(seconds))

    def advance_ns(self, delta_ns: int) -> None:
        if delta_ns < 0:
            raise ValueError(f"cannot advance a clock by {delta_ns} ns; use set_ns to go back")
        self._now_ns += delta_ns


def nanoseconds(seconds: float) -> int:
    """Seconds as whole nanoseconds; exact for integers of any size."""
    if isinstance(seconds, int):
        return seconds * NANOSECONDS
    return round(seconds * NANOSECONDS)
