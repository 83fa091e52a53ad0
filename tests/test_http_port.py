"""Clients that hold connections: half requests, silent handshakes, endless bodies, many at once."""

import asyncio
import socket
import ssl
import tracemalloc
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from aiohttp import web

from kubestow import http_port
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from kubestow.http_port import (
    BEGUN_PER_TURN,
    BODY_S,
    CIPHERS,
    HEADER_S,
    PIPELINED_MAX,
    TLS_BUFFER_BYTES,
    HttpPort,
    keep,
    read_body,
)

HALF = b"GET /slow HTTP/1.1\r\nHost: a\r\nX-Half"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


class ShiftedLoop(asyncio.SelectorEventLoop):
    """Real sockets, and a time that tests set forward."""

    shift_s = 0.0

    def time(self) -> float:
        return super().time() + self.shift_s

    async def pass_time(self, seconds: float) -> None:
        self.shift_s += seconds
        await turns()


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def wait_until(holds: Callable[[], bool]) -> None:
    """Sockets are ready some turns of the loop later."""
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never holds")


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: a", *headers)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


class Port:
    """A port whose paths /wait and /kept answer when it is released."""

    def __init__(self, **options: Any) -> None:
        self.released = asyncio.Event()
        self.waiting = self.cancelled = 0
        self.bodies: list[bytes] = []
        bound = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address: tuple[str, int] = bound.getsockname()
        self.port = HttpPort(self._answer, bound, **options)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Port":
        self.port.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.released.set()
        await self._stack.aclose()
        await self.port.close(timeout_s=1)

    async def connect(self, sent: bytes = b"", **options: Any) -> "Client":
        reader, writer = await asyncio.open_connection(*self.address, **options)
        self._stack.callback(writer.close)
        writer.write(sent)
        return Client(reader, writer)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/kept":
            keep(request)
        if request.path in ("/wait", "/kept"):
            self.waiting += 1
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if request.path == "/unread":
            return web.Response()
        if request.path == "/broken":
            raise ConnectionResetError("of the API server")
        if request.path == "/stream":
            response = web.StreamResponse()
            await response.prepare(request)
            await self.released.wait()
            for _ in range(10):
                await response.write(b"a" * 10**5)
            return response
        try:
            body = await read_body(request, bytes_max=10)
        except TimeoutError:
            return web.Response(status=408)
        if body:
            self.bodies.append(body)
        return web.Response(status=413 if body is None else 200, body=body)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def head(self) -> str:
        """Of the next answer; empty if the connection is closed instead."""
        try:
            return (await self._reader.readuntil(b"\r\n\r\n")).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""

    async def status(self) -> int:
        """Of the next answer; 0 if the connection is closed instead."""
        head = await self.head()
        return int(head.split()[1]) if head else 0

    async def closed(self) -> None:
        """Read what is left, and return at the end of the connection."""
        with suppress(ConnectionError):
            await self._reader.read()

    @property
    def is_closed(self) -> bool:
        return self._reader.at_eof() or self._reader.exception() is not None


def run(work: Callable[[ShiftedLoop], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ShiftedLoop)
        await work(loop)

    with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
        runner.run(limited())


def test_three_hundred_half_headers_are_closed_after_the_time_limit() -> None:
    async def work(loop: ShiftedLoop) -> None:
        async with Port() as port:
            clients = [await port.connect(HALF) for _ in range(300)]
            await wait_until(lambda: port.port.connection_count == 300)
            await turns(300 // BEGUN_PER_TURN * 2)
            await loop.pass_time(HEADER_S - 5)
            assert port.port.connection_count == 300
            await loop.pass_time(6)
            await wait_until(lambda: all(client.is_closed for client in clients))
            assert port.port.connection_count == 0
            assert await (await port.connect(WHOLE)).status() == 200

    run(work)


def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    async def work(loop: ShiftedLoop) -> None:
        async with Port() as port:
            idle = await port.connect(WHOLE)
            assert await idle.status() == 200
            busy = await port.connect(request("/wait"))
            await wait_until(lambda: port.waiting == 1)
            await loop.pass_time(HEADER_S + 1)
            await wait_until(lambda: idle.is_closed)
            assert not busy.is_closed
            port.released.set()
            assert await busy.status() == 200

    run(work)


def test_a_silent_handshake_is_closed() -> None:
    async def work(loop: ShiftedLoop) -> None:
        async with Port(tls=server_context()) as port:
            silent = await port.connect()
            await wait_until(lambda: port.port.connection_count == 1)
            await turns()
            await loop.pass_time(HEADER_S + 1)
            await wait_until(lambda: silent.is_closed)
            assert port.port.connection_count == 0

    run(work)


@pytest.mark.parametrize("is_tls", [False, True])
def test_at_the_limit_the_oldest_connection_makes_way(is_tls: bool) -> None:
    async def work(_: ShiftedLoop) -> None:
        refusals: list[None] = []
        tls, trusting = (server_context(), client_context()) if is_tls else (None, None)
        options = {"connections_max": 3, "on_refused": lambda: refusals.append(None)}
        async with Port(tls=tls, **options) as port:
            busy = await port.connect(request("/kept"), ssl=trusting)
            await wait_until(lambda: port.waiting == 1)
            # The first byte of a handshake.
            first = await port.connect(b"\x16" if is_tls else HALF)
            await wait_until(lambda: port.port.connection_count == 2)
            second = await port.connect(HALF, ssl=trusting)
            await wait_until(lambda: port.port.connection_count == 3)
            probe = await port.connect(WHOLE, ssl=trusting)
            assert await probe.status() == 200
            await wait_until(lambda: first.is_closed)
            assert not second.is_closed
            assert not busy.is_closed
            assert (len(refusals), port.port.refused_count) == (1, 1)

    run(work)


def test_the_oldest_request_without_credentials_makes_way() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port(connections_max=3, cancels_handlers=True) as port:
            clients = [await port.connect(request(path)) for path in ("/kept", "/wait", "/wait")]
            await wait_until(lambda: port.waiting == 3)
            assert await (await port.connect(WHOLE)).status() == 200
            await wait_until(lambda: clients[1].is_closed)
            assert port.cancelled == 1
            port.released.set()
            assert await clients[0].status() == 200
            assert await clients[2].status() == 200
            assert (port.port.refused_count, port.port.connection_count) == (1, 3)

    run(work)


def test_not_every_connection_can_be_kept() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port(connections_max=16, cancels_handlers=True) as port:
            clients = [await port.connect(request("/kept")) for _ in range(16)]
            await wait_until(lambda: port.waiting == 16)
            for _each in range(20):
                assert await (await port.connect(WHOLE)).status() == 200
            port.released.set()
            answers = [await client.status() for client in clients]
            assert sorted(answers) == [0] * 2 + [200] * 14

    run(work)


def test_a_kept_connection_makes_way_once_it_is_answered() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port(connections_max=2) as port:
            first = await port.connect(request("/kept"))
            await wait_until(lambda: port.waiting == 1)
            port.released.set()
            assert await first.status() == 200
            for _each in range(2):
                assert await (await port.connect(WHOLE)).status() == 200
            await wait_until(lambda: first.is_closed)

    run(work)


def test_a_burst_beyond_the_limit_leaves_as_many_as_there_may_be() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port(connections_max=20) as port:
            clients = [await port.connect(HALF) for _ in range(100)]
            await wait_until(lambda: port.port.refused_count == 80)
            await wait_until(lambda: sum(client.is_closed for client in clients) == 80)
            assert port.port.connection_count == 20

    run(work)


def test_a_half_handshake_takes_little_memory() -> None:
    count = 40

    async def work(_: ShiftedLoop) -> None:
        async with Port(tls=server_context()) as port:
            await (await port.connect(b"\x16")).writer.drain()
            await turns()
            tracemalloc.start()
            try:
                for _each in range(count):
                    await port.connect(b"\x16")
                await wait_until(lambda: port.port.connection_count == count + 1)
                await turns(100)
                size, _peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert size < count * 2 * TLS_BUFFER_BYTES

    run(work)


def test_silent_connections_make_way_at_a_limit_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_port, "ACCEPTED_MAX", 5)

    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            clients = [await port.connect() for _ in range(8)]
            await wait_until(lambda: port.port.refused_count == 3)
            await wait_until(lambda: all(client.is_closed for client in clients[:3]))
            assert not any(client.is_closed for client in clients[3:])
            assert await (await port.connect(WHOLE)).status() == 200

    run(work)


@pytest.mark.parametrize(
    ("body", "passed_s", "status"),
    [
        pytest.param(b"Content-Length: 2\r\n\r\nab", 0, 200, id="whole"),
        pytest.param(b"Content-Length: 2\r\n\r\na", BODY_S + 1, 408, id="half"),
        pytest.param(b"Content-Length: 11\r\n\r\n" + b"a" * 11, 0, 413, id="too-long"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n", BODY_S + 1, 408, id="no-chunk"),
        pytest.param(
            b"Transfer-Encoding: chunked\r\n\r\n6\r\naaaaaa\r\n6\r\naaaaaa\r\n", 0, 413, id="chunks"
        ),
    ],
)
def test_bodies_have_a_limit_of_size_and_time(body: bytes, passed_s: float, status: int) -> None:
    async def work(loop: ShiftedLoop) -> None:
        async with Port() as port:
            client = await port.connect(b"PUT / HTTP/1.1\r\nHost: a\r\n" + body)
            await turns(200)
            await loop.pass_time(passed_s)
            assert await client.status() == status

    run(work)


@pytest.mark.parametrize(
    ("coding", "status"),
    [
        ("gzip", 415),
        ("GZIP", 415),
        ("deflate", 415),
        ("br", 415),
        ("zstd", 415),
        ("unknown", 415),
        ("identity, gzip", 415),
        ("identity\r\nContent-Encoding: gzip", 415),
        ("identity", 200),
        ("", 200),
    ],
)
@pytest.mark.parametrize("length", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_packed_body_is_refused_and_not_unpacked(coding: str, status: int, length: str) -> None:
    body = b"5\r\nabcde\r\n0\r\n\r\n" if "chunked" in length else b"abcde"
    head = request("/", f"Content-Encoding: {coding}", length, method="POST")

    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            client = await port.connect(head + body)
            assert await client.status() == status
            assert port.bodies == ([b"abcde"] if status == 200 else [])
            if status == 415:
                await client.closed()

    run(work)


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_body_that_no_handler_reads_is_not_read(is_tls: bool) -> None:
    async def work(_: ShiftedLoop) -> None:
        tls, trusting = (server_context(), client_context()) if is_tls else (None, None)
        async with Port(tls=tls) as port:
            head = request("/unread", f"Content-Length: {10**9}", method="PUT")
            client = await port.connect(head + b"a" * 100, ssl=trusting)
            assert "Connection: close" in await client.head()
            await wait_until(lambda: client.is_closed)
            await wait_until(lambda: port.port.connection_count == 0)

    run(work)


def test_a_small_body_that_is_there_keeps_the_connection() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            client = await port.connect(request("/unread", "Content-Length: 3") + b"abc" + WHOLE)
            assert [await client.status(), await client.status()] == [200, 200]

    run(work)


@pytest.mark.parametrize("path", ["/unread", "/stream", "/wrong path"])
def test_no_answer_names_the_versions_of_what_answers(path: str) -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            head = await (await port.connect(request(path))).head()
            assert "Content-Length" in head or "chunked" in head
            assert "Server:" not in head

    run(work)


def test_a_client_that_does_not_wait_for_answers_is_closed() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            few = await port.connect(WHOLE * PIPELINED_MAX)
            assert [await few.status() for _ in range(PIPELINED_MAX)] == [200] * PIPELINED_MAX
            many = await port.connect(WHOLE * 1000)
            assert [await many.status(), await many.status()] == [200, 0]

    run(work)


def test_clients_that_read_no_answers_do_not_keep_probes_out() -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port(connections_max=8) as port:
            # Some at a time as many as may be sent, the others more; none reads.
            flooding = [WHOLE * PIPELINED_MAX, WHOLE * 1000] * 8
            for sent in flooding:
                await port.connect(sent)
            for _each in range(3):
                assert await (await port.connect(WHOLE)).status() == 200
            assert port.port.connection_count <= 8

    run(work)


@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("cancels_handlers", [False, True])
def test_clients_that_leave_are_not_logged(
    is_tls: bool, cancels_handlers: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(_: ShiftedLoop) -> None:
        tls, trusting = (server_context(), client_context()) if is_tls else (None, None)
        async with Port(tls=tls, cancels_handlers=cancels_handlers) as port:
            half = request("/", "Content-Length: 5", method="POST") + b"a"
            for sent in (b"", HALF, half, request("/wait"), request("/stream"), WHOLE * 400):
                client = await port.connect(sent, ssl=trusting)
                await turns()
                client.writer.transport.abort()
                client = await port.connect(sent, ssl=trusting)
                await turns()
                client.writer.close()
            port.released.set()
            await wait_until(lambda: port.port.connection_count == 0)

    run(work)
    assert [record.getMessage() for record in caplog.records if record.levelno > 10] == []


def test_an_error_of_another_connection_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            assert await (await port.connect(request("/broken"))).status() == 500

    run(work)
    assert "Error handling request" in caplog.text


# --- cipher suites ---

# What kube-scheduler v1.36 accepts by default with a certificate of an elliptic curve.
GO_SUITES = {
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-ECDSA-AES128-SHA",
}


def test_handshakes_of_tls_1_2_have_the_suites_of_go() -> None:
    every = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    every.set_ciphers("ALL:@SECLEVEL=0")
    names = [suite["name"] for suite in every.get_ciphers() if suite["protocol"] != "TLSv1.3"]
    assert len(names) > 20

    async def work(_: ShiftedLoop) -> None:
        accepted: set[str] = set()
        async with Port(tls=server_context()) as port:
            for name in names:
                try:
                    client = await port.connect(WHOLE, ssl=client_context(name))
                except (ssl.SSLError, ConnectionError):
                    continue
                accepted.add(client.writer.get_extra_info("cipher")[0])
        assert accepted == GO_SUITES

    run(work)


def server_context() -> ssl.SSLContext:
    return self_signed(["localhost"], now_ns=SystemClock().now_ns()).server_context()


def client_context(suite: str = CIPHERS) -> ssl.SSLContext:
    """Trusts any server and offers these suites of TLS 1.2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{suite}:@SECLEVEL=0")
    return context


@pytest.mark.parametrize("turns_passed", range(6))
def test_a_connection_that_arrives_at_the_end_is_closed(turns_passed: int) -> None:
    async def work(_: ShiftedLoop) -> None:
        async with Port() as port:
            await turns()
            client = socket.create_connection(port.address)
            client.setblocking(False)
            await turns(turns_passed)
            await port.port.stop_listening()
            await port.port.close(timeout_s=0)
            await turns()
            with client, suppress(ConnectionError):
                assert client.recv(1) == b""

    run(work)
