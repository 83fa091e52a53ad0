"""Confidence intervals: Student's t."""

import pytest

from kubestow.simulator.comparison.intervals import Estimate, estimate, t_quantile


# From printed tables of the distribution, two-sided 95 %.
@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (9, 2.2622), (10, 2.2281), (30, 2.0423), (99, 1.9842)],
)
def test_quantiles_are_those_of_tables(degrees: int, expected: float) -> None:
    assert t_quantile(degrees) == pytest.approx(expected, abs=5e-5)


def test_an_interval_is_t_times_the_standard_error() -> None:
    # Mean 4, deviation 2, three values: 4.3027 * 2 / sqrt(3).
    found = estimate([2.0, 4.0, 6.0])
    assert found.mean == 4.0
    assert found.plus_minus == pytest.approx(4.9683, abs=1e-4)


def test_a_single_value_has_no_interval() -> None:
    assert estimate([3.0]) == Estimate(mean=3.0, plus_minus=None, count=1)
