"""A listening HTTP port with limits: those of the scheduler and of the embedded API server.

A client can hold a connection without using it: by a handshake it does not finish, by half a
request, by a body that never ends. Each of these has a time limit, and all connections together
have a limit.

    accepted ──► handshake ──► waiting for a request ◄──► request in progress
                 HEADER_S       HEADER_S                  BODY_S for its body

At the limit a new connection takes the place of the one that has waited longest, so slow clients
cannot keep probes out. Where every connection has a request in progress, the new one is refused.

Not here: what is answered, certificates and addresses.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger(__name__)

# Upstream's ReadHeaderTimeout. It counts from the start of the connection or the previous answer:
# aiohttp has one time for an idle connection and for a header that is not complete.
HEADER_S: Final = 32.0
BODY_S: Final = 32.0
CONNECTIONS_MAX: Final = 512
BACKLOG: Final = 128
# How long the end of a TLS connection may wait for the client's.
TLS_END_S: Final = 5.0
# How long no connection is accepted when the process has no file descriptor left.
PAUSE_S: Final = 1.0

# The suites that Go offers for TLS 1.2, in its order. OpenSSL's default has others.
_AEAD: Final = ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
_CBC: Final = ("AES128-SHA", "AES256-SHA")
CIPHERS: Final = ":".join(
    f"ECDHE-{key}-{suite}"
    for suites in (_AEAD, _CBC)
    for suite in suites
    for key in ("ECDSA", "RSA")
)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpPort:
    def __init__(
        self,
        handle: Handler,
        bound: socket.socket,
        *,
        tls: ssl.SSLContext | None = None,
        cancels_handlers: bool = False,
        on_refused: Callable[[], None] | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        """`bound` is listening. With `cancels_handlers` a handler ends with its connection.

        `on_refused` is called for each connection that is closed because of the limit.
        """
        self._handle = handle
        self._bound = bound
        self._tls = tls
        self._connections_max = connections_max
        self._on_refused = on_refused
        self._server = web.Server(
            self._handle_busy,
            handler_cancellation=cancels_handlers,
            access_log=None,
            keepalive_timeout=HEADER_S,
            logger=_library_log(),
        )
        # Each connection with the task of its handshake; those that wait, longest first.
        self._waiting: dict[web.RequestHandler, asyncio.Task[None]] = {}
        self._busy: dict[web.RequestHandler, asyncio.Task[None]] = {}
        # Sockets whose task has not run yet: if it is cancelled before, nothing else closes them.
        self._untouched: set[socket.socket] = set()
        self._pause: asyncio.TimerHandle | None = None
        # Connections that were closed because of the limit.
        self.refused_count = 0

    @property
    def connection_count(self) -> int:
        for connections in (self._waiting, self._busy):
            closed = [one for one, task in connections.items() if task.done() and not one.connected]
            for connection in closed:
                del connections[connection]
        return len(self._waiting) + len(self._busy)

    def start(self) -> None:
        self._bound.setblocking(False)
        self._accept_more()

    async def close(self, *, timeout_s: float) -> None:
        """Stop listening, then wait for requests in progress, at most `timeout_s`."""
        await self.stop_listening()
        # Requests that have arrived are started before idle connections are closed.
        await asyncio.sleep(0)
        self._server.pre_shutdown()
        await self._server.shutdown(timeout_s)

    async def stop_listening(self) -> None:
        if self._bound.fileno() != -1:
            asyncio.get_running_loop().remove_reader(self._bound)
        if self._pause is not None:
            self._pause.cancel()
        ended = [*self._waiting.values()]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        self._bound.close()

    # --- connections ---

    def _accept_more(self) -> None:
        # Not a task around `loop.sock_accept`: where that is cancelled in the turn in which a
        # connection arrives, nothing closes the connection.
        asyncio.get_running_loop().add_reader(self._bound, self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._bound.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return  # The client has closed it already.
        except OSError as error:
            log.warning("cannot accept a connection: %s; trying again", error.strerror)
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._bound)
            self._pause = loop.call_later(PAUSE_S, self._accept_more)
            return
        accepted.setblocking(False)
        self._admit(accepted)

    def _admit(self, accepted: socket.socket) -> None:
        if self.connection_count >= self._connections_max:
            self._count_refused()
            if not self._close_oldest():
                accepted.close()
                return
        connection = self._server()
        self._untouched.add(accepted)
        task = asyncio.create_task(self._connect(connection, accepted))
        task.add_done_callback(lambda _: self._close_untouched(accepted))
        self._waiting[connection] = task

    def _close_untouched(self, accepted: socket.socket) -> None:
        if accepted in self._untouched:
            self._untouched.remove(accepted)
            accepted.close()

    async def _connect(self, connection: web.RequestHandler, accepted: socket.socket) -> None:
        self._untouched.discard(accepted)
        is_tls = self._tls is not None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HEADER_S if is_tls else None,
                ssl_shutdown_timeout=TLS_END_S if is_tls else None,
            )
        except OSError as error:
            log.debug("TLS handshake error: %s", error)

    def _count_refused(self) -> None:
        if not self.refused_count:
            log.warning("all %d connections of a port are in use", self._connections_max)
        self.refused_count += 1
        if self._on_refused is not None:
            self._on_refused()

    def _close_oldest(self) -> bool:
        """Close the connection that has waited longest; False if none is waiting."""
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self._waiting.pop(oldest).cancel()
        if oldest.transport is not None:
            # Cut off, not closed: the end of a TLS connection waits for the client.
            oldest.transport.abort()
            oldest.force_close()
        return True

    async def _handle_busy(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        task = self._waiting.pop(connection, None)
        if task is None:
            raise ConnectionResetError("closed because of the limit before its request was read")
        self._busy[connection] = task
        try:
            return await self._handle(request)
        finally:
            self._busy.pop(connection, None)
            if connection.connected:
                self._waiting[connection] = task


def _library_log() -> logging.Logger:
    """Where aiohttp logs; without requests it cannot parse, or any client could fill the log."""

    def is_own_fault(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))

    library = log.getChild("library")
    library.filters = [is_own_fault]
    return library


async def read_body(request: web.BaseRequest, *, bytes_max: int) -> bytes | None:
    """The whole body, or None if it is longer; TimeoutError if it is not complete in `BODY_S`."""
    if not request.can_read_body:
        return b""
    chunks: list[bytes] = []
    size = 0
    async with asyncio.timeout(BODY_S):
        async for chunk in request.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > bytes_max:
                return None
    return b"".join(chunks)
