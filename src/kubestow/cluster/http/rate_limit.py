"""How many requests a second a client sends: a bucket of tokens (spec 09 §4.1).

The bucket starts full with `burst` tokens and gains `qps` a second. A request takes one at once,
even from an empty bucket, and waits until that token exists, so requests are sent in order.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kubestow.clock import Clock


class RateLimit:
    """One bucket; every client has its own. A negative `qps` means no limit."""

    def __init__(
        self,
        clock: Clock,
        *,
        qps: float,
        burst: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.is_unlimited = qps <= 0
        self._clock = clock
        self._qps = qps
        self._burst = burst
        self._sleep = sleep
        self._tokens = float(burst)
        self._counted_at_s = clock.monotonic_s()

    def take(self) -> float:
        """Take a token; return how many seconds to wait before using it."""
        if self.is_unlimited:
            return 0.0
        now_s = self._clock.monotonic_s()
        gained = (now_s - self._counted_at_s) * self._qps
        self._tokens = min(self._burst, self._tokens + gained) - 1.0
        self._counted_at_s = now_s
        return 0.0 if self._tokens >= 0.0 else -self._tokens / self._qps

    async def wait_turn(self) -> float:
        """Wait until a request may be sent; return how long that took."""
        delay_s = self.take()
        if delay_s > 0.0:
            await self._sleep(delay_s)
        return delay_s
