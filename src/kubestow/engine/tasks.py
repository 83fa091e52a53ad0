"""Work that runs beside the scheduling loop: bindings, writes, evictions."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from kubestow.clock import Clock

log = logging.getLogger(__name__)


class BackgroundTasks:
    """The tasks of one scheduler. A failure of one is logged and ends nothing else."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The event loop itself holds its tasks weakly: without this set they could be collected.
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the scheduling loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs: all bindings and writes have ended."""
        return not self._tasks

    async def drain(self, limit_s: float) -> bool:
        """Wait for what is under way; what takes longer is cancelled.

        Scheduling must have ended, so that only this work itself starts more. Returns whether all
        ended in time.
        """
        # Work may start more work: a failed binding writes the pod's status.
        deadline_s = self._clock.monotonic_s() + limit_s
        while self._tasks and (left_s := deadline_s - self._clock.monotonic_s()) > 0:
            await asyncio.wait(self._tasks, timeout=left_s)
        unfinished = list(self._tasks)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return not unfinished

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A mistake of ours; whatever this work was for, other pods do not depend on it.
            log.error("work beside the scheduling loop failed", exc_info=error)
