"""Arrays of integers are as narrow as their numbers allow."""

import numpy as np
import pytest

from kubestow.arrays import narrow_type, narrowed, put


@pytest.mark.parametrize(
    ("largest", "width"),
    [
        (0, np.int8),
        (127, np.int8),
        (128, np.int16),
        (2**15, np.int32),
        (2**31, np.int64),
        (2**63, np.int64),
    ],
)
def test_the_smallest_type_that_holds_a_number(largest: int, width: type) -> None:
    assert narrow_type(largest) is width


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([], np.int8),
        ([-1, 5], np.int8),
        ([-129, 5], np.int16),
        ([3, 40_000], np.int32),
        ([-(2**63)], np.int64),
    ],
)
def test_numbers_of_either_sign_are_kept(values: list[int], width: type) -> None:
    found = narrowed(np.array(values, np.int64))
    assert found.dtype == width
    assert found.tolist() == values


def test_numbers_that_are_too_large_widen_the_array() -> None:
    values = np.array([1, 2, 3], np.int8)
    same = put(values, np.array([0]), np.array([9], np.int64))
    assert same is values
    wider = put(values, np.array([2]), np.array([300], np.int64))
    assert wider.dtype == np.int16
    assert wider.tolist() == [9, 2, 300]
