"""Amounts are an array of integers, however they are kept."""

from collections.abc import Generator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.index.topology import amounts as amounts_module
from kubestow.index.topology.amounts import Amounts, summed

FEW = 4


@pytest.fixture(scope="module", autouse=True)
def few(both_forms_of_amounts: None) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amounts_module, "FEW_MAX", FEW)
        yield


@pytest.mark.parametrize("size", [1, FEW, FEW + 1, 3 * FEW])
@given(data=st.data())
def test_amounts_are_an_array(size: int, data: st.DataObject) -> None:
    amounts, truth = Amounts(size), [0] * size
    index = st.integers(0, size - 1)
    # Enough for more than a few, and as likely to go back to 0.
    for at, by in data.draw(st.lists(st.tuples(index, st.sampled_from([-1, 1, 2])), max_size=40)):
        truth[at] += by
        assert amounts.add(at, by) == truth[at]
    check(amounts, truth)
    check(Amounts.of(np.array(truth, np.int64)), truth)
    check(summed(enumerate(truth), size), truth)
    source = data.draw(st.lists(st.integers(-1, size - 1), max_size=2 * size))
    moved = amounts.gathered(np.array(source, np.intp))
    check(moved, [truth[old] if old >= 0 else 0 for old in source])
    copy = amounts.copy()
    copy.add(0, 5)
    check(amounts, truth)
    amounts.grow(size + 9)
    check(amounts, [*truth, *[0] * 9])


def check(amounts: Amounts, truth: list[int]) -> None:
    assert amounts.size == len(truth)
    assert amounts.array().tolist() == truth
    assert [amounts.item(index) for index in range(len(truth))] == truth
    assert amounts.take(np.arange(len(truth))[::-1]).tolist() == truth[::-1]
    assert amounts.highest() == max(0, 0, *truth)
    assert (amounts.total(), amounts.any()) == (sum(truth), any(truth))
    few = amounts.few()
    if few is not None:
        assert few == {index: amount for index, amount in enumerate(truth) if amount}
        assert len(few) <= FEW


def test_few_of_many_are_a_mapping() -> None:
    amounts = Amounts(5_000)
    for index in range(FEW):
        amounts.add(index, 1)
        assert amounts.few() is not None
    amounts.add(FEW, 1)
    assert amounts.few() is None
    assert Amounts(FEW).few() is None
