"""Readers of the stream: order, gaps, limits."""

import asyncio

import pytest

from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.web import hub as hub_module
from kubestow.web.hub import READERS_MAX, Hub, TooManyReadersError


def frame(seq: int) -> bytes:
    return b"id: %d\ndata: {}\n\n" % seq


def published(*numbers: int) -> Hub:
    hub = Hub()
    for number in numbers:
        hub.publish(number, b"{}")
    return hub


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(0, frame(1) + frame(2) + frame(3), id="all"),
        pytest.param(2, frame(3), id="the-last"),
        pytest.param(9, b'event: reset\nid: 3\ndata: {"dropped": 0}\n\n', id="of-another-start"),
    ],
)
def test_a_reader_gets_what_follows(since: int, expected: bytes):
    async def main() -> bytes:
        return await anext(published(1, 2, 3).frames(since))

    assert run_in_virtual_time(main()) == expected


def test_readers_wait_for_the_next_batch_and_get_all_in_order():
    async def main() -> None:
        hub = Hub()
        received: list[list[bytes]] = [[], []]

        async def read(into: list[bytes]) -> None:
            into.extend([frames async for frames in hub.frames(0)])

        async with asyncio.TaskGroup() as group:
            for into in received:
                group.create_task(read(into))
            for number in range(1, 50):
                hub.publish(number, b"{}")
                if number % 3:
                    await asyncio.sleep(0)
            await asyncio.sleep(1)
            hub.close()
        for into in received:
            assert b"".join(into) == b"".join(frame(number) for number in range(1, 50))

    run_in_virtual_time(main())


@pytest.mark.parametrize(("name", "limit"), [("KEPT_BATCHES_MAX", 3), ("KEPT_BYTES_MAX", 50)])
def test_a_slow_reader_gets_one_reset_and_goes_on(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hub_module, name, limit)

    async def main() -> None:
        hub = published(1)
        slow, quick = hub.frames(0), hub.frames(0)
        assert await anext(slow) == await anext(quick) == frame(1)
        for number in range(2, 10):
            hub.publish(number, b"{}")
            assert await anext(quick) == frame(number)
        assert await anext(slow) == b'event: reset\nid: 9\ndata: {"dropped": 8}\n\n'
        hub.publish(10, b"{}")
        assert await anext(slow) == frame(10)
        statistics = hub.statistics()
        assert (statistics.resets, statistics.dropped_batches) == (1, 8)
        assert statistics.batches <= 3
        assert statistics.kept_bytes <= 60

    run_in_virtual_time(main())


def test_a_batch_larger_than_the_limit_is_still_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_module, "KEPT_BYTES_MAX", 10)

    async def main() -> None:
        hub = Hub()
        reader = hub.frames(0)
        hub.publish(1, b"x" * 100)
        assert await anext(reader) == b"id: 1\ndata: " + b"x" * 100 + b"\n\n"

    run_in_virtual_time(main())


def test_after_a_restart_all_readers_are_reset():
    async def main() -> None:
        hub = published(1, 2)
        reader = hub.frames(2)
        hub.reset(3)
        assert await anext(reader) == b'event: reset\nid: 3\ndata: {"dropped": 1}\n\n'
        hub.publish(4, b"{}")
        assert await anext(reader) == frame(4)
        # One that fetched the state after the restart.
        assert await anext(hub.frames(3)) == frame(4)

    run_in_virtual_time(main())


def test_the_number_of_readers_is_limited():
    hub = Hub()
    contexts = [hub.reading() for _ in range(READERS_MAX)]
    for context in contexts:
        context.__enter__()
    with pytest.raises(TooManyReadersError), hub.reading():
        pass
    contexts[0].__exit__(None, None, None)
    with hub.reading():
        assert hub.reader_count == READERS_MAX
