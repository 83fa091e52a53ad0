"""Attempts that take long, in parts with other pods in between.

Cycles are decided one at a time, so a long one would delay all other pods. Where the work of a
plugin is kept (the answers of expensive device selectors, the verdicts on nodes), the attempt is
interrupted after a tenth of a second and made again later, on the cluster as it then is; what was
kept makes it shorter. Where the work is not kept (evictions beside affinity), the attempt is made
again in turns with the event loop (`waiting_cycle`), and other pods wait for its end.

    pod ── cycle ──► set aside ── other pods are served as long ──► cycle ──► … ──► decision

The pod stays in flight, as in any attempt that lasts: it is in no other part of the queue, and
events meanwhile count when the attempt fails. Parts of all attempts together get at most half of
the time. What they take counts for the budget of the attempt.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, NamedTuple

from kubestow.errors import SetAsideError
from kubestow.queue import QueuedPod


class _Part(NamedTuple):
    """`pause_s`: how long other pods are served before the next part."""

    queued_pod: QueuedPod
    pause_s: float
    spent_s: float
    awaited: Future[Any] | None
    in_turns: bool


class SetAside:
    """The attempts that are set aside, resumed one at a time in the order they came."""

    def __init__(
        self,
        resume: Callable[[QueuedPod, float, bool], Awaitable[None]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`resume` is called with what the attempt has taken, in seconds, and whether it goes on in
        turns with the loop."""
        self._resume = resume
        self._spawn = spawn
        self._parts: deque[_Part] = deque()
        self._is_running = False

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, queued_pod: QueuedPod, earlier_s: float, error: SetAsideError) -> None:
        pause_s = error.spent_s - earlier_s
        self._parts.append(_Part(queued_pod, pause_s, error.spent_s, error.awaited, error.in_turns))
        if not self._is_running:
            self._is_running = True
            self._spawn(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._parts:
                queued_pod, pause_s, spent_s, awaited, in_turns = self._parts.popleft()
                await asyncio.sleep(pause_s)
                if awaited is not None:
                    started_s = loop.time()
                    await asyncio.wait((asyncio.wrap_future(awaited),))
                    spent_s += loop.time() - started_s
                await self._resume(queued_pod, spent_s, in_turns)
        finally:
            self._is_running = False
