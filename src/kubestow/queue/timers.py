"""The two periodic flushes of the queue (spec 02 §1, §4).

They sleep on the event loop and read the injected clock, so they work in virtual and in real time.
Neither returns; the caller cancels them.

A flush of a container without pods does nothing, so its timer rests until a pod is added: an idle
process sleeps, and in virtual time an idle month takes no time. The times of the flushes are the
same as without the rest.
"""

import asyncio
from collections.abc import Callable, Sized
from typing import Final

from kubestow.clock import NANOSECONDS, Clock

BACKOFF_FLUSH_NS: Final = NANOSECONDS
LEFTOVER_FLUSH_S: Final = 30

# The shortest sleep that advances an event loop's clock: its resolution is finer than this.
_SLEEP_NS_MIN: Final = 1_000


class Occupancy:
    """Whether a container has pods, for a timer to wait for."""

    def __init__(self, pods: Sized) -> None:
        self._pods = pods
        self._is_added = asyncio.Event()

    def added(self) -> None:
        """A pod was put into the container."""
        self._is_added.set()

    async def rest(self) -> bool:
        """Wait until there are pods; False if there were some already."""
        if self._pods:
            return False
        self._is_added.clear()
        await self._is_added.wait()
        return True


async def flush_each_second(
    flush: Callable[[], None], pods: Occupancy, *, first_ns: int, clock: Clock
) -> None:
    """Run the flush at that wall-clock time, then on each tick a whole number of seconds later."""
    tick_ns = first_ns
    while True:
        await _sleep_until(tick_ns, clock)
        flush()
        tick_ns += BACKOFF_FLUSH_NS
        late_ns = clock.now_ns() - tick_ns
        if late_ns > 0:
            # Of several missed ticks only the latest is run, at once.
            tick_ns += late_ns // BACKOFF_FLUSH_NS * BACKOFF_FLUSH_NS
        if await pods.rest():
            # Ticks during the rest had nothing to flush: go on with the next one.
            missed_ns = max(clock.now_ns() - tick_ns, 0)
            tick_ns += -(-missed_ns // BACKOFF_FLUSH_NS) * BACKOFF_FLUSH_NS


async def flush_after_each_pause(flush: Callable[[], None], pods: Occupancy) -> None:
    """Run the flush at once and after each pause, which starts when a run has ended."""
    loop = asyncio.get_running_loop()
    while True:
        flush()
        flushed_s = loop.time()
        await pods.rest()
        await asyncio.sleep(LEFTOVER_FLUSH_S - (loop.time() - flushed_s) % LEFTOVER_FLUSH_S)


async def _sleep_until(time_ns: int, clock: Clock) -> None:
    # An event loop keeps time in floats and may wake this task a little early. A flush just before
    # the full second would release no pod, and the next comes a second later.
    while (delay_ns := time_ns - clock.now_ns()) > 0:  # noqa: ASYNC110 - time passing is no event
        await asyncio.sleep(max(delay_ns, _SLEEP_NS_MIN) / NANOSECONDS)
