"""How long a loop works without serving anything else, in CPU time and in wall time.

A loop asks its selector for work once in each turn, so the time between two such calls is one turn:
the stretch in which no other watch, binding or cycle is served. CPU time is that of the loop's
thread, so a machine that is busy with other work does not distort it; and that of a cycle which has
turns with the loop, which stands still meanwhile.
"""

import selectors
import threading
import time
from typing import Final

from kubestow.clock import Clock


class TimedSelector(selectors.DefaultSelector):
    """A selector that measures the turns of its loop."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock: Final = clock
        self._cpu_s = self._wall_s = 0.0
        # Of cycles in turns with the loop: all of their CPU time, and the thread of the last one.
        self._turns_s = 0.0
        self._turn_thread: tuple[int, float] = (0, 0.0)
        self.total_cpu_s = self.longest_cpu_s = self.longest_wall_s = 0.0
        self._restart()

    def reset(self) -> None:
        """Forget what was measured. For any thread: the turn under way counts as a whole."""
        self.total_cpu_s = self.longest_cpu_s = self.longest_wall_s = 0.0

    def note_turn(self) -> None:
        """For `WaitingCycles.on_turn`: called in the thread of a cycle."""
        cpu_s, thread = time.thread_time(), threading.get_ident()
        last_thread, last_s = self._turn_thread
        # The number of a thread may be that of an earlier one.
        is_same = thread == last_thread and cpu_s >= last_s
        self._turns_s += cpu_s - (last_s if is_same else 0.0)
        self._turn_thread = thread, cpu_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        cpu_s = time.thread_time() + self._turns_s - self._cpu_s
        self.total_cpu_s += cpu_s
        self.longest_cpu_s = max(self.longest_cpu_s, cpu_s)
        self.longest_wall_s = max(self.longest_wall_s, self._clock.monotonic_s() - self._wall_s)
        try:
            return super().select(timeout)
        finally:
            self._restart()

    def _restart(self) -> None:
        self._cpu_s = time.thread_time() + self._turns_s
        self._wall_s = self._clock.monotonic_s()
