"""The two periodic flushes of the queue (spec 02 §1, §4).

They sleep on the event loop and read the injected clock, so they work in virtual and in real time.
Neither returns; the caller cancels them.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kubestow.clock import NANOSECONDS, Clock

BACKOFF_FLUSH_NS: Final = NANOSECONDS
LEFTOVER_FLUSH_S: Final = 30

# The shortest sleep that advances an event loop's clock: its resolution is finer than this.
_SLEEP_NS_MIN: Final = 1_000


async def flush_each_second(flush: Callable[[], None], *, first_ns: int, clock: Clock) -> None:
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


async def flush_after_each_pause(flush: Callable[[], None]) -> None:
    """Run the flush at once and after each pause, which starts when a run has ended."""
    while True:
        flush()
        await asyncio.sleep(LEFTOVER_FLUSH_S)


async def _sleep_until(time_ns: int, clock: Clock) -> None:
    # An event loop keeps time in floats and may wake this task a little early. A flush just before
    # the full second would release no pod, and the next comes a second later.
    while (delay_ns := time_ns - clock.now_ns()) > 0:  # noqa: ASYNC110 - time passing is no event
        await asyncio.sleep(max(delay_ns, _SLEEP_NS_MIN) / NANOSECONDS)
