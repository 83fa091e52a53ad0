"""A cycle in turns with the loop: it computes while the loop stands still, and waits while not."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from kubestow.engine.waiting_cycle import WaitingCycles


def run(main: Callable[[WaitingCycles], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(300):
            await main(WaitingCycles())

    asyncio.run(limited())


def test_the_loop_goes_on_only_while_the_cycle_waits() -> None:
    async def main(cycles: WaitingCycles) -> None:
        steps: list[str] = []
        first: Future[str] = Future()
        second: Future[str] = Future()

        async def beside() -> None:
            steps.append("loop")
            first.set_result("a")
            await asyncio.sleep(0)
            steps.append("loop")
            second.set_result("b")

        def cycle() -> str:
            steps.append("cycle")
            assert not cycles.are_idle.is_set()
            got = cycles.wait(first)
            steps.append("cycle")
            return got + cycles.wait(second)

        asyncio.get_running_loop().create_task(beside())
        assert await cycles.run(cycle) == "ab"
        assert cycles.are_idle.is_set()
        assert steps.count("loop") == 2
        assert steps[:2] == ["cycle", "loop"]

    run(main)


def test_errors_of_answers_and_of_the_cycle_arrive() -> None:
    async def main(cycles: WaitingCycles) -> None:
        failed: Future[str] = Future()
        failed.set_exception(KeyError("a"))

        def cycle() -> None:
            with pytest.raises(KeyError):
                cycles.wait(failed)
            raise ValueError("b")

        with pytest.raises(ValueError, match="b"):
            await cycles.run(cycle)
        assert await cycles.run(lambda: 1) == 1

    run(main)


def test_cancelling_ends_a_cycle_that_waits() -> None:
    async def main(cycles: WaitingCycles) -> None:
        steps: list[str] = []

        def cycle() -> None:
            try:
                cycles.wait(Future())
            except Exception:  # As in code that expects any error of an extender.
                steps.append("went on")
            except BaseException:  # As around plugins: the cycle ends all the same.
                with pytest.raises(asyncio.CancelledError):
                    cycles.wait(Future())
                raise
            finally:
                steps.append("ended")

        task = asyncio.create_task(cycles.run(cycle))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["ended"]
        assert cycles.are_idle.is_set()

    run(main)


def test_a_cycle_starts_tasks_of_the_loop() -> None:
    async def main(cycles: WaitingCycles) -> None:
        async def work() -> str:
            return "done"

        task = await cycles.run(lambda: asyncio.get_running_loop().create_task(work()))
        assert await task == "done"

    run(main)


def test_outside_of_a_cycle_waiting_blocks() -> None:
    answer: Future[int] = Future()
    answer.set_result(3)
    assert WaitingCycles().wait(answer) == 3
