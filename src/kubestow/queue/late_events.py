"""Events that were not finished in their turn of the loop: they go on in later turns.

Users decide how many pods wait, and how long the hints of each take, so one event may take longer
than a turn. What came first is finished first.
Not here: what an event does to the pods (`queue` passes that as a function).
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from kubestow.queue.interest import Audience
from kubestow.queue.parked import ParkedPod

# How many events can wait.
LATE_EVENTS_MAX: Final = 1_024


class Move(NamedTuple):
    """An event, and the parked pods that it may move and that have not been judged yet."""

    entries: Iterator[ParkedPod]
    audience: Audience
    old: object
    new: object


class ApplyMove(Protocol):
    def __call__(self, move: Move, *, asks: bool = True) -> bool:
        """Go on with a move; False if the time of a turn is over.

        Without `asks` all its pods are moved.
        """
        ...


class LateEvents:
    """`waiting` has the moves that are not finished, oldest first."""

    def __init__(self, apply: ApplyMove) -> None:
        self._apply = apply
        self.waiting: deque[Move] = deque()

    def put_off(self, move: Move) -> None:
        """Go on with the move in a later turn of the loop; without a loop, finish it at once."""
        if not self.waiting:
            try:
                asyncio.get_running_loop().call_soon(self._go_on)
            except RuntimeError:
                while not self._apply(move):
                    pass
                return
        self.waiting.append(move)
        if len(self.waiting) > LATE_EVENTS_MAX:
            # Events come faster than hints answer. Queue is safe, as after a failed hint.
            self._apply(self.waiting.popleft(), asks=False)

    def clear(self) -> None:
        """Forget all moves, because the queue is closed."""
        self.waiting.clear()

    def _go_on(self) -> None:
        if self.waiting and self._apply(self.waiting[0]):
            self.waiting.popleft()
        if self.waiting:
            asyncio.get_running_loop().call_soon(self._go_on)
