"""Time as a parameter: the only reader of the real clock, and of CPU time.

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
    # Read several times per attempt: without a function of ours in between.
    now_ns = staticmethod(time.time_ns)
    monotonic_s = staticmethod(time.monotonic)


def thread_cpu_s() -> float:
    """CPU time of the calling thread: unlike time on a clock, other processes do not add to it."""
    return time.thread_time()


def process_cpu_s() -> float:
    """CPU time of this process, all of its threads."""
    return time.process_time()


class SteadyClock:
    """Wall time that goes on evenly when the wall clock is set forward or back.

    For times that are compared with each other, such as the end of a backoff: a clock set back by
    an hour must not make pods wait for an hour. No two readings are equal.
    """

    def __init__(self, clock: Clock) -> None:
        self.monotonic_s = clock.monotonic_s
        self._start_ns = clock.now_ns()
        self._start_s = self._last_s = clock.monotonic_s()
        self._last_ns = self._start_ns - 1

    def now_ns(self) -> int:
        now_s = self.monotonic_s()
        if now_s == self._last_s:  # virtual time stands still for thousands of readings
            self._last_ns += 1
            return self._last_ns
        self._last_s = now_s
        passed_ns = round((now_s - self._start_s) * NANOSECONDS)
        self._last_ns = max(self._start_ns + passed_ns, self._last_ns + 1)
        return self._last_ns
