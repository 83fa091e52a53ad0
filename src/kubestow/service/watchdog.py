"""Detects that the scheduler's loop stands still, and finds what it is in.

The loop writes down the time once a second; another thread compares it with the clock. Where the
loop stands is read from the stack of its thread, so a cycle has no additional work.

A plugin call that never returns cannot be ended from outside. `/livez` then fails, so that the
kubelet starts the process again, and the log has the plugin and the pod.
"""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Final, NamedTuple

from kubestow.clock import Clock
from kubestow.logs import inform, warn
from kubestow.queue import QueuedPod

log = logging.getLogger(__name__)

BEAT_S: Final = 1.0
# Later than this, a line is logged.
LATE_S: Final = 5.0
# Later than this, `/livez` fails: as long as upstream tolerates a lease that is not renewed.
STALLED_S: Final = 20.0


class Watchdog:
    def __init__(self, clock: Clock) -> None:
        """Made in the thread of the loop that is watched."""
        self._clock = clock
        self._thread_id = threading.get_ident()
        self._beat_s = clock.monotonic_s()
        self._is_reported = False

    async def beat(self) -> None:
        """Runs on the loop that is watched, until cancelled."""
        while True:
            self._beat_s = self._clock.monotonic_s()
            await asyncio.sleep(BEAT_S)

    async def watch(self) -> None:
        """Runs on another loop, until cancelled: reports when the first one stands still."""
        while True:
            await asyncio.sleep(BEAT_S)
            self.report()

    def error(self) -> str | None:
        """What `/livez` fails with; None while the loop moves."""
        late_s = self._late_s()
        if late_s <= STALLED_S:
            return None
        return f"the scheduling loop has not moved for {late_s:.0f}s{self._place().text}"

    def report(self) -> None:
        """Log the begin and the end of a standstill, once each."""
        late_s = self._late_s()
        if late_s > LATE_S and not self._is_reported:
            self._is_reported = True
            place = self._place()
            warn(
                log,
                "The scheduling loop does not move",
                seconds=round(late_s, 1),
                plugin=place.plugin,
                point=place.point,
                pod=place.pod,
                stack="".join(traceback.format_stack(self._frame())),
            )
        elif late_s <= LATE_S and self._is_reported:
            self._is_reported = False
            inform(log, "The scheduling loop moves again")

    def _late_s(self) -> float:
        return self._clock.monotonic_s() - self._beat_s

    def _place(self) -> "Standstill":
        main = find_place(self._frame())
        if main.plugin:
            return main
        # A cycle with extenders runs in a thread of its own while the loop stands still.
        others = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        places = (find_place(frame) for frame in others.values())
        return next((place for place in places if place.plugin), main)

    def _frame(self) -> FrameType | None:
        # The only way to read another thread's stack; documented despite its private name.
        return sys._current_frames().get(self._thread_id)  # pyright: ignore[reportPrivateUsage]


class Standstill(NamedTuple):
    """Where a cycle stands; empty texts for what is not known."""

    plugin: str = ""
    point: str = ""
    pod: str = ""

    @property
    def text(self) -> str:
        plugin = f' in "{self.point}" of plugin "{self.plugin}"' if self.plugin else ""
        return plugin + (f' for pod "{self.pod}"' if self.pod else "")


def find_place(frame: FrameType | None) -> Standstill:
    """The plugin method and the pod of a stack, from its innermost frame."""
    pod = plugin = point = ""
    for called in reversed([*_frames(frame)]):
        values = called.f_locals
        queued_pod = values.get("queued_pod")
        if not pod and isinstance(queued_pod, QueuedPod):
            metadata = queued_pod.pod.metadata
            pod = f"{metadata.namespace}/{metadata.name}"
        # Plugins have their name on the class. The outermost is the one that the cycle called.
        owner: object = values.get("self")
        name = getattr(type(owner), "name", None)
        if pod and not plugin and isinstance(name, str):
            plugin, point = name, called.f_code.co_name
    return Standstill(plugin, point, pod)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
