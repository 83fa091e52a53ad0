"""The loops of a scheduler process: what must not wait for what runs apart.

    main thread      scheduler's loop   watches, cycles, bindings, events
    control thread   control loop       the lease, the limit for a stop; it serves no client
    port thread      port's loop        HTTPS: handshakes, health, reviews, pages

A cycle runs to its end without giving its loop back. One that takes half a minute (a slow plugin,
a hostile pod) would lose the lease, fail the liveness probe and ignore SIGTERM if these waited for
the same loop. The port is open to every client of the network: as many of them as it accepts keep
its loop busy, and the lease does not wait for that either. Each loop has its own connections, since
a connection belongs to one loop.

All loops share the interpreter: C code that keeps the interpreter's lock stops all of them.

In virtual time there is one loop for everything (`SharedLoops`).
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


class OtherLoop(Protocol):
    """Runs work on another loop; cancelling the waiting task cancels the work."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Called on the scheduler's loop: run work on the other loop."""
        ...

    async def run_on_scheduler(self, work: Coroutine[Any, Any, T]) -> T:
        """Called on the other loop: run work on the scheduler's loop."""
        ...


class Loops(Protocol):
    @property
    def control(self) -> OtherLoop: ...

    @property
    def port(self) -> OtherLoop: ...

    def post(self, function: Callable[[], None]) -> None:
        """Called on any loop: call a function on the scheduler's loop."""
        ...

    def stall(self) -> str | None:
        """What the scheduler's loop is stuck in; None while it moves."""
        ...


class SharedLoop:
    """The scheduler's loop, as if it were another one."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    async def run_on_scheduler(self, work: Coroutine[Any, Any, T]) -> T:
        return await work


class SharedLoops:
    """One loop for everything."""

    def __init__(self) -> None:
        self.control = self.port = SharedLoop()

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


class LoopThreads:
    """A thread for each loop, and what finds out whether the scheduler's loop moves.

    Made on the scheduler's loop.
    """

    def __init__(self, clock: Clock) -> None:
        self.control = LoopThread("control")
        self.port = LoopThread("port")
        self._watchdog = Watchdog(clock)
        self._scheduler = asyncio.get_running_loop()
        self._beat = self._scheduler.create_task(self._watchdog.beat())
        self.port.spawn(self._watchdog.watch())

    def post(self, function: Callable[[], None]) -> None:
        self._scheduler.call_soon_threadsafe(function)

    def stall(self) -> str | None:
        return self._watchdog.error()

    def close(self) -> None:
        self._beat.cancel()
        self.port.close()
        self.control.close()


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
