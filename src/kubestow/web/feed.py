"""Between the scheduler's loop and the loop that serves pages: starts, paces and ends following.

    scheduler's loop    PageFollower    marks, rows
    serving loop        Feed, Hub   a batch at most every PAUSE_S, readers

The pace is real time, on the serving loop: the scheduler's loop may be in virtual time, or paused.
Without a page the scheduler is not followed: the first request starts it, and some time after the
last one it ends.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

import msgspec

from kubestow.web.follower import PageFollower
from kubestow.web.hub import Hub
from kubestow.web.picture import NOW, PastMoment, Picture, take_picture
from kubestow.web.protocol import Batch

log = logging.getLogger(__name__)

T = TypeVar("T")

# At most this often a batch is made.
PAUSE_S: Final = 0.1
# Without changes there is a batch with the time.
QUIET_S: Final = 15.0
# How long the scheduler is followed after the last request: a page that is loaded again finds the
# attempts that it has shown.
LINGER_S: Final = 60.0


class Bridge(Protocol):
    """Runs work on the scheduler's loop."""

    async def run_on_scheduler(self, work: Coroutine[Any, Any, T]) -> T: ...


class Feed:
    """Made on the serving loop."""

    def __init__(self, follower: PageFollower, bridge: Bridge, *, is_always_on: bool) -> None:
        """`is_always_on`: the scheduler is followed also when no page is open."""
        self.follower = follower
        self.bridge = bridge
        self.hub = Hub()
        self._is_always_on = is_always_on
        self._used_s = 0.0
        self._starting = asyncio.Lock()
        # Batches are published in the order in which they were collected.
        self._publishing = asyncio.Lock()
        self._pump: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Follow the scheduler, if that has not begun; each request calls this."""
        self._used_s = asyncio.get_running_loop().time()
        async with self._starting:
            if self._pump is None and not self._is_closed:
                await self.bridge.run_on_scheduler(self.follower.start())
                self._pump = asyncio.create_task(self._publish())

    async def close(self) -> None:
        """End all streams and stop following."""
        self._is_closed = True
        self.hub.close()
        async with self._starting:
            if self._pump is not None:
                self._pump.cancel()
                await asyncio.gather(self._pump, return_exceptions=True)
                self._pump = None

    async def picture(self, moment: PastMoment = NOW) -> Picture | None:
        """The cluster now, or at an earlier moment; None if that is not kept."""
        await self.start()
        async with self._publishing:
            collected, picture = await self.bridge.run_on_scheduler(self._picture(moment))
            self._send(collected)
        return picture

    async def frames(self, since: int) -> AsyncGenerator[bytes, None]:
        """The stream of one reader."""
        await self.start()
        async for frame in self.hub.frames(since):
            yield frame
            self._used_s = asyncio.get_running_loop().time()

    # --- the pump ---

    async def _publish(self) -> None:
        try:
            while self._is_used():
                with suppress(TimeoutError):
                    async with asyncio.timeout(QUIET_S):
                        await self.bridge.run_on_scheduler(self.follower.wait_changed())
                await self._publish_once()
                await asyncio.sleep(PAUSE_S)
        except Exception:
            # The page is not needed for scheduling; the next request starts it again.
            log.exception("the page is not followed any more; reload it")
            self.hub.reset(self.follower.seq)
        finally:
            self._pump = None
            await self.bridge.run_on_scheduler(self._stop())

    async def _publish_once(self) -> None:
        async with self._publishing:
            self._send(await self.bridge.run_on_scheduler(self.follower.collect()))

    def _send(self, collected: Batch | int) -> None:
        if isinstance(collected, Batch):
            self.hub.publish(collected.seq, msgspec.json.encode(collected))
        else:
            self.hub.reset(collected)

    def _is_used(self) -> bool:
        idle_s = asyncio.get_running_loop().time() - self._used_s
        return self._is_always_on or self.hub.reader_count > 0 or idle_s < LINGER_S

    # --- on the scheduler's loop ---

    async def _picture(self, moment: PastMoment) -> tuple[Batch | int, Picture | None]:
        """A batch, and the picture that it leads to: a later batch continues word lists exactly
        where the picture ends."""
        return await self.follower.collect(), take_picture(self.follower, moment)

    async def _stop(self) -> None:
        if self.follower.is_started:
            self.follower.stop()
