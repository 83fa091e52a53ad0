"""Percentiles to five percent, whatever the number of values."""

import numpy as np
import pytest

from kubestow.service.soak.spread import Spread


def test_nothing_measured_is_zero() -> None:
    found = Spread().percentiles()
    assert (found.count, found.p50_ms, found.p99_ms, found.max_ms) == (0, 0.0, 0.0, 0.0)


def test_percentiles_are_exact_to_five_percent() -> None:
    values = np.random.default_rng(0).lognormal(-6, 2, 10_000)
    spread = Spread()
    for value in values:
        spread.add(float(value))
    found = spread.percentiles()
    assert found.count == len(values)
    assert found.p50_ms == pytest.approx(np.percentile(values, 50) * 1000, rel=0.06)
    assert found.p99_ms == pytest.approx(np.percentile(values, 99) * 1000, rel=0.06)
    assert found.max_ms == pytest.approx(values.max() * 1000, rel=0.001)


def test_values_out_of_range_count_at_the_ends() -> None:
    spread = Spread()
    spread.add(0.0)
    spread.add(1e9)
    assert spread.percentiles().count == 2
    assert spread.percentiles().max_ms == 1e12
