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
    started_s = clock.monotonic_s()
    burst = 0
    for due in _plan(scenario, seed, world):
        if due.time_s >= scenario.until_s:
            return
        wait_s = started_s + due.time_s - clock.monotonic_s()
        burst += 1
        if wait_s > 0:
            await asyncio.sleep(wait_s)
            burst = 0
        elif burst % _BURST == 0:
            await asyncio.sleep(0)
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
