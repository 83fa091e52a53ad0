"""An event loop whose time passes at a factor of real time, and can stand still.

The scheduler, the controllers and the kubelets of a demo wait on the loop's timers, so all of them
run faster, slower or not at all. Requests of other threads are still served while time stands
still: only timers wait. What takes no time happens also then: a pod that is created is placed.

    PAUSED     0: no timer ends
    1          real time
    UNLIMITED  timers end as soon as there is nothing else to do, as in `virtual_time`

What has to be in real time, such as the limits of an HTTP port, runs on another loop.
"""

import asyncio
import math
import selectors
from collections.abc import Mapping
from typing import Any, Final

from kubestow.clock import Clock, SystemClock

PAUSED: Final = 0.0
UNLIMITED: Final = math.inf


class PacedLoop(asyncio.SelectorEventLoop):
    def __init__(self, speed: float = 1.0, *, real: Clock | None = None) -> None:
        self._real = real or SystemClock()
        self._speed = speed
        # The loop's time when the speed was last set, and the real time then.
        self._since_s = 0.0
        self._since_real_s = self._real.monotonic_s()
        super().__init__(_PacedSelector(self))

    @property
    def speed(self) -> float:
        return self._speed

    def set_speed(self, speed: float) -> None:
        """From now on this many seconds pass in a real second. Called on the loop."""
        assert speed >= 0, speed
        self._since_s = self.time()
        self._since_real_s = self._real.monotonic_s()
        self._speed = speed

    def time(self) -> float:
        if self._speed in (PAUSED, UNLIMITED):
            return self._since_s
        return self._since_s + self._speed * (self._real.monotonic_s() - self._since_real_s)

    def advance(self, seconds: float) -> None:
        """Skip this time, at any speed."""
        self._since_s += seconds

    def real_wait_s(self, timeout_s: float | None) -> float | None:
        """How long to wait in real time for a timer that is due in `timeout_s`; None: no limit."""
        if timeout_s is None or self._speed == PAUSED:
            return None
        return 0.0 if self._speed == UNLIMITED else timeout_s / self._speed

    def jump(self, timeout_s: float) -> None:
        """Nothing is left to do before the next timer."""
        if self._speed == UNLIMITED:
            self._since_s += timeout_s


class _PacedSelector(selectors.BaseSelector):
    def __init__(self, loop: PacedLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return self._real.select(0)
        ready = self._real.select(self._loop.real_wait_s(timeout))
        if not ready and timeout is not None:
            self._loop.jump(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()
