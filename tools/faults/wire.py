"""HTTP over a faulty link, as bytes: the client of `kubestow run`, on connections without sockets.

Everything of the client is real here: identity, retries, pages, the parser of answers, the limits
of silence, the frames of watches. So this is where an answer can end in the middle, where a
Retry-After header counts, and where a list comes in pieces for tens of seconds.

    HttpClient ─► ApiSession ─► Connection ─► _Transport ─ link ─► WireServer
                                    ▲              └── an answer, cut, late, or none ──┐
                                    └──────────────────────────────────────────────────┘
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

import msgspec
import numpy as np

from kubestow.apiserver.http.failures import failure_answer, failure_status
from kubestow.apiserver.http.response import ApiResponse
from kubestow.apiserver.http.streaming import ServedWatch
from kubestow.clock import Clock
from kubestow.cluster import requests
from kubestow.cluster.http.connection import Connection, Sink
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import JSON, ApiSession
from kubestow.errors import ApiError, ConflictError, GoneError, UnreachableError
from tools.faults.client import (
    LOSS_UNNOTICED_S,
    SLOW_LIST_PAGES,
    SLOW_LIST_S,
    ClientHooks,
)
from tools.faults.fault import Fault
from tools.faults.link import Link
from tools.faults.wire_server import Request, WireServer, read_request

SERVER: Final = "http://apiserver.example.com"
# A server that is busy asks for a pause of 1 s up to this.
LONGEST_PAUSE_S: Final = 3
RETRY_AFTER: Final = "Retry-After"

# Of one request of the client with its repetitions: when each may be sent again. A request that was
# given up takes its pauses with it; another part may send an equal one at once.
Pauses = dict[Request, float]
_pauses: ContextVar[Pauses] = ContextVar("pauses")

_LAST_CHUNK: Final = b"0\r\n\r\n"
_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class WireSession(ApiSession):
    """A session whose requests are told apart, also where they are equal."""

    async def request(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = JSON
    ) -> bytes:
        with _one_request():
            return await super().request(method, path, body, content_type=content_type)

    async def stream(self, path: str, sink: Sink) -> Connection:
        with _one_request():
            return await super().stream(path, sink)


@contextmanager
def _one_request() -> Generator[None]:
    token = _pauses.set({})
    try:
        yield
    finally:
        _pauses.reset(token)


class WireClient(HttpClient):
    """The client of a process, with connections over a link."""

    def __init__(
        self, wire: "Wire", clock: Clock, rng: np.random.Generator, *, timeout_s: float | None
    ) -> None:
        session = WireSession(
            ServerConfig(server=SERVER), clock, timeout_s=timeout_s, dial=wire.dial
        )
        super().__init__(session, rng=rng)
        self._wire = wire

    async def send(self, request: requests.Request) -> Any:
        if not isinstance(request, requests.BindPod):
            return await super().send(request)
        pod, node_name = request.pod, request.node_name
        with self._wire.link.under_way(pod.metadata.uid, node_name):
            self._wire.hooks.binding_sent(pod, node_name)
            await super().send(request)
            self._wire.hooks.binding_confirmed(pod, node_name)

    def disconnect(self) -> None:
        """The process is gone, and its connections with it."""
        self._wire.disconnect()


class Wire:
    """The connections of one client."""

    def __init__(self, server: WireServer, link: Link, hooks: ClientHooks) -> None:
        self.server: Final = server
        self.link: Final = link
        self.hooks: Final = hooks
        # Paths of which an event was lost since the last list: their watches cannot be resumed.
        self.lossy: set[str] = set()
        self._transports: list[_Transport] = []

    async def dial(self) -> Connection:
        try:
            await self.link.travel()
        except UnreachableError as error:
            raise UnreachableError("no connection in time") from error
        connection = Connection(SERVER)
        transport = _Transport(self, connection)
        self._transports = [known for known in self._transports if not known.is_closing()]
        self._transports.append(transport)
        connection.connection_made(transport)
        return connection

    def disconnect(self) -> None:
        for transport in self._transports:
            transport.abort()


class _Transport(asyncio.Transport):
    """One connection, seen from the client. The server's part runs outside of any process."""

    def __init__(self, wire: Wire, connection: Connection) -> None:
        super().__init__()
        self._wire = wire
        self._connection = connection
        self._is_closing = False
        self._process: Context = copy_context()
        self._serving: asyncio.Task[None] | None = None
        self._watch: ServedWatch | None = None

    # --- for the client ---

    def write(self, data: bytes | bytearray | memoryview) -> None:
        loop = asyncio.get_running_loop()
        request = read_request(bytes(data))
        exchange = _Exchange(self._wire, self, request, _pauses.get())
        self._serving = loop.create_task(_serve(exchange, self), context=Context())

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        """Either side ends the connection."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._serving is not None and self._serving is not asyncio.current_task():
            self._serving.cancel()
        self._call(lambda: self._connection.connection_lost(None))

    def pause_reading(self) -> None:
        """What is under way arrives all the same."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""

    # --- for the server ---

    def send(self, data: bytes) -> None:
        if not self._is_closing:
            self._call(lambda: self._connection.data_received(data))

    def _call(self, callback: Callable[[], None]) -> None:
        """In the process, which may be paused or gone."""
        asyncio.get_running_loop().call_soon(callback, context=self._process)


async def _serve(exchange: "_Exchange", transport: _Transport) -> None:
    try:
        await exchange.run()
    except UnreachableError:
        transport.abort()


class _Exchange:
    """One request and its answer."""

    def __init__(self, wire: Wire, transport: _Transport, request: Request, pauses: Pauses) -> None:
        self._wire = wire
        self._pauses = pauses
        self._link = wire.link
        self._faults = wire.link.faults
        self._transport = transport
        self._request = request
        self._path = request.target.partition("?")[0]

    async def run(self) -> None:
        """UnreachableError where the connection ends without an answer."""
        await self._link.travel()
        self._check_patience()
        faults, is_write = self._faults, self._request.is_write
        if faults.happens(Fault.DROPPED):
            raise UnreachableError("connection reset by peer")
        answer = self._refusal() or self._wire.server.answer(self._request)
        if is_write and faults.happens(Fault.ANSWER_LOST):
            raise UnreachableError("connection reset by peer")
        if isinstance(answer, ApiResponse):
            await self._link.travel()
            await self._send_whole(answer)
        else:
            await self._stream(answer)

    def _check_patience(self) -> None:
        loop = asyncio.get_running_loop()
        not_before_s = self._pauses.pop(self._request, 0.0)
        if loop.time() < not_before_s:
            method, target = self._request.method, self._request.target
            self._wire.hooks.report(
                "Retry-After", f"{method} {target} is repeated before {not_before_s:.3f} s"
            )

    def _refusal(self) -> ApiResponse | None:
        faults = self._faults
        busy = ApiError("too many requests", code=429, reason="TooManyRequests")
        if faults.happens(Fault.BUSY):
            return failure_answer(busy)
        if faults.happens(Fault.RETRY_AFTER):
            delay_s = 1 + int(faults.rng.integers(LONGEST_PAUSE_S))
            return failure_answer(busy)._replace(headers={RETRY_AFTER: str(delay_s)})
        if faults.happens(Fault.ERROR):
            return failure_answer(ApiError("internal error"))
        if self._request.is_write and faults.happens(Fault.CONFLICT):
            return failure_answer(ConflictError("the object has been modified"))
        if self._path in self._wire.lossy and not self._request.is_list:
            return failure_answer(_too_old())
        return None

    # --- answers of a known length ---

    async def _send_whole(self, answer: ApiResponse) -> None:
        body, length = answer.body, len(answer.body)
        is_cut = self._faults.happens(Fault.TRUNCATED)
        if is_cut:
            body = body[: int(self._faults.rng.integers(length))]
            # A proxy that gives up sends what it has as the whole, or leaves the length as it was.
            if self._faults.rng.random() < 0.5:
                length = len(body)
        headers = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        head = f"HTTP/1.1 {answer.status} X\r\nContent-Length: {length}\r\n{headers}\r\n"
        self._transport.send(head.encode())
        if self._request.is_list and answer.status == 200:
            self._wire.lossy.discard(self._path)
            await self._send_slowly(body)
        else:
            self._transport.send(body)
        if is_cut:
            self._transport.abort()
        elif RETRY_AFTER in answer.headers:
            # Only now: a client does not follow an answer that is lost or cut.
            now_s = asyncio.get_running_loop().time()
            self._pauses[self._request] = now_s + int(answer.headers[RETRY_AFTER])

    async def _send_slowly(self, body: bytes) -> None:
        """At once, unless the list is slow."""
        if not self._faults.happens(Fault.SLOW_LIST):
            self._transport.send(body)
            return
        piece_s = SLOW_LIST_S * (1 + 3 * self._faults.rng.random()) / SLOW_LIST_PAGES
        size = len(body) // SLOW_LIST_PAGES + 1
        for start in range(0, len(body), size):
            await asyncio.sleep(piece_s)
            await self._link.travel()
            self._transport.send(body[start : start + size])

    # --- watches ---

    async def _stream(self, watch: ServedWatch) -> None:
        self._transport.send(_STREAM_HEAD)
        if self._request.is_list:
            self._wire.lossy.discard(self._path)
        await watch.send_all(self._send_events)
        self._transport.send(_LAST_CHUNK)

    async def _send_events(self, lines: bytes) -> None:
        """Called by the watch with the lines of some events; an error ends it."""
        await self._link.watch_travels()
        faults = self._faults
        if self._path in self._wire.lossy or faults.happens(Fault.WATCH_GONE):
            error = {"type": "ERROR", "object": failure_status(_too_old())}
            self._send_chunk(msgspec.json.encode(error) + b"\n")
            raise UnreachableError("the watch is over")
        if faults.happens(Fault.WATCH_CLOSED):
            self._transport.send(_LAST_CHUNK)
            raise UnreachableError("the watch is over")
        if faults.happens(Fault.WATCH_CUT):
            self._send_chunk(lines[: len(lines) // 2])
            raise UnreachableError("connection reset by peer")
        if faults.happens(Fault.WATCH_REPEATED):
            lines += lines
        elif faults.happens(Fault.WATCH_LOST):
            lines = self._without_one(lines)
        self._send_chunk(lines)

    def _send_chunk(self, data: bytes) -> None:
        if data:
            self._transport.send(b"%x\r\n%s\r\n" % (len(data), data))

    def _without_one(self, lines: bytes) -> bytes:
        """The lines but for one; later the watch ends, and cannot be resumed."""
        events = lines.splitlines(keepends=True)
        lost = msgspec.json.decode(events.pop(int(self._faults.rng.integers(len(events)))))
        found = lost["object"]
        is_pod = found.get("kind") == "Pod"
        node_name = found["spec"].get("nodeName", "") if is_pod else found["metadata"].get("name")
        self._wire.hooks.event_lost(node_name or "")
        delay_s = LOSS_UNNOTICED_S * float(self._faults.rng.random())
        asyncio.get_running_loop().call_later(delay_s, self._expire)
        return b"".join(events)

    def _expire(self) -> None:
        self._wire.lossy.add(self._path)
        self._transport.abort()


def _too_old() -> GoneError:
    return GoneError("too old resource version")
