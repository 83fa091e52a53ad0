"""Where the lease, the HTTPS port and the end of the process run: apart from scheduling.

    main thread      scheduler's loop   watches, cycles, bindings, events
    control thread   control loop       lease, health, HTTPS, the limit for a stop

A cycle runs to its end without giving its loop back. One that takes half a minute (a slow plugin,
a hostile pod) would lose the lease, fail the liveness probe and ignore SIGTERM if these waited for
the same loop. Each loop has its own connections, since a connection belongs to one loop.

Both loops share the interpreter: C code that keeps the interpreter's lock stops both.

In virtual time there is one loop for everything (`SharedLoop`).
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from kubestow.clock import Clock
from kubestow.service.watchdog import Watchdog

log = logging.getLogger(__name__)

T = TypeVar("T")


class ControlLoop(Protocol):
    """Runs work on the other loop; cancelling the waiting task cancels the work."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Called on the scheduler's loop: run work on the control loop."""
        ...

    async def run_on_scheduler(self, work: Coroutine[Any, Any, T]) -> T:
        """Called on the control loop: run work on the scheduler's loop."""
        ...

    def post(self, function: Callable[[], None]) -> None:
        """Called on the control loop: call a function on the scheduler's loop."""
        ...

    def stall(self) -> str | None:
        """What the scheduler's loop is stuck in; None while it moves."""
        ...


class SharedLoop:
    """One loop for both."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    async def run_on_scheduler(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    def post(self, function: Callable[[], None]) -> None:
        function()

    def stall(self) -> str | None:
        return None  # A loop that can be asked moves.


class LoopThread:
    """A loop in a thread of its own, in real time. Made on the scheduler's loop."""

    def __init__(self, name: str) -> None:
        self._scheduler = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await _run_on(self._loop, work)

    async def run_on_scheduler(self, work: Coroutine[Any, Any, T]) -> T:
        return await _run_on(self._scheduler, work)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work on this loop without waiting for it. For any thread and signals."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def post(self, function: Callable[[], None]) -> None:
        self._scheduler.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the thread; what still runs there is cancelled."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self._loop.close()


class ControlThread(LoopThread):
    """The control loop, which also finds out whether the scheduler's loop moves."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("control")
        self._watchdog = Watchdog(clock)
        self._beat = self._scheduler.create_task(self._watchdog.beat())
        self.spawn(self._watchdog.watch())

    def stall(self) -> str | None:
        return self._watchdog.error()

    def close(self) -> None:
        self._beat.cancel()
        super().close()


async def _run_on(target: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run work as a task of another thread's loop, and wait for its end here."""
    here = asyncio.get_running_loop()
    ended: asyncio.Future[T] = here.create_future()
    tasks: list[asyncio.Task[T]] = []

    def start() -> None:
        task = target.create_task(work)
        tasks.append(task)
        task.add_done_callback(lambda task: here.call_soon_threadsafe(settle, task))

    def settle(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            ended.cancel()
        elif (error := task.exception()) is not None:
            ended.set_exception(error)
        else:
            ended.set_result(task.result())

    target.call_soon_threadsafe(start)
    try:
        await asyncio.wait((ended,))
    except asyncio.CancelledError:
        target.call_soon_threadsafe(lambda: tasks[0].cancel())
        # The work may have to clean up: releasing the lease is part of its end.
        await asyncio.wait((ended,))
        if not ended.cancelled() and (error := ended.exception()) is not None:
            raise error from None
        raise
    return ended.result()
