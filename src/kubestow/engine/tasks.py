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
        # The event loop holds its tasks weakly: without this set they could be collected.
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    async def drain(self, limit_s: float) -> bool:
        """Wait for the running tasks and cancel those that take longer; whether all ended in time.

        Scheduling must have ended, so that only these tasks start more.
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
            # A bug in the scheduler; other pods do not depend on this task.
            log.error("work beside the scheduling loop failed", exc_info=error)
