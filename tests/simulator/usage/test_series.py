"""Steps of a trace, against a reading of one pod at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.errors import InputError
from kubestow.simulator.usage import series
from kubestow.simulator.usage.series import UsageSeries, UsePoint

POINTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(0, 99)),
    min_size=1,
    max_size=20,
    unique_by=lambda point: point[:2],
)


@given(POINTS, st.floats(-1, 25))
def test_the_last_step_before_a_time_holds(
    points: list[tuple[str, int, int]], time_s: float
) -> None:
    found = UsageSeries(
        (UsePoint(key, at, cpu, cpu * 2) for key, at, cpu in points), are_shares=False
    )
    keys = sorted({key for key, _, _ in points})
    cpu, memory = found.at(time_s, np.array([found.number(key) for key in keys], np.intp))
    for index, key in enumerate(keys):
        own = sorted((at, value) for name, at, value in points if name == key)
        expected = next((value for at, value in reversed(own) if at <= time_s), own[0][1])
        assert (cpu[index], memory[index]) == (expected, expected * 2)


def test_pods_that_the_trace_does_not_have_are_not_found() -> None:
    found = UsageSeries([UsePoint("a", 5.0, 1.0, math.nan)], are_shares=True)
    assert (found.number("a"), found.number("b"), len(found), found.last_s) == (0, -1, 1, 5.0)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "STEPS_MAX", 100)
    points = (UsePoint("a", float(time), 1.0, 1.0) for time in range(200_000))
    with pytest.raises(InputError, match="more than 100 rows"):
        UsageSeries(points, are_shares=False)
