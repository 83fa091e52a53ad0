"""A loop whose time is paused and sped up."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from kubestow.simulator.paced_time import PAUSED, UNLIMITED, PacedLoop
from kubestow.testing import ManualClock


def run(work: Coroutine[Any, Any, None], speed: float, real: ManualClock | None = None) -> None:
    with asyncio.Runner(loop_factory=lambda: PacedLoop(speed, real=real)) as runner:
        runner.run(work)


def paced() -> PacedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PacedLoop)
    return loop


def test_time_passes_at_a_factor_and_goes_on_evenly_when_that_changes():
    real = ManualClock()

    async def main() -> None:
        loop = paced()
        real.advance_s(2)
        assert loop.time() == 20
        loop.set_speed(0.5)
        assert loop.time() == 20
        real.advance_s(4)
        assert loop.time() == 22
        loop.set_speed(PAUSED)
        real.advance_s(100)
        assert loop.time() == 22
        loop.set_speed(1)
        real.advance_s(1)
        assert loop.time() == 23

    run(main(), 10, real)


def test_a_timer_waits_for_real_time_divided_by_the_speed():
    async def main() -> None:
        loop = paced()
        assert loop.real_wait_s(10) == 2.5
        assert loop.real_wait_s(None) is None
        loop.set_speed(PAUSED)
        assert loop.real_wait_s(10) is None
        loop.set_speed(UNLIMITED)
        assert loop.real_wait_s(10) == 0

    run(main(), 4)


def test_without_a_limit_timers_end_at_once():
    async def main() -> None:
        await asyncio.sleep(86_400)
        assert paced().time() == 86_400

    run(main(), UNLIMITED)


def test_while_time_stands_still_other_threads_are_served_and_timers_wait():
    async def main() -> None:
        loop, asked = paced(), asyncio.Event()
        sleeping = asyncio.create_task(asyncio.sleep(0.001))
        await asyncio.sleep(0)
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(asked.set))
        thread.start()
        await asked.wait()
        thread.join()
        assert not sleeping.done()
        loop.set_speed(UNLIMITED)
        await sleeping

    run(main(), PAUSED)
