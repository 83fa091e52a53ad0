"""How far a rolling update goes in one step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.simulator.controllers.rolling import (
    Limits,
    Replicas,
    limits_of,
    new_wanted,
    old_wanted,
)


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "expected"),
    [
        pytest.param("25%", "25%", 10, (3, 2), id="up-and-down"),
        pytest.param("25%", "25%", 1, (1, 0), id="one"),
        pytest.param(2, 1, 10, (2, 1), id="numbers"),
        pytest.param(0, 0, 10, (0, 1), id="never-neither"),
        pytest.param("0%", "1%", 10, (0, 1), id="rounded-to-neither"),
        pytest.param(1, "100%", 4, (1, 4), id="all-of-them"),
        pytest.param(1, 9, 4, (1, 4), id="more-than-there-are"),
    ],
)
def test_limits_are_numbers_or_shares(
    surge: int | str, unavailable: int | str, desired: int, expected: tuple[int, int]
):
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert limits_of({"spec": {"strategy": strategy}}, desired) == expected


def test_the_first_step_goes_up_by_the_surge():
    assert new_wanted(10, Limits(3, 2), Replicas(0, 0), [Replicas(10, 10)]) == 3


def test_the_second_step_goes_down_by_max_unavailable():
    old = [Replicas(10, 10)]
    assert old_wanted(10, Limits(3, 2), Replicas(3, 0), old) == [8]


def test_unavailable_pods_are_removed_first():
    old = [Replicas(2, 0), Replicas(8, 8)]
    assert old_wanted(10, Limits(3, 2), Replicas(0, 0), old) == [0, 8]


@given(
    desired=st.integers(1, 20),
    surge=st.integers(0, 10),
    unavailable=st.integers(0, 10),
    old_count=st.integers(0, 20),
    ready_order=st.lists(st.booleans(), min_size=300, max_size=300),
)
def test_an_update_ends_within_its_limits(
    desired: int, surge: int, unavailable: int, old_count: int, ready_order: list[bool]
):
    """Steps and pods becoming ready in any order: limits hold throughout, and it ends."""
    limits = Limits(surge, min(unavailable or (1 if surge == 0 else 0), desired))
    new, old = Replicas(0, 0), [Replicas(old_count, old_count)]
    lowest = min(desired - limits.max_unavailable, old_count)
    for is_turn_of_pods in [*ready_order, *([False, True] * 200)]:
        if is_turn_of_pods:
            new = Replicas(new.wanted, min(new.wanted, new.available + 1))
            continue
        wanted = new_wanted(desired, limits, new, old)
        if wanted != new.wanted:
            new = Replicas(wanted, min(new.available, wanted))
        else:
            counts = old_wanted(desired, limits, new, old)
            old = [
                Replicas(count, min(count, one.available))
                for count, one in zip(counts, old, strict=True)
            ]
        total = new.wanted + old[0].wanted
        assert total <= max(desired + limits.max_surge, old_count)
        assert new.available + old[0].available >= lowest
    assert (new, old) == (Replicas(desired, desired), [Replicas(0, 0)])
