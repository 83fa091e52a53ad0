"""Which of the best nodes is chosen: the root of the heap upstream builds (spec 04 §8.4, §8.5)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.engine.select_host import PreorderSelector, best_positions, preorder_keys


def heap_root(totals: list[int]) -> int:
    """Build the binary heap in place, as the specification says, and look at its root."""
    heap = list(range(len(totals)))

    def is_better(first: int, second: int) -> bool:
        return totals[heap[first]] > totals[heap[second]]

    for top in range(len(heap) // 2 - 1, -1, -1):
        parent = top
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and is_better(child + 1, child):
                child += 1
            if not is_better(child, parent):
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0]


def select(totals: list[int]) -> int:
    return PreorderSelector().select(np.array(totals, np.int64))


@pytest.mark.parametrize(
    ("totals", "position"),
    [
        ([5, 5, 5], 0),
        ([3, 9, 9], 1),
        ([10, 20, 20, 20], 1),
        ([1, 7, 9, 9, 2], 3),
        ([1, 2, 9, 9, 9, 9, 9], 3),
        ([7], 0),
        ([0, 0], 0),
        ([-3, -1, -1], 1),
    ],
    ids=str,
)
def test_8_5_1_examples(totals: list[int], position: int) -> None:
    assert heap_root(totals) == position
    assert select(totals) == position


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300))
def test_the_choice_is_the_root_of_the_heap(totals: list[int]) -> None:
    assert select(totals) == heap_root(totals)


@given(st.integers(1, 12_000), st.sets(st.integers(0, 11_999), max_size=30))
def test_the_choice_among_equals_in_long_lists(count: int, best: set[int]) -> None:
    totals = [int(position in best) for position in range(count)]
    assert select(totals) == heap_root(totals)


@given(st.integers(8000, 12_000), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_the_choice_among_many_equals_in_long_lists(count: int, values: int, seed: int) -> None:
    totals = np.random.default_rng(seed).integers(0, values, count)
    assert PreorderSelector().select(totals) == heap_root(totals.tolist())


def test_keys_sort_positions_in_pre_order() -> None:
    assert np.argsort(preorder_keys(7)).tolist() == [0, 1, 3, 4, 2, 5, 6]


def test_keys_do_not_depend_on_the_length_of_the_list() -> None:
    assert preorder_keys(3000)[:1000].tolist() == preorder_keys(1000).tolist()


def test_keys_of_a_large_cluster_are_distinct_and_positive() -> None:
    keys = preorder_keys(200_000)
    assert len(np.unique(keys)) == len(keys)
    assert keys.min() > 0


def test_a_list_longer_than_any_before() -> None:
    selector = PreorderSelector()
    totals = np.zeros(5000, np.int64)
    totals[[4000, 2500, 1999]] = 1
    assert selector.select(totals) == heap_root(totals.tolist())
    assert selector.select(totals[:2000]) == 1999


def test_few_orders_are_kept_for_many_lengths() -> None:
    selector = PreorderSelector()
    for length in range(1, 20_000, 7):
        selector.select(np.zeros(length, np.int64))
    assert len(selector._orders) < 8 * 15


def test_the_best_positions_are_in_order() -> None:
    assert best_positions(np.array([1, 3, 2, 3], np.int64)).tolist() == [1, 3]
