"""Random and regular streams: when something happens, and how long it lasts.

Every entry has random numbers of its own, derived from the seed and the entry's name: adding an
entry, or changing one, leaves the others as they are. Times and durations are independent too.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, value_at
from kubestow.cluster.resources import PODS
from kubestow.simulator.scenario.scenario import Arrival, ArrivalSource

# A duration for each call.
Draw = Callable[[np.random.Generator], float]


class Streams(NamedTuple):
    """The random numbers of one entry."""

    times: np.random.Generator
    values: np.random.Generator


def streams_of(seed: int, name: str) -> Streams:
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    times, values = np.random.SeedSequence([seed, number]).spawn(2)
    return Streams(np.random.default_rng(times), np.random.default_rng(values))


# --- Times --------------------------------------------------------------------------------------


class When(NamedTuple):
    """The times of an entry: fixed ones, or regular or random ones between two."""

    at_s: tuple[float, ...] = ()
    every_s: float | None = None
    # Per second.
    rate: float | None = None
    from_s: float = 0.0
    until_s: float = math.inf
    limit: int | None = None

    def times(self, rng: np.random.Generator) -> Iterator[float]:
        """In order; endless unless there is an end."""
        if self.rate is not None:
            times = self._random(rng, self.rate)
        elif self.every_s is not None:
            every_s = self.every_s
            times = (self.from_s + number * every_s for number in count())
        else:
            times = iter(sorted(self.at_s))
        for time_s in islice(times, self.limit):
            if time_s > self.until_s:
                return
            yield time_s

    def _random(self, rng: np.random.Generator, rate: float) -> Iterator[float]:
        time_s = self.from_s
        while True:
            time_s += rng.exponential(1 / rate)
            yield time_s


# --- Durations ----------------------------------------------------------------------------------


def constant(seconds: float) -> Draw:
    return lambda rng: seconds


def exponential(mean_s: float) -> Draw:
    return lambda rng: float(rng.exponential(mean_s))


def uniform(least_s: float, most_s: float) -> Draw:
    return lambda rng: float(rng.uniform(least_s, most_s))


def log_normal(median_s: float, sigma: float) -> Draw:
    return lambda rng: float(median_s * math.exp(rng.normal(0.0, sigma)))


def choice(seconds: tuple[float, ...]) -> Draw:
    return lambda rng: seconds[int(rng.integers(len(seconds)))]


# --- Arrivals -----------------------------------------------------------------------------------


def generated(
    name: str,
    document: JsonObject,
    when: When,
    *,
    replicas: int = 1,
    duration: Draw | None = None,
    leaves_after: Draw | None = None,
) -> ArrivalSource:
    """Arrivals of one document at the times of an entry."""
    if duration is not None and document.get("kind") == PODS.kind:
        document = ending_pod(document)

    def arrivals(seed: int) -> Iterator[Arrival]:
        times, values = streams_of(seed, name)
        for time_s in when.times(times):
            for _ in range(replicas):
                yield Arrival(
                    time_s,
                    document,
                    _rounded(duration, values),
                    name,
                    _rounded(leaves_after, values),
                )

    return arrivals


def ending_pod(pod: JsonObject) -> JsonObject:
    """A pod with a duration ends after it, and is not started again."""
    if value_at(pod, "spec", "restartPolicy"):
        return pod
    return {**pod, "spec": {**as_object(pod.get("spec")), "restartPolicy": "Never"}}


def _rounded(draw: Draw | None, rng: np.random.Generator) -> float | None:
    """To the millisecond, as all times of results."""
    return None if draw is None else round(draw(rng), 3)
