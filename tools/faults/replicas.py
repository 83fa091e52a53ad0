"""Several processes on one event loop, each of which can be paused or killed at any await.

Every callback belongs to the process in whose context it was scheduled. While a process is paused
its callbacks wait; once it is killed they do not run any more, and nothing of it is cleaned up, as
after `kill -9`. Only when all is over are its tasks ended, so that none is left.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import Any, TypeVar

from kubestow.simulator.virtual_time import StalledError, VirtualTimeLoop

T = TypeVar("T")

_current: "ContextVar[SimulatedProcess | None]" = ContextVar("process", default=None)


class SimulatedProcess:
    """What runs in one context of a `ProcessLoop`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_killed = False
        self._is_paused = False
        self._waiting: list[tuple[Callable[..., object], tuple[Any, ...], Context]] = []
        self._context = copy_context()
        self._context.run(_current.set, self)

    @property
    def is_running(self) -> bool:
        return not (self.is_killed or self._is_paused)

    def call(self, make: Callable[[], T]) -> T:
        """Call a function in the context of the process."""
        return self._context.run(make)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        """Run everything that became due during the pause."""
        self._is_paused = False
        if not self.is_killed:
            self._run_waiting()

    def kill(self) -> None:
        self.is_killed = True

    def bury(self) -> None:
        """Let the tasks of a killed process go on, to be cancelled."""
        self.is_killed = self._is_paused = False
        self._run_waiting()

    def _run_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        for callback, arguments, context in waiting:
            loop.call_soon(callback, *arguments, context=context)

    def run_callback(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context
    ) -> None:
        """Called by the loop, in that context."""
        if self.is_running:
            callback(*arguments)
        else:
            self._waiting.append((callback, arguments, context))


class ProcessLoop(VirtualTimeLoop):
    """Virtual time for several processes."""

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        process = context.get(_current)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(process.run_callback, callback, args, context, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        process = context.get(_current)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, process.run_callback, callback, args, context, context=context)


def run_processes(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop of its own; then what is left is cancelled.

    Raises StalledError with the places of the tasks that wait, if one does not end then.
    """
    runner = asyncio.Runner(loop_factory=ProcessLoop)
    loop = runner.get_loop()
    try:
        with runner:
            result = runner.run(work)
            # Processes that were killed end in any way.
            loop.set_exception_handler(lambda loop, details: None)
            return result
    except StalledError as error:
        places = "; ".join(sorted(map(_place, asyncio.all_tasks(loop))))
        raise StalledError(f"{error}; these tasks wait: {places}") from error


def _place(task: "asyncio.Task[Any]") -> str:
    """The function of a task, and where the innermost one that it calls waits."""
    coroutine: Any = task.get_coro()
    name, place = coroutine.__qualname__, "an awaitable"
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        coroutine = coroutine.cr_await
    return f"{name} at {place}"
