"""An event loop whose time the replay moves."""

import asyncio

from kubestow.simulator.virtual_time import StalledError, VirtualTimeLoop


class SteppedLoop(VirtualTimeLoop):
    """Virtual time that stops at a limit.

    `run_until` lets everything happen that is due until then; afterwards every task waits, for a
    later timer or for the replay.
    """

    def __init__(self, *, start_s: float) -> None:
        super().__init__()
        self.advance(start_s)
        self._limit_s = start_s
        self._reached: asyncio.Future[None] | None = None

    async def settle(self) -> None:
        """Wait until every other task waits, at the present time."""
        await self.run_until(self.time())

    async def run_until(self, time_s: float) -> None:
        self._limit_s = time_s
        self._reached = self.create_future()
        await self._reached

    def nothing_is_ready(self, timeout_s: float | None) -> None:
        left_s = self._limit_s - self.time()
        if timeout_s is not None and timeout_s <= left_s:
            self.advance(timeout_s)
            return
        if self._reached is None or self._reached.done():
            raise StalledError("every task waits, the replay included")
        self.advance(left_s)
        self._reached.set_result(None)
