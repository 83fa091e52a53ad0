"""Time moves only as far as the replay lets it."""

import asyncio
from typing import Any

import pytest

from kubestow.simulator.conformance.runs.stepped_loop import SteppedLoop
from kubestow.simulator.virtual_time import StalledError


def run_stepped(work: Any) -> Any:
    with asyncio.Runner(loop_factory=lambda: SteppedLoop(start_s=0.5)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SteppedLoop)
        return runner.run(work(loop))


def test_timers_up_to_the_limit_fire_in_order_at_their_time() -> None:
    async def work(loop: SteppedLoop) -> list[tuple[str, float]]:
        fired: list[tuple[str, float]] = []
        for name, delay_s in [("late", 3.0), ("second", 1.0), ("first", 0.25)]:
            loop.call_later(delay_s, lambda name=name: fired.append((name, loop.time())))
        await loop.run_until(1.5)
        assert loop.time() == 1.5
        return fired

    assert run_stepped(work) == [("first", 0.75), ("second", 1.5)]


def test_settling_runs_what_is_ready_and_leaves_the_time() -> None:
    async def work(loop: SteppedLoop) -> tuple[bool, float]:
        gate, passed = asyncio.Event(), asyncio.Event()

        async def chain() -> None:
            await gate.wait()
            await asyncio.sleep(0)
            passed.set()

        task = loop.create_task(chain())
        gate.set()
        await loop.settle()
        await task
        return passed.is_set(), loop.time()

    assert run_stepped(work) == (True, 0.5)


def test_a_replay_that_waits_for_itself_is_reported() -> None:
    async def work(loop: SteppedLoop) -> None:
        await loop.settle()
        await asyncio.Event().wait()

    with pytest.raises(StalledError):
        run_stepped(work)
