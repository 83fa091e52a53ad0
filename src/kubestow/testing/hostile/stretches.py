"""How long a loop works without serving anything else, in CPU time and in wall time.

A loop asks its selector for work once in each turn, so the time between two such calls is one turn:
the stretch in which no other watch, binding or cycle is served. CPU time is that of the loop's
thread, so a machine that is busy with other work does not distort it.
"""

import selectors
import time
from typing import Final

from kubestow.clock import Clock


class TimedSelector(selectors.DefaultSelector):
    """A selector that measures the turns of its loop."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock: Final = clock
        self._cpu_s = self._wall_s = 0.0
        self.total_cpu_s = self.longest_cpu_s = self.longest_wall_s = 0.0
        self._restart()

    def reset(self) -> None:
        """Forget what was measured. For any thread: the turn under way counts as a whole."""
        self.total_cpu_s = self.longest_cpu_s = self.longest_wall_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        cpu_s = time.thread_time() - self._cpu_s
        self.total_cpu_s += cpu_s
        self.longest_cpu_s = max(self.longest_cpu_s, cpu_s)
        self.longest_wall_s = max(self.longest_wall_s, self._clock.monotonic_s() - self._wall_s)
        try:
            return super().select(timeout)
        finally:
            self._restart()

    def _restart(self) -> None:
        self._cpu_s = time.thread_time()
        self._wall_s = self._clock.monotonic_s()
