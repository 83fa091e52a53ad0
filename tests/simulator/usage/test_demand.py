"""Running pods as columns, against a table of pods and one pod at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Container, Pod, ResourceRequirements
from kubestow.api.quantity import parse_quantity
from kubestow.simulator.usage.curves import Curve, noise_factors, spread_factor
from kubestow.simulator.usage.demand import RunningPods, limit_of
from kubestow.simulator.usage.plan import Level, ResourceCurve, UsagePlan, WorkloadCurves
from kubestow.simulator.usage.series import UsageSeries, UsePoint
from kubestow.testing import make_pod

SEED = 5
KEYS = np.arange(100, dtype=np.uint64)
BURSTS = Curve("bursts", period_s=600.0, lasts_s=200.0)
ENTRIES = (
    WorkloadCurves(lambda *_: True),
    WorkloadCurves(
        lambda *_: True,
        cpu=ResourceCurve(Level(share=0.5), Level(amount=3000), BURSTS),
        spread=0.3,
        noise=0.2,
    ),
    WorkloadCurves(
        lambda *_: True,
        memory=ResourceCurve(Level(), Level(share=2.0), Curve("daily", peak_s=3600.0)),
    ),
)


def pod_number(number: int) -> Pod:
    limits = {"cpu": parse_quantity("2")} if number % 3 == 0 else None
    requests = {"cpu": parse_quantity(f"{number * 100}m"), "memory": parse_quantity("1Gi")}
    resources = ResourceRequirements(requests=requests, limits=limits)
    return make_pod(
        f"p{number}", uid=str(number), containers=[Container(name="main", resources=resources)]
    )


def expected_demand(number: int, entry: WorkloadCurves, date_s: float) -> list[int]:
    """What one pod asks for, by the rules as they are written."""
    pod, key = pod_number(number), KEYS[number : number + 1]
    found: list[int] = []
    factor = spread_factor(entry.spread, number, SEED)
    for given_curve, requested, limit in (
        (entry.cpu, number * 100, limit_of(pod, "cpu")),
        (entry.memory, 2**30, limit_of(pod, "memory")),
    ):
        position = float(given_curve.curve.positions(date_s, key, SEED)[0])
        low, high = (level.of(requested) * factor for level in (given_curve.low, given_curve.high))
        amount = low + (high - low) * position
        if given_curve is entry.cpu:
            amount *= float(noise_factors(np.array([entry.noise]), key, SEED, date_s)[0])
        found.append(min(round(amount), limit))
    return found


@given(
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.integers(0, 2)), max_size=40),
    date_s=st.floats(0, 1e6),
)
def test_rows_are_those_of_the_pods_that_run(
    changes: list[tuple[bool, int, int]], date_s: float
) -> None:
    running = RunningPods(UsagePlan(), SEED)
    there: dict[str, tuple[int, int]] = {}
    for is_new, number, entry in changes:
        if is_new and str(number) not in there:
            pod = pod_number(number)
            running.add(pod, ENTRIES[entry], node=number % 4, owner=entry, key=number)
            there[str(number)] = (number, entry)
        elif not is_new:
            running.remove(str(number))
            there.pop(str(number), None)
    assert {name.uid for name in running.names} == there.keys()
    assert len(running) == len(there)
    demand = running.demand(date_s, date_s)
    for row, name in enumerate(running.names):
        number, entry = there[name.uid]
        assert running.column("node")[row] == number % 4
        assert running.column("owner")[row] == entry
        expected = expected_demand(number, ENTRIES[entry], date_s)
        assert demand[:, row].tolist() == pytest.approx(expected, abs=1)


def test_a_trace_comes_before_curves() -> None:
    points = [
        UsePoint("default/p10", 0.0, 0.5, math.nan),
        UsePoint("default/p10", 60.0, 2.0, 0.25),
    ]
    running = RunningPods(UsagePlan(series=UsageSeries(points, are_shares=True)), SEED)
    for number in (10, 11):
        running.add(pod_number(number), ENTRIES[0], node=0, owner=0, key=number)
    assert running.demand(0.0, 59.0).tolist() == [[500, 1100], [2**30, 2**30]]
    assert running.demand(0.0, 60.0).tolist() == [[2000, 1100], [2**28, 2**30]]


def test_a_limit_is_that_of_the_pod_or_of_all_its_containers() -> None:
    assert limit_of(pod_number(3), "cpu") == 2000
    assert limit_of(pod_number(1), "cpu") > 2**60
