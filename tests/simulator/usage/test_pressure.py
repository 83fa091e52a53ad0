"""Pods that kubelets evict for memory, against a reading of one node and one check at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubestow.simulator.usage.pressure import CRITICAL_PRIORITY, evicted_pods, usable_memory

PODS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 60),
        st.integers(0, 60),
        st.sampled_from([-10, 0, 0, 5, CRITICAL_PRIORITY]),
    ),
    max_size=14,
)


def evicted_on_one_node(
    pods: list[tuple[int, int, int, int]], usable: int, checks: int
) -> list[int]:
    """`pods` are row, use, request and priority."""
    there, evicted = list(pods), []
    for _ in range(checks):
        if sum(pod[1] for pod in there) <= usable:
            break
        candidates = [pod for pod in there if pod[3] < CRITICAL_PRIORITY]
        if not candidates:
            break
        first = min(candidates, key=lambda pod: (pod[1] <= pod[2], pod[3], pod[2] - pod[1], pod[0]))
        there.remove(first)
        evicted.append(first[0])
    return evicted


@given(PODS, st.lists(st.integers(0, 150), min_size=4, max_size=4), st.integers(1, 5))
def test_equals_one_check_after_the_other(
    pods: list[tuple[int, int, int, int]], usable: list[int], checks: int
) -> None:
    nodes, use, requested, priorities = (
        np.array([pod[column] for pod in pods], np.int64) for column in range(4)
    )
    found = evicted_pods(
        use, requested, priorities, nodes, np.array(usable, np.int64), checks=checks
    )
    expected = [
        row
        for node in range(4)
        for row in evicted_on_one_node(
            [(row, *pod[1:]) for row, pod in enumerate(pods) if pod[0] == node],
            usable[node],
            checks,
        )
    ]
    assert found.tolist() == expected


def test_the_threshold_is_kept_free_of_the_capacity() -> None:
    assert usable_memory(allocatable=1000, capacity=1000, threshold=100) == 900
    # A kubelet that reported what is allocatable has taken the threshold off already.
    assert usable_memory(allocatable=700, capacity=1000, threshold=100) == 700
    assert usable_memory(allocatable=50, capacity=50, threshold=100) == 0
