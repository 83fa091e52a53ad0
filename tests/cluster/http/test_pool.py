"""Connections are reused, limited, and closed when they must not be used again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubestow.cluster.http.connection import SilenceLimits
from kubestow.cluster.http.dial import Dialer
from kubestow.cluster.http.pool import CONNECTIONS_MAX, IDLE_S_MAX, ConnectionPool
from kubestow.cluster.http.tls import TlsContexts, TlsSettings
from kubestow.errors import UnreachableError
from kubestow.testing.clock import ManualClock

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Rig:
    """A server that answers requests or holds them back, and a pool of connections to it."""

    server: Any
    pool: ConnectionPool

    def __init__(self, answer: bytes = ANSWER, *, closes: bool = False) -> None:
        self.clock = ManualClock()
        self.arrived: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self.is_held = False
        self._answer = answer
        self._closes = closes

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            if self.is_held:
                self.arrived.put_nowait(writer)
                continue
            writer.write(self._answer)
            if self._closes:
                return


Body = Callable[[Rig], Coroutine[Any, Any, None]]


def served(
    answer: bytes = ANSWER, *, closes: bool = False, connections_max: int = CONNECTIONS_MAX
) -> Callable[[Body], Callable[[Any], None]]:

    def decorate(body: Body) -> Callable[[Any], None]:
        async def main(serve_raw: Any) -> None:
            rig = Rig(answer, closes=closes)
            async with serve_raw(rig.talk) as rig.server:
                dialer = Dialer(rig.server.url, TlsContexts(TlsSettings()))
                rig.pool = ConnectionPool(dialer.dial, rig.clock, connections_max=connections_max)
                await body(rig)
                rig.pool.close()

        def run(serve_raw: Any) -> None:
            asyncio.run(main(serve_raw))

        run.__name__ = body.__name__
        return run

    return decorate


@served()
async def test_one_after_the_other_needs_one_connection(rig: Rig) -> None:
    for _ in range(5):
        assert (await rig.pool.exchange(REQUEST)).body == b"ok"
    assert rig.server.connection_count == rig.pool.dialled_count == 1


@served(connections_max=2)
async def test_a_burst_opens_up_to_the_limit_and_the_rest_wait(rig: Rig) -> None:
    rig.is_held = True
    tasks = [asyncio.create_task(rig.pool.exchange(REQUEST)) for _ in range(5)]
    assert not rig.pool.is_saturated
    for _ in range(5):
        writer = await rig.arrived.get()
        # Three of five wait for the other two, then two, then one.
        assert rig.pool.is_saturated == (sum(not task.done() for task in tasks) > 2)
        writer.write(ANSWER)
    assert [(await task).body for task in tasks] == [b"ok"] * 5
    assert not rig.pool.is_saturated
    assert rig.server.connection_count == 2


@served(connections_max=1)
async def test_a_cancelled_request_takes_its_connection_with_it(rig: Rig) -> None:
    rig.is_held = True
    task = asyncio.create_task(rig.pool.exchange(REQUEST))
    await rig.arrived.get()
    waiting = asyncio.create_task(rig.pool.exchange(REQUEST))
    given_up = asyncio.create_task(rig.pool.exchange(REQUEST))
    await asyncio.sleep(0)
    given_up.cancel()
    task.cancel()
    rig.is_held = False
    assert (await waiting).body == b"ok"
    assert rig.server.connection_count == 2
    for cancelled in (task, given_up):
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert (await rig.pool.exchange(REQUEST)).body == b"ok"


@served(connections_max=1)
async def test_a_waiter_cancelled_on_being_served_passes_the_connection_on(rig: Rig) -> None:
    rig.is_held = True

    async def serve_second_then_cancel_it() -> None:
        await rig.pool.exchange(REQUEST)
        second.cancel()

    first = asyncio.create_task(serve_second_then_cancel_it())
    writer = await rig.arrived.get()
    second = asyncio.create_task(rig.pool.exchange(REQUEST))
    third = asyncio.create_task(rig.pool.exchange(REQUEST))
    await asyncio.sleep(0)
    writer.write(ANSWER)
    await first
    (await rig.arrived.get()).write(ANSWER)
    assert (await third).body == b"ok"
    assert second.cancelled()
    assert rig.server.connection_count == 1


@served(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", closes=True)
async def test_a_server_that_closes_after_each_answer(rig: Rig) -> None:
    for _ in range(3):
        assert (await rig.pool.exchange(REQUEST)).body == b"ok"
    assert rig.server.connection_count == 3


@served(b"HTTP/1.0 200 OK\r\n\r\nall of it", closes=True)
async def test_a_body_that_ends_with_the_connection(rig: Rig) -> None:
    assert (await rig.pool.exchange(REQUEST)).body == b"all of it"


@served()
async def test_a_connection_idle_for_long_is_not_used(rig: Rig) -> None:
    await rig.pool.exchange(REQUEST)
    rig.clock.advance_s(IDLE_S_MAX)
    await rig.pool.exchange(REQUEST)
    assert rig.server.connection_count == 1
    rig.clock.advance_s(IDLE_S_MAX + 1)
    await rig.pool.exchange(REQUEST)
    assert rig.server.connection_count == 2
    rig.pool.drop_idle()
    await rig.pool.exchange(REQUEST)
    assert rig.server.connection_count == 3


@served(ANSWER[:-1], closes=True, connections_max=1)
async def test_a_server_that_breaks_off_in_the_middle(rig: Rig) -> None:
    for _ in range(2):
        with pytest.raises(UnreachableError, match="broke off: the connection ended") as caught:
            await rig.pool.exchange(REQUEST)
        assert caught.value.cause == "broken off"


@served(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
async def test_a_server_that_sends_no_http(rig: Rig) -> None:
    with pytest.raises(UnreachableError, match="sent no valid HTTP answer"):
        await rig.pool.exchange(REQUEST)


@served()
async def test_a_failed_dial_does_not_use_up_the_limit(rig: Rig) -> None:
    calls = 0
    dialer = Dialer(rig.server.url, TlsContexts(TlsSettings()))

    async def dial() -> Any:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise UnreachableError("not yet")
        return await dialer.dial()

    pool = ConnectionPool(dial, rig.clock, connections_max=1)
    for _ in range(2):
        with pytest.raises(UnreachableError):
            await pool.exchange(REQUEST)
    assert (await pool.exchange(REQUEST)).body == b"ok"
    pool.close()


@served()
async def test_data_without_a_request_ends_an_idle_connection(rig: Rig) -> None:
    rig.is_held = True
    task = asyncio.create_task(rig.pool.exchange(REQUEST))
    writer = await rig.arrived.get()
    writer.write(ANSWER)
    await task
    writer.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    await writer.wait_closed()  # the client hangs up
    rig.is_held = False
    assert (await rig.pool.exchange(REQUEST)).body == b"ok"
    assert rig.server.connection_count == 2


@served()
async def test_closing_completes_requests_in_progress(rig: Rig) -> None:
    rig.is_held = True
    task = asyncio.create_task(rig.pool.exchange(REQUEST))
    writer = await rig.arrived.get()
    rig.pool.close()
    writer.write(ANSWER)
    assert (await task).body == b"ok"
    await writer.wait_closed()  # the client hangs up


# --- connections on which nothing moves ---------------------------------------------------------

LIMITS = SilenceLimits(check_s=1.0, answer_s=3.0, stream_s=5.0)
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Stream:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.error: UnreachableError | None = None
        self.has_ended = asyncio.Event()

    def feed(self, data: bytes) -> None:
        self.pieces.append(data)

    def end(self, error: UnreachableError | None) -> None:
        self.error = error
        self.has_ended.set()


def test_a_request_without_an_answer_is_given_up(serve_raw: Any) -> None:
    async def main() -> None:
        rig = Rig()
        rig.is_held = True
        async with serve_raw(rig.talk) as server:
            dialer = Dialer(server.url, TlsContexts(TlsSettings()))
            quick = SilenceLimits(check_s=0.001, answer_s=0.02, stream_s=1.0)
            pool = ConnectionPool(dialer.dial, rig.clock, connections_max=1, silence=quick)
            with pytest.raises(UnreachableError, match=r"nothing arrived from .* for 0\.02 s"):
                await pool.exchange(REQUEST)
            rig.is_held = False
            # The place in the pool is free again.
            assert (await pool.exchange(REQUEST)).body == b"ok"
            pool.close()

    asyncio.run(main())


@served()
async def test_only_checks_in_silence_count(rig: Rig) -> None:
    rig.is_held = True
    connection = await rig.pool._open()
    answer = asyncio.create_task(connection.exchange(REQUEST))
    await rig.arrived.get()
    for _ in range(3):  # The first one finds the request that was sent.
        connection.check_silence(LIMITS)
    assert not answer.done()
    connection.data_received(ANSWER[:20])
    for _ in range(3):
        connection.check_silence(LIMITS)
    connection.data_received(ANSWER[20:])
    assert (await answer).body == b"ok"
    for _ in range(10):  # An idle connection may be silent.
        connection.check_silence(LIMITS)
    assert connection.is_usable
    connection.close()


@served(HEAD)
async def test_a_silent_stream_ends_but_not_one_that_is_not_read(rig: Rig) -> None:
    stream = Stream()
    _, connection = await rig.pool.stream(REQUEST, stream)
    connection.pause()
    for _ in range(10):
        connection.check_silence(LIMITS)
    connection.resume()
    for _ in range(4):
        connection.check_silence(LIMITS)
    assert not stream.has_ended.is_set()
    for _ in range(2):
        connection.check_silence(LIMITS)
    await stream.has_ended.wait()
    assert stream.error is not None
    assert stream.error.cause == "broken off"
