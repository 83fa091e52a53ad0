"""Streams of arrivals: their times and durations, and what the seed decides."""

import math
from itertools import islice

import numpy as np
import pytest

from kubestow.api.meta import JsonObject
from kubestow.simulator.scenario import arrivals
from kubestow.simulator.scenario.arrivals import Draw, When, generated, streams_of

POD: JsonObject = {"kind": "Pod"}


def times(when: When, seed: int = 0, name: str = "a", limit: int = 100_000) -> list[float]:
    return list(islice(when.times(streams_of(seed, name).times), limit))


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param(When(at_s=(5.0, 1.0)), [1.0, 5.0], id="at"),
        pytest.param(When(every_s=10, limit=3), [0, 10, 20], id="every"),
        pytest.param(When(every_s=10, from_s=5, until_s=25), [5, 15, 25], id="every-between"),
        pytest.param(When(rate=1.0, until_s=0), [], id="poisson-of-no-time"),
    ],
)
def test_times(when: When, expected: list[float]) -> None:
    assert times(when) == expected


def test_poisson_arrivals_have_the_rate_and_no_memory() -> None:
    found = np.array(times(When(rate=0.5, from_s=100, until_s=40_100)))
    assert len(found) == pytest.approx(20_000, rel=0.03)
    gaps = np.diff(found)
    # An exponential distribution has equal mean and standard deviation.
    assert gaps.mean() == pytest.approx(2.0, rel=0.03)
    assert gaps.std() == pytest.approx(2.0, rel=0.03)
    assert found[0] >= 100


@pytest.mark.parametrize(
    ("draw", "mean_s", "median_s"),
    [
        pytest.param(arrivals.constant(7), 7, 7, id="constant"),
        pytest.param(arrivals.exponential(60), 60, 60 * math.log(2), id="exponential"),
        pytest.param(arrivals.uniform(10, 30), 20, 20, id="uniform"),
        pytest.param(arrivals.log_normal(100, 0.5), 100 * math.exp(0.125), 100, id="log-normal"),
        pytest.param(arrivals.choice((1.0, 2.0, 6.0)), 3, 2, id="choice"),
    ],
)
def test_durations_have_their_distribution(draw: Draw, mean_s: float, median_s: float) -> None:
    rng = np.random.default_rng(3)
    found = [draw(rng) for _ in range(20_000)]
    assert min(found) >= 0
    assert np.mean(found) == pytest.approx(mean_s, rel=0.03)
    assert np.median(found) == pytest.approx(median_s, rel=0.03)


def test_the_seed_and_the_name_decide() -> None:
    when = When(rate=1.0, limit=5)
    assert times(when, seed=1) == times(when, seed=1)
    assert times(when, seed=1) != times(when, seed=2)
    assert times(when, name="a") != times(when, name="b")


def test_another_duration_leaves_the_times_as_they_are() -> None:
    when = When(rate=1.0, limit=5)
    fixed = generated("a", POD, when, duration=arrivals.constant(1))
    drawn = generated("a", POD, when, duration=arrivals.exponential(1))
    assert [one.time_s for one in fixed(4)] == [one.time_s for one in drawn(4)]
    assert len({one.duration_s for one in drawn(4)}) == 5


def test_replicas_arrive_together_and_are_one_document() -> None:
    source = generated("a", POD, When(every_s=60, limit=2), replicas=3)
    assert [one.time_s for one in source(0)] == [0, 0, 0, 60, 60, 60]
    assert all(one.document is POD for one in source(0))
