"""Pausing and speeding up the time of a paced loop."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.simulator.live.forms import EmptyForm, FormInput, done, form_of
from kubestow.simulator.paced_time import PAUSED, UNLIMITED, PacedLoop

SPEED_MIN: Final = 0.1
SPEED_MAX: Final = 1_000.0


class _Speed(FormInput, frozen=True, kw_only=True):
    factor: Annotated[float, msgspec.Meta(ge=SPEED_MIN, le=SPEED_MAX)]


class PacedTime:
    """`resume` goes on at the speed before the pause."""

    def __init__(self, loop: PacedLoop) -> None:
        self._loop = loop
        self._speed = loop.speed or 1.0
        # Called after each change.
        self.on_change: Callable[[], None] = lambda: None

    @property
    def speed(self) -> float:
        """The speed as it is shown: 0 is as fast as possible."""
        return 0.0 if self._speed == UNLIMITED else self._speed

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
        """Set the speed. If time stands still, it goes on at this speed."""
        self._speed = factor
        self._loop.set_speed(factor)
        self.on_change()


class TimeActions:
    """The forms that change how time passes."""

    def __init__(self, time: PacedTime) -> None:
        self._time = time
        self.by_name: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "pause": self._pause,
            "resume": self._resume,
            "speed": self._set_speed,
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.by_name)

    def templates(self) -> JsonObject:
        return {"pods": [], "shapes": []}

    async def perform(self, name: str, body: JsonObject) -> JsonObject:
        return await self.by_name[name](body)

    async def _pause(self, body: JsonObject) -> JsonObject:
        form_of(EmptyForm, body)
        self._time.pause()
        return done("time stands still", 0)

    async def _resume(self, body: JsonObject) -> JsonObject:
        form_of(EmptyForm, body)
        self._time.resume()
        return done("time goes on", 0)

    async def _set_speed(self, body: JsonObject) -> JsonObject:
        factor = form_of(_Speed, body).factor
        self._time.set_speed(factor)
        times = "as fast as real time" if factor == 1 else f"{factor:g} times as fast"
        return done(f"time passes {times}", 0)
