"""Connections are reused, limited, and given up when they must not be used again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubestow.cluster.http.dial import Dialer
from kubestow.cluster.http.pool import IDLE_S_MAX, ConnectionPool
from kubestow.cluster.http.tls import TlsContexts, TlsSettings
from kubestow.errors import UnreachableError
from kubestow.testing.clock import ManualClock

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Rig:
    """A pool and the server it talks to, which answers when told to."""

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

    def pool(self, url: str, **options: Any) -> ConnectionPool:
        dialer = Dialer(url, TlsContexts(TlsSettings()))
        return ConnectionPool(dialer.dial, self.clock, **options)


def run(serve_raw: Any, rig: Rig, body: Callable[[Any], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serve_raw(rig.talk) as server:
            await body(server)

    asyncio.run(main())


def test_one_after_the_other_needs_one_connection(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        pool = rig.pool(server.url)
        for _ in range(5):
            assert (await pool.exchange(REQUEST)).body == b"ok"
        assert server.connection_count == pool.dialled_count == 1
        pool.close()

    run(serve_raw, rig, body)


def test_a_burst_opens_up_to_the_limit_and_the_rest_wait(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        rig.is_held = True
        pool = rig.pool(server.url, connections_max=2)
        tasks = [asyncio.create_task(pool.exchange(REQUEST)) for _ in range(5)]
        for _ in range(5):
            writer = await rig.arrived.get()
            writer.write(ANSWER)
        assert [(await task).body for task in tasks] == [b"ok"] * 5
        assert server.connection_count == 2
        pool.close()

    run(serve_raw, rig, body)


def test_a_cancelled_request_takes_its_connection_with_it(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        rig.is_held = True
        pool = rig.pool(server.url, connections_max=1)
        task = asyncio.create_task(pool.exchange(REQUEST))
        await rig.arrived.get()
        waiting = asyncio.create_task(pool.exchange(REQUEST))
        given_up = asyncio.create_task(pool.exchange(REQUEST))
        await asyncio.sleep(0)
        given_up.cancel()
        task.cancel()
        rig.is_held = False
        assert (await waiting).body == b"ok"
        assert server.connection_count == 2
        for cancelled in (task, given_up):
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        assert (await pool.exchange(REQUEST)).body == b"ok"
        pool.close()

    run(serve_raw, rig, body)


def test_who_is_cancelled_on_being_served_passes_the_connection_on(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        rig.is_held = True
        pool = rig.pool(server.url, connections_max=1)

        async def serve_second_then_cancel_it() -> None:
            await pool.exchange(REQUEST)
            second.cancel()

        first = asyncio.create_task(serve_second_then_cancel_it())
        writer = await rig.arrived.get()
        second = asyncio.create_task(pool.exchange(REQUEST))
        third = asyncio.create_task(pool.exchange(REQUEST))
        await asyncio.sleep(0)
        writer.write(ANSWER)
        await first
        (await rig.arrived.get()).write(ANSWER)
        assert (await third).body == b"ok"
        assert second.cancelled()
        assert server.connection_count == 1
        pool.close()

    run(serve_raw, rig, body)


def test_a_server_that_closes_after_each_answer(serve_raw: Any):
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    rig = Rig(answer, closes=True)

    async def body(server: Any) -> None:
        pool = rig.pool(server.url)
        for _ in range(3):
            assert (await pool.exchange(REQUEST)).body == b"ok"
        assert server.connection_count == 3
        pool.close()

    run(serve_raw, rig, body)


def test_a_body_that_ends_with_the_connection(serve_raw: Any):
    rig = Rig(b"HTTP/1.0 200 OK\r\n\r\nall of it", closes=True)

    async def body(server: Any) -> None:
        pool = rig.pool(server.url)
        assert (await pool.exchange(REQUEST)).body == b"all of it"
        pool.close()

    run(serve_raw, rig, body)


def test_a_connection_idle_for_long_is_not_used(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        pool = rig.pool(server.url)
        await pool.exchange(REQUEST)
        rig.clock.advance_s(IDLE_S_MAX)
        await pool.exchange(REQUEST)
        assert server.connection_count == 1
        rig.clock.advance_s(IDLE_S_MAX + 1)
        await pool.exchange(REQUEST)
        assert server.connection_count == 2
        pool.drop_idle()
        await pool.exchange(REQUEST)
        assert server.connection_count == 3
        pool.close()

    run(serve_raw, rig, body)


def test_a_server_that_breaks_off_in_the_middle(serve_raw: Any):
    rig = Rig(ANSWER[:-1], closes=True)

    async def body(server: Any) -> None:
        pool = rig.pool(server.url, connections_max=1)
        for _ in range(2):
            with pytest.raises(UnreachableError, match="broke off: the connection ended") as caught:
                await pool.exchange(REQUEST)
            assert caught.value.cause == "broken off"

    run(serve_raw, rig, body)


def test_a_server_that_speaks_something_else(serve_raw: Any):
    rig = Rig(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    async def body(server: Any) -> None:
        pool = rig.pool(server.url)
        with pytest.raises(UnreachableError, match="sent what is no HTTP answer"):
            await pool.exchange(REQUEST)

    run(serve_raw, rig, body)


def test_a_failed_dial_leaves_room_for_the_next(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        calls = 0
        dialer = Dialer(server.url, TlsContexts(TlsSettings()))

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

    run(serve_raw, rig, body)


def test_words_nobody_asked_for_end_an_idle_connection(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        rig.is_held = True
        pool = rig.pool(server.url)
        task = asyncio.create_task(pool.exchange(REQUEST))
        writer = await rig.arrived.get()
        writer.write(ANSWER)
        await task
        writer.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        await writer.wait_closed()  # the client hangs up
        rig.is_held = False
        assert (await pool.exchange(REQUEST)).body == b"ok"
        assert server.connection_count == 2
        pool.close()

    run(serve_raw, rig, body)


def test_closing_lets_requests_come_to_their_end(serve_raw: Any):
    rig = Rig()

    async def body(server: Any) -> None:
        rig.is_held = True
        pool = rig.pool(server.url)
        task = asyncio.create_task(pool.exchange(REQUEST))
        writer = await rig.arrived.get()
        pool.close()
        writer.write(ANSWER)
        assert (await task).body == b"ok"
        await writer.wait_closed()  # the client hangs up

    run(serve_raw, rig, body)
