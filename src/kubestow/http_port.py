"""A listening HTTP port with limits: those of the scheduler and of the embedded API server.

A client can hold a connection without using it: by silence, by a handshake it does not finish, by
half a request, by a body that never ends, by an answer that takes long. Each of these has a time
limit, and the connections in each of these states have a limit.

    accepted ──first byte──► handshake ──► waiting for a request ◄──► request in progress ──► kept
    HANDSHAKE_S              HANDSHAKE_S   HEADER_S                   BODY_S for its body
    ACCEPTED_MAX             CONNECTIONS_MAX

At the limit a new connection takes the place of the oldest one, so clients that hold connections
cannot keep probes out. A connection is kept from that while it has a request of a client that has
shown credentials (`keep`); most connections can be kept, and never all of them.

A connection that was only accepted costs its socket; a handshake takes half a millisecond of CPU
time and some 100 KiB. So nothing is made before the first byte, and only some connections are begun
in each turn of the loop, so that a burst of them does not delay those that are in use.

Bodies are read by handlers that ask for them, and by nothing else: a body that is packed is
refused, since unpacking takes a thousand times as long as sending it, and the connection of a body
that was not read to its end is closed.

Not here: what is answered, certificates and addresses.
"""

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Final

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger(__name__)

# Upstream's ReadHeaderTimeout. It counts from the start of the connection or the previous answer:
# aiohttp has one time for an idle connection and for a header that is not complete.
HEADER_S: Final = 32.0
BODY_S: Final = 32.0
# How long the first byte may take, and then the rest of a TLS handshake.
HANDSHAKE_S: Final = 10.0
CONNECTIONS_MAX: Final = 512
# The share of connections that can be kept.
KEPT_SHARE: Final = 7 / 8
# The system lowers it to its own limit. While a queue of this length is not full, no client has to
# send its first packet a second time, which it does after a second.
BACKLOG: Final = 4096
# Connections of which nothing was read yet.
ACCEPTED_MAX: Final = 4096
ACCEPTED_PER_TURN: Final = 256
# Connections that are begun in one turn of the loop. A probe needs some turns until its answer; in
# these fewer connections must be begun than make it the oldest one.
BEGUN_PER_TURN: Final = 16
# What is read from a TLS connection at a time. Each has a buffer of this size from its begin on;
# by default it takes 256 KiB.
TLS_BUFFER_BYTES: Final = 64 * 1024
setattr(sslproto.SSLProtocol, "max_size", TLS_BUFFER_BYTES)  # noqa: B010 - not in its type
# Requests that a client may send before the answer to an earlier one; few send any.
PIPELINED_MAX: Final = 8
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


_KEEP: Final[web.RequestKey[Callable[[], None]]] = web.RequestKey("keep")


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
        self._kept_max = min(int(connections_max * KEPT_SHARE), connections_max - 1)
        self._on_refused = on_refused
        self._server = _Server(
            self._answer,
            self._ended,
            cancels_handlers=cancels_handlers,
            access_log=None,
            keepalive_timeout=HEADER_S,
            logger=_library_log(),
            auto_decompress=False,
            lingering_time=0,
        )
        # Connections of which nothing was read yet, oldest first; and those of them that have sent
        # something, in this order.
        self._accepted: dict[_Connection, None] = {}
        self._ready: dict[_Connection, None] = {}
        self._turn: asyncio.Handle | None = None
        # Connections that make way for others, oldest first.
        self._open: dict[_Connection, None] = {}
        self._kept: set[_Connection] = set()
        self._by_handler: dict[web.RequestHandler, _Connection] = {}
        self._pause: asyncio.TimerHandle | None = None
        # Connections that were closed because of the limit.
        self.refused_count = 0

    @property
    def connection_count(self) -> int:
        return len(self._accepted) + len(self._open) + len(self._kept)

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
        for timer in (self._pause, self._turn):
            if timer is not None:
                timer.cancel()
        begun = [one.begun for one in self._open if one.begun is not None]
        for connection in [*self._accepted, *self._open]:
            if connection.handler is None or not connection.handler.connected:
                self._cut_off(connection)
        await asyncio.gather(*begun, return_exceptions=True)
        self._bound.close()

    # --- connections ---

    def _accept_more(self) -> None:
        # Not a task around `loop.sock_accept`: where that is cancelled in the turn in which a
        # connection arrives, nothing closes the connection.
        asyncio.get_running_loop().add_reader(self._bound, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                accepted, _ = self._bound.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # The client has closed it already.
            except OSError as error:
                log.warning("cannot accept a connection: %s; trying again", error.strerror)
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._bound)
                self._pause = loop.call_later(PAUSE_S, self._accept_more)
                return
            accepted.setblocking(False)
            self._admit(_Connection(accepted))

    def _admit(self, connection: "_Connection") -> None:
        if len(self._accepted) >= ACCEPTED_MAX:
            self._displace(self._accepted)
        self._accepted[connection] = None
        loop = asyncio.get_running_loop()
        limit_s = HEADER_S if self._tls is None else HANDSHAKE_S
        connection.timer = loop.call_later(limit_s, self._cut_off, connection)
        loop.add_reader(connection.accepted, self._is_ready, connection)

    def _is_ready(self, connection: "_Connection") -> None:
        asyncio.get_running_loop().remove_reader(connection.accepted)
        self._ready[connection] = None
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._begin_some)

    def _begin_some(self) -> None:
        for connection in [*islice(self._ready, BEGUN_PER_TURN)]:
            self._begin(connection)
        self._turn = None
        if self._ready:
            self._turn = asyncio.get_running_loop().call_soon(self._begin_some)

    def _begin(self, connection: "_Connection") -> None:
        if _has_left(connection.accepted):
            self._cut_off(connection)
            return
        self._forget_accepted(connection)
        if len(self._open) + len(self._kept) >= self._connections_max:
            self._displace(self._open)
        self._open[connection] = None
        connection.handler = handler = self._server()
        self._by_handler[handler] = connection
        connection.begun = asyncio.create_task(self._connect(connection, handler))
        connection.begun.add_done_callback(lambda _: self._begun(connection, handler))

    def _forget_accepted(self, connection: "_Connection") -> None:
        del self._accepted[connection]
        self._ready.pop(connection, None)
        asyncio.get_running_loop().remove_reader(connection.accepted)
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None

    async def _connect(self, connection: "_Connection", handler: web.RequestHandler) -> None:
        connection.is_passed_on = True
        is_tls = self._tls is not None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: handler,
                connection.accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_S if is_tls else None,
                ssl_shutdown_timeout=TLS_END_S if is_tls else None,
            )
        except OSError as error:
            log.debug("TLS handshake error: %s", error)

    def _begun(self, connection: "_Connection", handler: web.RequestHandler) -> None:
        connection.begun = None  # A cancelled task refers to the connection: a cycle.
        if not connection.is_passed_on:
            # The task was cancelled before it ran, so that nothing else closes it.
            connection.accepted.close()
        if handler not in self._server.transports:
            self._ended(handler)

    def _ended(self, handler: web.RequestHandler) -> None:
        """A connection was lost, or its handshake failed."""
        connection = self._by_handler.pop(handler, None)
        if connection is not None:
            self._open.pop(connection, None)
            self._kept.discard(connection)

    def _displace(self, connections: "dict[_Connection, None]") -> None:
        """Close the oldest of these, of which there are as many as there may be."""
        if not self.refused_count:
            log.warning("all %d connections of a port are in use", len(connections))
        self.refused_count += 1
        if self._on_refused is not None:
            self._on_refused()
        self._cut_off(next(iter(connections)))

    def _cut_off(self, connection: "_Connection") -> None:
        """End a connection at once: the end of a TLS connection would wait for the client."""
        handler = connection.handler
        if handler is None:
            self._forget_accepted(connection)
            connection.accepted.close()
            return
        self._open.pop(connection, None)
        if connection.begun is not None:
            connection.begun.cancel()
        transport = self._server.transports.get(handler)
        if transport is not None:
            transport.abort()
            handler.force_close()

    # --- requests ---

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._by_handler.get(request.protocol)
        if connection is None or connection not in self._open:
            return _unsent()  # closed because of the limit before its request was read
        request[_KEEP] = lambda: self._keep(connection)
        try:
            response = _packed_body_refusal(request) or await self._handle(request)
        except ConnectionError:
            transport = request.transport
            if transport is not None and not transport.is_closing():
                raise  # another connection than that of the client
            return _unsent()
        finally:
            if connection in self._kept:
                self._kept.remove(connection)
                self._open[connection] = None
        if not request.content.is_eof() and not response.prepared:
            response.force_close()
        return response

    def _keep(self, connection: "_Connection") -> None:
        if connection in self._open and len(self._kept) < self._kept_max:
            del self._open[connection]
            self._kept.add(connection)


class _Connection:
    """One connection; it has a handler from its first byte on."""

    def __init__(self, accepted: socket.socket) -> None:
        self.accepted = accepted
        self.timer: asyncio.TimerHandle | None = None
        self.begun: asyncio.Task[None] | None = None
        self.handler: web.RequestHandler | None = None
        self.is_passed_on = False


class _Handler(web.RequestHandler):
    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if len(self._messages) > PIPELINED_MAX:
            # Closed after the next answer. Without this thousands that were sent in one piece are
            # answered, also if the client has left.
            self.close()

    def eof_received(self) -> None:
        # The client reads nothing more: further requests that it has sent are not answered.
        self.close()


class _Request(web.BaseRequest):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # Which versions of Python and aiohttp answer is for those who may read `/metrics` only.
        response.headers.popall("Server", None)


class _Server(web.Server):
    """Makes the handlers of connections, and has the transport of each."""

    def __init__(
        self,
        handle: Handler,
        on_end: Callable[[web.RequestHandler], None],
        *,
        cancels_handlers: bool,
        **options: Any,
    ) -> None:
        super().__init__(
            handle, handler_cancellation=cancels_handlers, request_factory=self._make_own_request
        )
        self._on_end = on_end
        self._options = options
        self.transports: dict[web.RequestHandler, asyncio.Transport] = {}

    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=asyncio.get_running_loop(), **self._options)

    def _make_own_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return _Request(message, payload, protocol, writer, task, asyncio.get_running_loop())

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.transports[handler] = transport

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self.transports.pop(handler, None)
        self._on_end(handler)


def _has_left(accepted: socket.socket) -> bool:
    """Whether the client of a connection that can be read has closed it."""
    try:
        return not accepted.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def keep(request: web.BaseRequest) -> None:
    """Called by a handler whose client has shown credentials: keep its connection until it is
    answered."""
    request[_KEEP]()


def _unsent() -> web.StreamResponse:
    """An answer for a connection that is closed: aiohttp finds that out, and logs nothing."""
    return web.Response()


def _packed_body_refusal(request: web.BaseRequest) -> web.StreamResponse | None:
    codings = ",".join(request.headers.getall("Content-Encoding", [])).split(",")
    if all(coding.strip().lower() in ("", "identity") for coding in codings):
        return None
    headers = {"Accept-Encoding": "identity"}
    text = "bodies with a Content-Encoding are not read here\n"
    response = web.Response(status=415, text=text, headers=headers)
    response.force_close()
    return response


def _library_log() -> logging.Logger:
    """Where aiohttp logs; without requests it cannot parse, or any client could fill the log."""

    def is_own_fault(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))

    library = log.getChild("library")
    library.filters = [is_own_fault]
    return library


async def read_body(
    request: web.BaseRequest, *, bytes_max: int, limit_s: float = BODY_S
) -> bytes | None:
    """The whole body, or None if it is longer; TimeoutError if it is not complete in `limit_s`."""
    if not request.can_read_body:
        return b""
    chunks: list[bytes] = []
    size = 0
    async with asyncio.timeout(limit_s):
        async for chunk in request.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > bytes_max:
                return None
    return b"".join(chunks)
