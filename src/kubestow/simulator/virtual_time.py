"""An event loop whose time jumps from timer to timer.

Everything that waits (backoff, flush ticks, timeouts, a plugin's sleep) waits on the loop's
timers. When nothing is left to do at the current time, the loop moves its clock to the next timer
instead of sleeping, so hours pass in milliseconds and the same input gives the same run.
With a `speed` each jump takes real time: at 10, ten virtual seconds take one real second, so that
a person can watch.
"""

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from kubestow.clock import NANOSECONDS

T = TypeVar("T")

# The default start of virtual time. Any date would do; this one is easy to recognise.
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_EPOCH_NS: Final = round(EPOCH.timestamp()) * NANOSECONDS


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self, *, speed: float | None = None) -> None:
        self._virtual_s = 0.0
        super().__init__(_JumpingSelector(self, speed))
        self._set_time(0.0)

    def time(self) -> float:
        return self._virtual_s

    def advance(self, seconds: float) -> None:
        self._set_time(self._virtual_s + seconds)

    def _set_time(self, now_s: float) -> None:
        self._virtual_s = now_s
        # asyncio ends timers that are due within the resolution of the clock. A task that is woken
        # too early sleeps again for the rest, and two such tasks keep time from advancing.
        self._clock_resolution = math.ulp(now_s)

    def nothing_is_ready(self, timeout_s: float | None) -> None:
        """Called when every task waits; the next timer is due in `timeout_s`, if one is set."""
        if timeout_s is None:
            raise StalledError("nothing is left to do and no timer is set")
        self.advance(timeout_s)


class VirtualClock:
    """The loop's time as a `Clock`.

    Two readings never give the same nanosecond, as on a real clock: pods that arrive in one turn
    of the loop keep their order in the queue.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start_ns: int = _EPOCH_NS) -> None:
        """`start_ns` is the wall-clock time, since 1970, when the time of the loop is 0."""
        self.monotonic_s = loop.time
        self._start_ns = start_ns
        self._ahead_ns = 0
        self._last_ns = 0
        self._last_s = math.nan  # the time of the loop at the last reading

    def set(self, ahead_ns: int) -> None:
        """Set the wall clock: ahead of the time that has passed since the start, or behind it."""
        self._ahead_ns = ahead_ns
        self._last_ns = 0
        self._last_s = math.nan

    def now_ns(self) -> int:
        now_s = self.monotonic_s()
        if now_s == self._last_s:
            self._last_ns += 1
            return self._last_ns
        self._last_s = now_s
        now_ns = self._start_ns + self._ahead_ns + round(now_s * NANOSECONDS)
        self._last_ns = max(now_ns, self._last_ns + 1)
        return self._last_ns


class StalledError(Exception):
    """Every task waits, and no timer is set that could wake one."""


def run_in_virtual_time(work: Coroutine[Any, Any, T], *, speed: float | None = None) -> T:
    """Run a coroutine to its end on a loop of its own, in virtual time."""

    def run() -> T:
        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(speed=speed)) as runner:
            return runner.run(work)

    return beside_other_loops(run)


def beside_other_loops(run: Callable[[], T]) -> T:
    """Call a function that runs a loop of its own, also where another loop is running.

    A thread has at most one running loop, and cells of a notebook are run by one.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        is_running = False
    else:
        is_running = True
    if not is_running:
        # Not above: errors of the function would have the other one as their context.
        return run()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(run).result()


class _JumpingSelector(selectors.BaseSelector):
    """Waits by moving the loop's clock. Real file descriptors are still polled."""

    def __init__(self, loop: VirtualTimeLoop, speed: float | None) -> None:
        self._loop = loop
        self._speed = speed
        self._real = selectors.DefaultSelector()
        self._file_count = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            # The one file of the loop itself wakes it from waiting, and it does not wait now.
            return self._real.select(0) if self._file_count > 1 else []
        ready = self._real.select(timeout / self._speed if timeout and self._speed else 0)
        if timeout is not None or not ready:
            self._loop.nothing_is_ready(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._real.register(fileobj, events, data)
        self._file_count += 1
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._real.unregister(fileobj)
        self._file_count -= 1
        return key

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()
