"""Spec 05 §3: higher priority first, then the older entry."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.plugins.priority_sort import PrioritySort
from kubestow.testing import make_handle, make_pod


@dataclass
class Entry:
    pod_info: PodInfo
    timestamp_ns: int


def entry(priority: int | None, timestamp_ns: int) -> Entry:
    return Entry(PodInfo(make_pod(priority=priority)), timestamp_ns)


@pytest.fixture
def plugin() -> PrioritySort:
    return PrioritySort(None, make_handle())


@pytest.mark.parametrize(
    ("first", "second", "is_less", "is_greater"),
    [
        pytest.param((10, 5), (None, 1), True, False, id="1-priority-before-time"),
        pytest.param((0, 2), (None, 1), False, True, id="2-absent-is-zero"),
        pytest.param((-5, 0), (None, 9), False, True, id="3-negative"),
        pytest.param((7, 3), (7, 3), False, False, id="4-equal-is-neither"),
        pytest.param((2_000_000_000, 9), (1_000_000_000, 1), True, False, id="5-system"),
    ],
)
def test_order(
    plugin: PrioritySort,
    first: tuple[int | None, int],
    second: tuple[int | None, int],
    is_less: bool,
    is_greater: bool,
) -> None:
    assert plugin.less(entry(*first), entry(*second)) is is_less
    assert plugin.less(entry(*second), entry(*first)) is is_greater


entries = st.tuples(st.none() | st.integers(-5, 5), st.integers(0, 5))


@given(entries, entries)
def test_the_key_orders_as_less_does(
    first: tuple[int | None, int], second: tuple[int | None, int]
) -> None:
    plugin = PrioritySort(None, make_handle())
    one, other = entry(*first), entry(*second)
    assert plugin.less(one, other) is (plugin.sort_key(one) < plugin.sort_key(other))
