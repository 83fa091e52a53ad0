"""Raw scores become shares of the best one (spec 05 §2.1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.plugins._shared.normalise import normalise


@pytest.mark.parametrize(
    ("raw", "reverse", "expected"),
    [
        pytest.param([0, 1, 3], True, [100, 67, 0], id="1-reversed"),
        pytest.param([0, 0, 0], True, [100, 100, 100], id="2-all-zero-reversed"),
        pytest.param([2, 2, 2], True, [0, 0, 0], id="3-all-equal-reversed"),
        pytest.param([0, 0], False, [0, 0], id="4-all-zero"),
        pytest.param([0, 20, 50, 35], False, [0, 40, 100, 70], id="5-weights"),
        pytest.param([1, 7], False, [14, 100], id="6-cut"),
        pytest.param([], False, [], id="empty"),
        pytest.param([], True, [], id="empty-reversed"),
    ],
)
def test_scores_are_shares_of_the_highest(
    raw: list[int], reverse: bool, expected: list[int]
) -> None:
    assert normalise(np.array(raw, np.int64), reverse=reverse).tolist() == expected


def test_another_best_score_may_be_asked_for() -> None:
    assert normalise(np.array([0, 5, 2]), max_score=10).tolist() == [0, 10, 4]


def test_the_scores_given_stay_as_they_are() -> None:
    raw = np.array([0, 1, 3])
    normalise(raw, reverse=True)
    assert raw.tolist() == [0, 1, 3]


@given(st.lists(st.integers(0, 10**6), min_size=1), st.booleans())
def test_array_equals_the_scalar_reading(raw: list[int], reverse: bool) -> None:
    highest = max(raw)
    expected: list[int] = []
    for score in raw:
        share = 100 * score // highest if highest else 0
        expected.append(100 - share if reverse else share)
    assert normalise(np.array(raw, np.int64), reverse=reverse).tolist() == expected
