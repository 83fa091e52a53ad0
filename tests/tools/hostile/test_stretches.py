"""The CPU time of a cycle that has turns with the loop belongs to the loop's stretch."""

import asyncio
import time

from kubestow.clock import SystemClock
from kubestow.engine.waiting_cycle import WaitingCycles
from tools.hostile.stretches import TimedSelector

WORK_S = 0.03


def work() -> None:
    end_s = time.thread_time() + WORK_S
    while time.thread_time() < end_s:
        pass


def test_parts_of_a_cycle_count_each_for_its_stretch() -> None:
    selector = TimedSelector(SystemClock())

    async def main() -> None:
        cycles = WaitingCycles()
        cycles.on_turn = selector.note_turn
        await asyncio.sleep(0)
        selector.reset()

        def cycle() -> None:
            for _ in range(4):
                work()
                cycles.give_way()

        await cycles.run(cycle)
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())
    assert selector.total_cpu_s >= 4 * WORK_S
    assert WORK_S <= selector.longest_cpu_s < 3 * WORK_S
