"""Time as a parameter: the only reader of the real clock.

Everything that needs the time gets a `Clock`. The service uses `SystemClock`; the simulator and the
tests use one that moves only when advanced (`testing.ManualClock`) or that jumps from timer to
timer (`simulator.virtual_time`).
"""

import time
from typing import Protocol

NANOSECONDS: int = 1_000_000_000


class Clock(Protocol):
    def now_ns(self) -> int:
        """Wall-clock time in nanoseconds since 1970."""
        ...

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back, for measuring durations."""
        ...


class SystemClock:
    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic_s(self) -> float:
        return time.monotonic()
