"""Pausing and speeding up the time of a paced loop."""

from collections.abc import Callable

from kubestow.simulator.paced_time import PAUSED, PacedLoop


class PacedTime:
    """`resume` goes on at the speed before the pause."""

    def __init__(self, loop: PacedLoop) -> None:
        self._loop = loop
        self._speed = loop.speed or 1.0
        # Called after each change.
        self.on_change: Callable[[], None] = lambda: None

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def is_paused(self) -> bool:
        return self._loop.speed == PAUSED

    def pause(self) -> None:
        self._loop.set_speed(PAUSED)
        self.on_change()

    def resume(self) -> None:
        self._loop.set_speed(self._speed)
        self.on_change()

    def set_speed(self, factor: float) -> None:
        """Also while time stands still: it then goes on at this speed."""
        self._speed = factor
        self._loop.set_speed(factor)
        self.on_change()
