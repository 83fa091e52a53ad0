"""Time jumps from timer to timer, and waiting without a timer is an error."""

import asyncio
import math

import pytest

from kubestow.simulator.virtual_time import (
    CANCELLED_MAX,
    EPOCH,
    StalledError,
    VirtualClock,
    VirtualTimeLoop,
    run_in_virtual_time,
)


def test_an_hour_passes_at_once() -> None:
    async def sleep_long() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(3600)
        return loop.time() - before

    assert run_in_virtual_time(sleep_long()) == pytest.approx(3600)


def test_timers_fire_in_order() -> None:
    async def race() -> list[str]:
        order: list[str] = []

        async def runner(name: str, pause_s: float) -> None:
            await asyncio.sleep(pause_s)
            order.append(name)

        await asyncio.gather(runner("slow", 5), runner("quick", 1), runner("middle", 3))
        return order

    assert run_in_virtual_time(race()) == ["quick", "middle", "slow"]


def test_the_clock_follows_the_loop_and_never_repeats_itself() -> None:
    async def read() -> list[int]:
        clock = VirtualClock(asyncio.get_running_loop())
        first, second = clock.now_ns(), clock.now_ns()
        await asyncio.sleep(2)
        return [first, second, clock.now_ns()]

    first, second, third = run_in_virtual_time(read())
    assert first == round(EPOCH.timestamp()) * 10**9
    assert second > first
    assert third == first + 2 * 10**9


def test_the_wall_clock_can_be_set_and_the_other_goes_on() -> None:
    async def read() -> list[float]:
        clock = VirtualClock(asyncio.get_running_loop(), start_ns=7)
        await asyncio.sleep(2)
        clock.set(-(10**9))
        return [clock.now_ns(), clock.monotonic_s()]

    assert run_in_virtual_time(read()) == [7 + 10**9, 2]


def test_waiting_without_a_timer_is_an_error() -> None:
    async def wait_without_a_timer() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StalledError):
        run_in_virtual_time(wait_without_a_timer())


def test_no_timer_ends_before_its_time() -> None:
    """Tasks that wait for the same time, woken just before it, would only wake each other."""
    just_before_s, time_s = math.nextafter(43_200.0, 0), 43_200.0
    woken_s: list[float] = []

    async def until(end_s: float) -> None:
        loop = asyncio.get_running_loop()
        while (left_s := end_s - loop.time()) > 0:
            await asyncio.sleep(left_s)
            woken_s.append(loop.time())

    async def wait() -> None:
        await asyncio.gather(until(just_before_s), until(time_s), until(time_s))

    run_in_virtual_time(wait())
    assert woken_s == [just_before_s, time_s, time_s]


def test_timers_of_one_instant_run_in_the_order_in_which_they_were_set():
    async def work() -> list[int]:
        loop = asyncio.get_running_loop()
        order: list[int] = []
        timers = [loop.call_at(5.0, order.append, number) for number in range(300)]
        for timer in timers[::2]:
            timer.cancel()
        loop.call_at(4.0, lambda: loop.call_at(5.0, order.append, 300))
        await asyncio.sleep(6)
        return order

    assert run_in_virtual_time(work()) == [*range(1, 300, 2), 300]


@pytest.mark.parametrize("has_other_work", [True, False])
def test_what_is_called_next_comes_after_what_is_ready(has_other_work: bool):
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        order: list[str] = []

        def first() -> None:
            if has_other_work:
                loop.call_soon(order.append, "other")
            loop.call_at(5.0, order.append, "timer")
            turn = loop.call_next(lambda: order.append("next"))
            assert (turn is not None) is has_other_work

        loop.call_at(5.0, first)
        await asyncio.sleep(6)
        return order

    assert run_in_virtual_time(work()) == ["other"] * has_other_work + ["next", "timer"]


def test_cancelled_timers_are_not_kept():
    async def work() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        for _ in range(1_000):
            loop.call_later(60, lambda: None).cancel()
        return len(loop._timers)

    assert run_in_virtual_time(work()) <= CANCELLED_MAX + 1
