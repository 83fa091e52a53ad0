"""Connections kept for use and reuse.

A request takes the connection used last, so that at low load few stay open; a burst opens more, up
to a limit, beyond which requests wait their turn. Streams (watches) have their own connections
outside the limit, because they do not return them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from kubestow.clock import Clock
from kubestow.cluster.http.connection import Connection, Response, SilenceLimits, Sink

# Enough for 600 requests a second to a server that takes 50 ms for each.
CONNECTIONS_MAX: Final = 32
# An API server closes idle connections after 90 s. A request sent at that moment would be lost, so
# they are closed well before.
IDLE_S_MAX: Final = 60.0
# Returns once a request may be sent.
Permission = Callable[[], Awaitable[None]]


class ConnectionPool:
    def __init__(
        self,
        dial: Callable[[], Awaitable[Connection]],
        clock: Clock,
        *,
        connections_max: int = CONNECTIONS_MAX,
        silence: SilenceLimits | None = None,
    ) -> None:
        self._dial = dial
        self._clock = clock
        self._free_count = connections_max  # how many more may be opened
        self._idle: list[Connection] = []
        # A waiter gets a connection, or None: it may open one.
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._busy: set[Connection] = set()  # in the middle of a request
        self._streams: set[Connection] = set()
        self._silence = silence or SilenceLimits()
        self._check: asyncio.TimerHandle | None = None
        self._dialled_count = 0
        self._is_closed = False

    @property
    def dialled_count(self) -> int:
        """How many connections were ever opened."""
        return self._dialled_count

    @property
    def is_saturated(self) -> bool:
        """Whether requests wait for a connection."""
        return bool(self._waiters)

    async def exchange(self, request: bytes, permission: Permission | None = None) -> Response:
        """Send a request on a connection that is free, and return the answer.

        With a permission, it is sent as soon as that returns, in the same step of the loop.
        """
        connection = self._take_idle() or await self._open_or_wait()
        self._busy.add(connection)
        if self._check is None:
            self._check_later()
        try:
            if permission is not None:
                await permission()
            return await connection.exchange(request)
        finally:
            self._busy.discard(connection)
            self._give_back(connection)

    async def stream(self, request: bytes, sink: Sink) -> tuple[Response, Connection]:
        """Send a request on a connection of its own, which the caller closes."""
        connection = await self._open()
        self._streams.add(connection)
        if self._check is None:
            self._check_later()
        try:
            return await connection.exchange(request, sink), connection
        except BaseException:
            self.end_stream(connection)
            raise

    def end_stream(self, connection: Connection) -> None:
        self._streams.discard(connection)
        connection.close()

    def drop_idle(self) -> None:
        """Close idle connections: they were made with an identity that has changed."""
        for connection in self._idle:
            connection.close()
        self._free_count += len(self._idle)
        self._idle.clear()

    def close(self) -> None:
        """End idle connections and all streams; requests in progress are completed."""
        self._is_closed = True
        self.drop_idle()
        for connection in [*self._streams]:
            connection.fail("this client was closed")

    def _check_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._check = loop.call_later(self._silence.check_s, self._check_silence)

    def _check_silence(self) -> None:
        self._check = None
        for connection in (*self._busy, *self._streams):
            connection.check_silence(self._silence)
        if self._busy or self._streams:
            self._check_later()

    def _take_idle(self) -> Connection | None:
        oldest_s = self._clock.monotonic_s() - IDLE_S_MAX
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and connection.idle_since_s >= oldest_s:
                return connection
            connection.close()
            self._free_count += 1
        return None

    async def _open_or_wait(self) -> Connection:
        if self._free_count:
            self._free_count -= 1
        else:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                connection = await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._pass_on(waiter.result())
                raise
            if connection is not None and connection.is_usable:
                return connection
            # Open a new one: the connection has ended since, or there was none.
        try:
            return await self._open()
        except BaseException:
            self._pass_on(None)
            raise

    async def _open(self) -> Connection:
        connection = await self._dial()
        self._dialled_count += 1
        return connection

    def _give_back(self, connection: Connection) -> None:
        if connection.is_usable and not self._is_closed:
            self._pass_on(connection)
        else:
            connection.close()
            self._pass_on(None)

    def _pass_on(self, connection: Connection | None) -> None:
        """Give a connection, or the permission to open one, to the longest waiter."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is None:
            self._free_count += 1
        else:
            connection.idle_since_s = self._clock.monotonic_s()
            self._idle.append(connection)
