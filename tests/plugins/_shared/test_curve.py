"""Lines through points, cut towards zero (spec 05 §2.2)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.config.plugin_args import UtilizationShapePoint
from kubestow.plugins._shared.curve import UtilizationCurve

FALLING = [(0, 100), (30, 50), (100, 0)]


@pytest.mark.parametrize(
    ("utilization", "score"),
    [(0, 100), (1, 99), (2, 97), (29, 52), (30, 50), (31, 50), (65, 25), (99, 1), (100, 0)],
)
def test_falling_lines_are_cut_towards_zero(utilization: int, score: int) -> None:
    assert UtilizationCurve(FALLING).scores(np.array([utilization])).tolist() == [score]


def test_the_line_is_flat_outside_its_points() -> None:
    curve = UtilizationCurve([(20, 20), (80, 90)])
    assert curve.scores(np.array([0, 10, 20, 80, 81, 100])).tolist() == [20, 20, 20, 90, 90, 90]


def test_configured_scores_of_ten_become_a_hundred() -> None:
    points = (
        UtilizationShapePoint(utilization=0, score=0),
        UtilizationShapePoint(utilization=100, score=10),
    )
    assert UtilizationCurve.from_args(points).scores(np.array([0, 25, 100])).tolist() == [
        0,
        25,
        100,
    ]


@st.composite
def points(draw: st.DrawFn) -> list[tuple[int, int]]:
    at = draw(st.lists(st.integers(0, 100), min_size=1, max_size=5, unique=True).map(sorted))
    return [(utilization, draw(st.integers(0, 100))) for utilization in at]


@given(points())
def test_table_equals_the_scalar_reading(points: list[tuple[int, int]]) -> None:
    scores = UtilizationCurve(points).scores(np.arange(101)).tolist()
    assert scores == [_value(points, utilization) for utilization in range(101)]


def _value(points: list[tuple[int, int]], p: int) -> int:
    found = next((i for i, (u, _) in enumerate(points) if p <= u), None)
    if found is None:
        return points[-1][1]
    if found == 0:
        return points[0][1]
    (u0, s0), (u1, s1) = points[found - 1], points[found]
    return s0 + int((s1 - s0) * (p - u0) / (u1 - u0))
