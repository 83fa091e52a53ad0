"""SIGTERM, SIGINT and SIGUSR2 (spec 09 §11), also while a cycle runs.

A handler runs in the main thread between two steps of the interpreter, so it must do little. The
first signal asks the scheduler's loop to stop. If that loop stands still, the control loop ends the
process without it, after releasing the lease. The second signal ends the process at once.
"""

import asyncio
import logging
import os
import signal
from types import FrameType
from typing import Final

from kubestow.logs import inform, warn
from kubestow.service.loops import LoopThread
from kubestow.service.run import ServiceProcess

log = logging.getLogger(__name__)

# How long the scheduler's loop may take to react to a stop request.
REACTION_S: Final = 5.0


def end_at_once() -> None:
    """Signals end the process, as before there was anything to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class StopSignals:
    """Made on the scheduler's loop, in the main thread."""

    def __init__(self, process: ServiceProcess, control: LoopThread) -> None:
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._is_requested = False

    def install(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not by the loop, which would call the handler after the cycle.
            signal.signal(number, self._stop)
        self._loop.add_signal_handler(signal.SIGUSR2, self._process.compare_and_dump)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._is_requested:
            os._exit(1)
        self._is_requested = True
        self._process.is_stopping = True
        self._loop.call_soon_threadsafe(self._process.request_stop)
        self._control.spawn(self._end_without_scheduler())

    async def _end_without_scheduler(self) -> None:
        await asyncio.sleep(REACTION_S)
        process = self._process
        if process.has_reacted:
            return
        warn(log, "The scheduling loop did not stop in time, ending without it")
        code = 1
        if process.leadership is not None:
            await process.leadership.give_up()
            inform(log, "Requested to terminate, exiting")
            code = 0
        logging.shutdown()
        os._exit(code)
