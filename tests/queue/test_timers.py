"""The periodic flushes, on an event loop whose time is virtual (spec 02 §1, §4)."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from kubestow.clock import NANOSECONDS
from kubestow.queue.timers import Occupancy, flush_after_each_pause, flush_each_second
from kubestow.testing.clock import nanoseconds as ns

OCCUPIED = Occupancy(["a pod"])


class JumpingSelector(selectors.DefaultSelector):
    """Never waits: what the loop would sleep is added to its time."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "the loop would wait forever"
        self.now_s += max(timeout, 0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, start: float) -> None:
        self._jumping = JumpingSelector()
        self._start_ns = ns(start)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def now_ns(self) -> int:
        return self._start_ns + round(self._jumping.now_s * NANOSECONDS)

    def monotonic_s(self) -> float:
        return self._jumping.now_s

    def block(self, seconds: float) -> None:
        """Pass time as a callback does that keeps the loop busy."""
        self._jumping.now_s += seconds

    def run_for(self, seconds: float, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            task = asyncio.ensure_future(work)
            await asyncio.sleep(seconds)
            task.cancel()

        self.run_until_complete(run())


@pytest.fixture
def make_loop() -> Iterator[Callable[[float], VirtualLoop]]:
    loops: list[VirtualLoop] = []

    def make(start: float) -> VirtualLoop:
        loops.append(VirtualLoop(start))
        return loops[-1]

    yield make
    for loop in loops:
        loop.close()


@pytest.mark.parametrize(
    ("first", "ticks"),
    [
        pytest.param(13, [13, 14, 15], id="Q4-11"),
        pytest.param(13.345, [13.345, 14.345, 15.345], id="Q4-11-gate-off"),
    ],
)
def test_ticks_are_whole_seconds_apart(
    make_loop: Callable[[float], VirtualLoop], first: float, ticks: list[float]
) -> None:
    loop, times = make_loop(12.345), []
    loop.run_for(
        3.2,
        flush_each_second(
            lambda: times.append(loop.now_ns()), OCCUPIED, first_ns=ns(first), clock=loop
        ),
    )
    assert times == [ns(tick) for tick in ticks]


def test_no_tick_comes_early_however_long_the_loop_runs(
    make_loop: Callable[[float], VirtualLoop],
) -> None:
    loop, times = make_loop(1_700_000_000.123456789), []
    first_ns = 1_700_000_001 * NANOSECONDS
    loop.run_for(
        1_000,
        flush_each_second(
            lambda: times.append(loop.now_ns()), OCCUPIED, first_ns=first_ns, clock=loop
        ),
    )
    assert len(times) == 1_000
    late_ns = [time - first_ns - tick * NANOSECONDS for tick, time in enumerate(times)]
    assert min(late_ns) >= 0
    assert max(late_ns) <= 1_000


def test_of_several_missed_ticks_one_is_made_up_for(
    make_loop: Callable[[float], VirtualLoop],
) -> None:
    loop, times = make_loop(0), []

    def flush() -> None:
        times.append(loop.now_ns())
        if len(times) == 1:
            loop.block(3.5)

    loop.run_for(6.2, flush_each_second(flush, OCCUPIED, first_ns=ns(1), clock=loop))
    assert times == [ns(1), ns(4.5), ns(5), ns(6)]


def test_the_pause_starts_at_once_and_counts_from_the_end_of_a_run(
    make_loop: Callable[[float], VirtualLoop],
) -> None:
    loop, times = make_loop(0), []

    def flush() -> None:
        times.append(loop.now_ns())
        loop.block(2)

    loop.run_for(70, flush_after_each_pause(flush, OCCUPIED))
    assert times == [ns(0), ns(32), ns(64)]


@pytest.mark.parametrize(
    ("added_s", "ticks"),
    [
        pytest.param(0.5, [1, 2, 3], id="before-the-first-tick"),
        pytest.param(50.25, [1, 51, 52], id="between-two-ticks"),
        pytest.param(50.0, [1, 50, 51], id="at-a-tick"),
    ],
)
def test_without_pods_ticks_are_left_out_and_the_others_stay_where_they_were(
    make_loop: Callable[[float], VirtualLoop], added_s: float, ticks: list[float]
) -> None:
    loop, times, pods = make_loop(0), [], list[str]()
    occupancy = Occupancy(pods)

    def add() -> None:
        pods.append("a pod")
        occupancy.added()

    loop.call_later(added_s, add)
    loop.run_for(
        ticks[-1] + 0.9,
        flush_each_second(
            lambda: times.append(loop.now_ns()), occupancy, first_ns=ns(1), clock=loop
        ),
    )
    assert times == [ns(tick) for tick in ticks]


def test_a_timer_rests_again_when_the_last_pod_is_gone(
    make_loop: Callable[[float], VirtualLoop],
) -> None:
    loop, times, pods = make_loop(0), [], ["a pod"]

    def flush() -> None:
        times.append(loop.now_ns())
        if len(times) == 3:
            pods.clear()

    loop.run_for(100, flush_each_second(flush, Occupancy(pods), first_ns=ns(1), clock=loop))
    assert times == [ns(1), ns(2), ns(3)]


def test_without_pods_pauses_are_longer_by_whole_pauses(
    make_loop: Callable[[float], VirtualLoop],
) -> None:
    loop, times, pods = make_loop(0), [], list[str]()
    occupancy = Occupancy(pods)

    def add() -> None:
        pods.append("a pod")
        occupancy.added()

    loop.call_later(100, add)
    loop.run_for(160, flush_after_each_pause(lambda: times.append(loop.now_ns()), occupancy))
    assert times == [ns(0), ns(120), ns(150)]
