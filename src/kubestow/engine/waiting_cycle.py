"""Lets a scheduling cycle wait for extenders, or rest, while the event loop goes on.

A cycle is a plain function with extenders deep inside, also in preemption. It runs in a thread of
its own, in strict turns with the loop: the loop stands still while the cycle computes, and goes on
while the cycle waits. So there is never more than one of them at work, and nothing needs a lock.

    loop     ── run ──► stands still     goes on: watches, bindings     stands still   ── result ──►
    cycle                 computes ── wait ──►   (no work)   ── answer ──► computes

A cycle decides as if it had not waited: events of watches are held back until it ends
(`are_idle`), and what bindings change in the cache meanwhile does not reach its snapshot
(`Snapshot.held`).
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from kubestow.errors import CycleCancelledError

T = TypeVar("T")

# How long the loop goes on when a cycle rests. Nothing but bindings and timers are served: pods and
# events of watches wait for the end of the cycle.
REST_S: Final = 0.01


class WaitingCycles:
    """Runs one cycle at a time. `are_idle` is set while there is none."""

    def __init__(self) -> None:
        self.are_idle = asyncio.Event()
        self.are_idle.set()
        self._turn: _Turn | None = None
        # Called in the thread of a cycle when it begins, and before the loop goes on.
        self.on_turn: Callable[[], None] | None = None

    @property
    def is_here(self) -> bool:
        """Whether the caller is a cycle that has turns with the loop."""
        return self._turn is not None and self._turn.is_here

    async def run(self, cycle: Callable[[], T]) -> T:
        """The result of the cycle. If this is cancelled, so is the wait of the cycle."""
        assert self._turn is None, "one cycle at a time"
        turn = self._turn = _Turn(cycle, self.on_turn or _do_nothing)
        self.are_idle.clear()
        try:
            return await turn.run()
        finally:
            self._turn = None
            self.are_idle.set()

    def wait(self, answer: "Future[T]") -> T:
        """The result of the future. Called in a cycle it lets the loop go on, else it blocks."""
        turn = self._turn
        if turn is not None and turn.is_here:
            turn.wait(answer)
        return answer.result()

    def give_way(self) -> None:
        """Let the loop go on for a while; called in a cycle."""
        turn = self._turn
        assert turn is not None
        turn.wait(None)


class _Turn:
    """One cycle, and whose turn it is."""

    def __init__(self, cycle: Callable[[], Any], on_turn: Callable[[], None]) -> None:
        self._cycle = cycle
        self._on_turn = on_turn
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._for_loop = threading.Semaphore(0)
        self._for_cycle = threading.Semaphore(0)
        # Whether the cycle has not ended, and what it waits for; nothing if it only rests.
        self._is_waiting = False
        self._awaited: Future[Any] | None = None
        self._is_cancelled = False
        self._outcome: Future[Any] = Future()
        self._thread = threading.Thread(target=self._work, name="scheduling cycle", daemon=True)

    @property
    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    # --- on the loop ---

    async def run(self) -> Any:
        self._thread.start()
        self._for_loop.acquire()
        try:
            while self._is_waiting:
                if self._awaited is None:
                    await asyncio.sleep(REST_S)
                else:
                    await _settled(self._awaited)
                self._let_cycle_go_on()
        except asyncio.CancelledError:
            self._is_cancelled = True
            self._let_cycle_go_on()
            raise
        finally:
            self._thread.join()
        return self._outcome.result()

    def _let_cycle_go_on(self) -> None:
        self._is_waiting, self._awaited = False, None
        self._for_cycle.release()
        self._for_loop.acquire()

    # --- in the cycle ---

    def _work(self) -> None:
        # Plugins start tasks in a cycle. The loop stands still meanwhile, so that is safe.
        asyncio._set_running_loop(self._loop)  # pyright: ignore[reportPrivateUsage]
        self._on_turn()
        try:
            self._outcome.set_result(self._context.run(self._cycle))
        except BaseException as error:  # Raised again on the loop.
            self._outcome.set_exception(error)
        finally:
            asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
            self._on_turn()
            self._for_loop.release()

    def wait(self, answer: "Future[Any] | None") -> None:
        """Let the loop go on until there is an answer; without one, for a while."""
        # A cancelled cycle may get here again, if a plugin's fault is caught: the loop waits then.
        if not self._is_cancelled:
            self._is_waiting, self._awaited = True, answer
            self._on_turn()
            self._for_loop.release()
            self._for_cycle.acquire()
        if self._is_cancelled:
            if answer is not None:
                answer.cancel()
            raise CycleCancelledError


def _do_nothing() -> None: ...


async def _settled(answer: "Future[Any]") -> None:
    """Return when there is a result or an error; both are for the cycle."""
    here = asyncio.get_running_loop()
    settled = asyncio.Event()

    def wake(_: "Future[Any]") -> None:
        with suppress(RuntimeError):  # The loop has been closed: the process ends.
            here.call_soon_threadsafe(settled.set)

    answer.add_done_callback(wake)
    await settled.wait()
