"""When a search ends before it is done: after a time, or when it is interrupted."""

from kubestow.clock import Clock


class Stopping:
    """Asked before each trial. `stop` may be called from a signal handler."""

    def __init__(self, clock: Clock, time_limit_s: float) -> None:
        self._clock = clock
        self._end_s = clock.monotonic_s() + time_limit_s
        self.reason = ""

    def stop(self) -> None:
        self.reason = self.reason or "interrupted"

    def is_due(self) -> bool:
        if not self.reason and self._clock.monotonic_s() >= self._end_s:
            self.reason = "time limit"
        return bool(self.reason)
