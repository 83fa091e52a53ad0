"""The last batches, and the readers that follow them.

A reader has a position and no queue of its own: it takes what is kept after its position, as fast
as its connection lets it. What is kept is limited, so a reader that falls behind finds a gap. It
then gets one `reset`, goes on at the end and fetches the state again. So a slow reader costs no
memory and delays no other.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

# Of all kept batches together; the newest is kept whatever its size.
KEPT_BYTES_MAX: Final = 8 * 1024 * 1024
KEPT_BATCHES_MAX: Final = 512
READERS_MAX: Final = 32


class HubStatistics(msgspec.Struct, frozen=True, kw_only=True):
    readers: int
    batches: int
    kept_bytes: int
    # Resets sent to readers, and the batches that these did not get.
    resets: int
    dropped_batches: int


class SentBatch(NamedTuple):
    """A batch as it is sent."""

    seq: int
    data: bytes


class TooManyReadersError(Exception):
    """The limit of open streams is reached."""


class Hub:
    def __init__(self) -> None:
        self._frames: deque[SentBatch] = deque()
        self._kept_bytes = 0
        self._head = 0
        self._readers = 0
        self._resets = 0
        self._dropped = 0
        self._is_closed = False
        self._news = asyncio.Event()

    @property
    def reader_count(self) -> int:
        return self._readers

    def statistics(self) -> HubStatistics:
        return HubStatistics(
            readers=self._readers,
            batches=len(self._frames),
            kept_bytes=self._kept_bytes,
            resets=self._resets,
            dropped_batches=self._dropped,
        )

    def publish(self, seq: int, data: bytes) -> None:
        frame = SentBatch(seq, b"id: %d\ndata: %s\n\n" % (seq, data))
        if seq != self._head + 1:
            self._forget()
        self._frames.append(frame)
        self._kept_bytes += len(frame.data)
        while len(self._frames) > KEPT_BATCHES_MAX or (
            self._kept_bytes > KEPT_BYTES_MAX and len(self._frames) > 1
        ):
            self._kept_bytes -= len(self._frames.popleft().data)
        self._advance(seq)

    def reset(self, seq: int) -> None:
        """All readers have to fetch the state again; it has this number, or a later one."""
        self._forget()
        self._advance(seq)

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        self._advance(self._head)

    @contextmanager
    def reading(self) -> Generator[None, None, None]:
        """Counts a reader; TooManyReadersError at the limit."""
        if self._readers >= READERS_MAX:
            raise TooManyReadersError
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    async def frames(self, since: int) -> AsyncGenerator[bytes, None]:
        """What follows after a batch, until the hub is closed."""
        position = since
        while not self._is_closed:
            news = self._news
            following = self._after(position)
            if following is None:
                dropped = max(self._head - position, 0)
                position = self._head
                self._resets += 1
                self._dropped += dropped
                yield b'event: reset\nid: %d\ndata: {"dropped": %d}\n\n' % (position, dropped)
            elif following:
                position = following[-1].seq
                yield b"".join(frame.data for frame in following)
            else:
                await news.wait()

    def _after(self, position: int) -> list[SentBatch] | None:
        """The frames after a position; None if some of them are not kept."""
        if position == self._head:
            return []
        if not self._frames or not self._frames[0].seq - 1 <= position < self._head:
            return None
        return [frame for frame in self._frames if frame.seq > position]

    def _forget(self) -> None:
        self._frames.clear()
        self._kept_bytes = 0

    def _advance(self, seq: int) -> None:
        self._head = seq
        self._news.set()
        self._news = asyncio.Event()
