"""What a scenario plans, done at its time: arrivals and actions of all entries."""

import asyncio
import heapq
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from kubestow.clock import Clock
from kubestow.errors import ApiError, InputError
from kubestow.simulator.scenario.scenario import Arrival, Scenario, Step
from kubestow.simulator.scenario.world import ScenarioWorld
from kubestow.simulator.virtual_time import VirtualTimeLoop

# Other parts of the cluster act after this many at one time.
_BURST: Final = 100


class _Due(NamedTuple):
    # Seconds from the start of the scenario.
    time_s: float
    # Of two at one time the lower comes first.
    order: int
    work: Callable[[], None]
    place: str


async def follow_plan(scenario: Scenario, seed: int, world: ScenarioWorld, clock: Clock) -> None:
    """Do what the scenario plans from now on; InputError with the place of what cannot be done."""
    follower = _Follower(_plan(scenario, seed, world), scenario.until_s, clock)
    try:
        follower.go_on()
        await follower.ended
    finally:
        follower.stop()


class _Follower:
    """Does one thing after the other, each at its time, without a task that sleeps in between."""

    def __init__(self, plan: Iterator[_Due], until_s: float, clock: Clock) -> None:
        self._plan = plan
        self._until_s = until_s
        self._clock = clock
        self._started_s = clock.monotonic_s()
        self._loop = loop = asyncio.get_running_loop()
        # Calls a function in the next turn, at the end of a callback.
        self._call_next = loop.call_next if isinstance(loop, VirtualTimeLoop) else loop.call_soon
        self._timer: asyncio.Handle | None = None
        # How much was done without waiting.
        self._burst = 0
        self._next: _Due | None = None
        self.ended: Final = self._loop.create_future()

    def go_on(self) -> None:
        """Do what is due, and set a timer for what comes after it."""
        try:
            while (due := self._due_now()) is not None:
                self._do(due)
        except Exception as error:
            if not self.ended.done():
                self.ended.set_exception(error)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due_now(self) -> _Due | None:
        """What is to be done now; None if that comes later, or if there is nothing left."""
        due, self._next = self._next, None
        if due is not None:
            return due
        due = next(self._plan, None)
        if due is None or due.time_s >= self._until_s:
            if not self.ended.done():
                self.ended.set_result(None)
            return None
        wait_s = self._started_s + due.time_s - self._clock.monotonic_s()
        self._burst += 1
        if wait_s > 0:
            self._burst = 0
            self._timer = self._loop.call_later(wait_s, self._wake)
        elif self._burst % _BURST == 0:
            self._timer = self._loop.call_soon(self.go_on)
        else:
            return due
        self._next = due
        return None

    def _wake(self) -> None:
        # In the next turn: what else is due at this time comes first.
        turn = self._call_next(self.go_on)
        if turn is not None:
            self._timer = turn

    def _do(self, due: _Due) -> None:
        try:
            due.work()
        except (ApiError, InputError) as error:
            place = f"{due.place}: " if due.place else ""
            raise InputError(f"{place}after {due.time_s:g} s: {error}") from error


def _plan(scenario: Scenario, seed: int, world: ScenarioWorld) -> Iterator[_Due]:
    """Arrivals and steps of all entries in the order of time; at one time as they are given."""

    def arriving(arrivals: Iterator[Arrival], order: int) -> Iterator[_Due]:
        for arrival in arrivals:
            place = scenario.places.get(arrival.owner, arrival.owner)
            yield _Due(arrival.time_s, order, partial(world.arrive, arrival), place)

    def stepping(steps: Iterator[Step], order: int) -> Iterator[_Due]:
        for step in steps:
            yield _Due(step.time_s, order, partial(step.action, world), step.place)

    streams = [stepping(source(seed), order) for order, source in enumerate(scenario.steps)]
    streams += [
        arriving(source(seed), order)
        for order, source in enumerate(scenario.arrivals, start=len(streams))
    ]
    return heapq.merge(*streams, key=lambda due: due[:2])
