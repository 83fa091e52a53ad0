"""Work that runs on another thread's loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubestow.clock import SystemClock
from kubestow.service.loops import LoopThread, LoopThreads, SharedLoops

LIMIT_S = 300


def run(main: Callable[[LoopThread], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        control = LoopThread("control")
        try:
            async with asyncio.timeout(LIMIT_S):
                await main(control)
        finally:
            control.close()

    asyncio.run(limited())


def test_work_runs_in_the_other_thread_and_back() -> None:
    async def thread_name() -> str:
        return threading.current_thread().name

    async def main(control: LoopThread) -> None:
        async def there_and_back() -> tuple[str, str]:
            return await thread_name(), await control.run_on_scheduler(thread_name())

        here = threading.current_thread().name
        assert await control.run(there_and_back()) == ("control", here)

    run(main)


def test_errors_come_back() -> None:
    async def broken() -> None:
        raise KeyError("a")

    async def main(control: LoopThread) -> None:
        with pytest.raises(KeyError):
            await control.run(broken())

    run(main)


def test_cancelled_work_ends_before_its_caller_does() -> None:
    async def main(control: LoopThread) -> None:
        started, steps = threading.Event(), list[str]()

        async def work() -> None:
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                steps.append("cleaned up")

        task = asyncio.create_task(control.run(work()))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["cleaned up"]

    run(main)


def test_work_that_is_cancelled_there_is_cancelled_here() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def main(control: LoopThread) -> None:
        with pytest.raises(asyncio.CancelledError):
            await control.run(cancelled())

    run(main)


def test_closing_ends_what_was_spawned() -> None:
    steps: list[str] = []

    async def main(control: LoopThread) -> None:
        started = threading.Event()

        async def work() -> None:
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                steps.append("ended")

        control.spawn(work())
        await asyncio.to_thread(started.wait)

    run(main)
    assert steps == ["ended"]


def test_a_shared_loop_stays_in_the_same_task() -> None:
    async def task() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    async def main() -> None:
        shared = SharedLoops()
        assert await shared.control.run(task()) is asyncio.current_task()
        assert await shared.port.run_on_scheduler(task()) is asyncio.current_task()
        assert shared.stall() is None

    asyncio.run(main())


def test_a_busy_loop_keeps_no_other_waiting() -> None:
    async def thread_name() -> str:
        return threading.current_thread().name

    async def main() -> None:
        loops = LoopThreads(SystemClock())
        go_on = threading.Event()

        async def busy() -> None:
            go_on.wait()

        try:
            loops.port.spawn(busy())
            async with asyncio.timeout(LIMIT_S):
                assert await loops.control.run(thread_name()) == "control"
            go_on.set()
            assert await loops.port.run(thread_name()) == "port"
        finally:
            go_on.set()
            loops.close()

    asyncio.run(main())
