"""An event loop whose time jumps from timer to timer.

Everything that waits (backoff, flush ticks, timeouts, a plugin's sleep) waits on the loop's
timers. When nothing is left to do at the current time, the loop moves its clock to the next timer
instead of sleeping, so hours pass in milliseconds and the same input gives the same run.
With a `speed` each jump takes real time: at 10, ten virtual seconds take one real second, so that
a person can watch.

Timers that are due at one instant run in the order in which they were set. asyncio leaves that
order open, and it would depend on the number of other timers.
"""

import asyncio
import math
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, TypeVar

from kubestow.clock import NANOSECONDS

T = TypeVar("T")

# This many cancelled timers are kept in any case.
CANCELLED_MAX: Final = 64

# The default start of virtual time. Any date would do; this one is easy to recognise.
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_EPOCH_NS: Final = round(EPOCH.timestamp()) * NANOSECONDS


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    # Of asyncio: what runs in the next turn, whether `stop` or `close` was called, what raises an
    # error then, and what makes the callbacks of files ready.
    _ready: deque[asyncio.Handle]
    _stopping: bool
    _closed: bool
    _check_closed: Callable[[], None]
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]

    def __init__(self, *, speed: float | None = None) -> None:
        self._virtual_s = 0.0
        # Timers before this are run: those that are due now, within the precision of the time. A
        # task that is woken too early sleeps again for the rest, and two such tasks keep time from
        # advancing.
        self._due_s = math.ulp(0.0)
        # When, and the how many-th timer it is.
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_numbers = count()
        self._cancelled_count = 0
        self._jumping = _JumpingSelector(self, speed)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._virtual_s

    def advance(self, seconds: float) -> None:
        now_s = self._virtual_s = self._virtual_s + seconds
        self._due_s = now_s + math.ulp(now_s)

    # The next three are as asyncio's own, without what is for its debug mode: every step of a task
    # and every timer of a pod comes by here.

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if self._closed:
            self._check_closed()
        when = self._virtual_s + delay
        timer = _Timer(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if self._closed:
            self._check_closed()
        timer = _Timer(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._closed:
            self._check_closed()
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a timer that is cancelled, perhaps after it was due."""
        if not handle._scheduled:
            return
        self._cancelled_count += 1
        if self._cancelled_count > max(len(self._timers) // 2, CANCELLED_MAX):
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapify(self._timers)
            self._cancelled_count = 0

    def _run_once(self) -> None:
        """Run what is ready; called by asyncio again and again until the loop is stopped."""
        ready, jumping = self._ready, self._jumping
        while True:
            timers = self._timers
            if not ready and timers and jumping.only_jumps and not self._stopping:
                # As `_wait`, without a call: mostly the next timer is all there is.
                timeout_s = timers[0][0] - self._virtual_s
                if timeout_s <= 0 or timers[0][2].cancelled():
                    self._wait()
                else:
                    self.nothing_is_ready(timeout_s)
            elif not ready or jumping.has_files:
                self._wait()
            timers, due_s = self._timers, self._due_s
            while timers and timers[0][0] < due_s:
                timer = heappop(timers)[2]
                timer._scheduled = False
                ready.append(timer)
            # What these make ready runs in the next turn.
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle._cancelled:  # pyright: ignore[reportAttributeAccessIssue]
                    continue
                try:
                    handle._context.run(handle._callback, *handle._args)  # pyright: ignore
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self._report(handle, error)
            if self._stopping:
                return

    def _report(self, handle: asyncio.Handle, error: BaseException) -> None:
        """Pass on what a callback raised, as asyncio does."""
        message = f"Exception in callback {handle!r}"
        self.call_exception_handler({"message": message, "exception": error, "handle": handle})

    def _wait(self) -> None:
        """Wait for the next timer or file, unless something is ready."""
        # The time until something is ready; None if nothing will be by itself.
        timeout_s, jumping = None, self._jumping
        if self._ready or self._stopping:
            timeout_s = 0.0
        else:
            timers = self._timers
            while timers and timers[0][2].cancelled():
                heappop(timers)
            if timers:
                timeout_s = timers[0][0] - self._virtual_s
        if timeout_s is not None and timeout_s <= 0:
            if jumping.has_files:
                self._process_events(jumping.select(0))
        elif timeout_s is not None and jumping.only_jumps:
            # Other threads add to what is ready by themselves: nothing is read here.
            self.nothing_is_ready(timeout_s)
        else:
            self._process_events(jumping.select(timeout_s))

    def call_next(self, callback: Callable[[], object]) -> asyncio.Handle | None:
        """Call a function in the next turn; at once if nothing else would come before it.

        Only for the end of a callback: what it would do after it comes too late then.
        """
        if self._ready or self._stopping:
            return self.call_soon(callback)
        callback()
        return None

    def nothing_is_ready(self, timeout_s: float | None) -> None:
        """Called when every task waits; the next timer is due in `timeout_s`, if one is set."""
        if timeout_s is None:
            raise StalledError("nothing is left to do and no timer is set")
        # As `advance`, without a call.
        now_s = self._virtual_s = self._virtual_s + timeout_s
        self._due_s = now_s + math.ulp(now_s)


class _Handle(asyncio.Handle):
    """A call that the loop makes in its next turn."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    """A call that the loop makes at a time."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = True


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
        # Whether there are files beside that of the loop itself, which wakes it from waiting.
        self.has_files = False
        # Whether waiting for a timer takes no real time, and nothing is polled.
        self.only_jumps = speed is None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return self._real.select(0)
        ready = self._real.select(timeout / self._speed if timeout and self._speed else 0)
        if timeout is not None or not ready:
            self._loop.nothing_is_ready(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._real.register(fileobj, events, data)
        self._count_files(1)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._real.unregister(fileobj)
        self._count_files(-1)
        return key

    def _count_files(self, more: int) -> None:
        self._file_count += more
        self.has_files = self._file_count > 1
        self.only_jumps = self._speed is None and not self.has_files

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()
