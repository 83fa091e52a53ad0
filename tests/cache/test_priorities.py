"""The lowest priority of pods that come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.cache import priorities
from kubestow.cache.priorities import NO_PODS, PriorityCounts


@given(st.lists(st.tuples(st.booleans(), st.integers(-2, 2))))
def test_the_lowest_is_that_of_the_pods_that_are_left(steps: list[tuple[bool, int]]) -> None:
    counts, pods = PriorityCounts(), list[int]()
    for is_added, priority in steps:
        if is_added:
            counts.add(priority)
            pods.append(priority)
        elif priority in pods:
            counts.remove(priority)
            pods.remove(priority)
        assert counts.lowest == min(pods, default=NO_PODS)


def test_of_very_many_the_lowest_stays_too_low_until_there_are_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(priorities, "_FEW", 2)
    counts = PriorityCounts()
    for priority in range(5):
        counts.add(priority)
    found: list[int] = []
    for priority in range(5):
        counts.remove(priority)
        found.append(counts.lowest)
    assert found == [0, 0, 3, 4, NO_PODS]
