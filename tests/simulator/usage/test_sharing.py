"""CPU shared by weight, against a reading that fills one node at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.simulator.usage.sharing import granted_cpu, weights_of

PODS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 9000), st.integers(0, 4000)), max_size=14
)


def shared_on_one_node(pods: list[tuple[int, int]], capacity: int) -> list[float]:
    """The pods by demand for each unit of weight: the one that needs least is served first."""
    order = sorted(range(len(pods)), key=lambda index: pods[index][0] / pods[index][1])
    granted = [0.0] * len(pods)
    left, weight_left = float(capacity), sum(weight for _, weight in pods)
    for index in order:
        demand, weight = pods[index]
        granted[index] = min(demand, left * weight / weight_left)
        left -= granted[index]
        weight_left -= weight
    return granted


@given(PODS, st.lists(st.integers(0, 9000), min_size=4, max_size=4))
def test_equals_filling_one_node_at_a_time(
    pods: list[tuple[int, int, int]], capacity: list[int]
) -> None:
    nodes = np.array([pod[0] for pod in pods], np.intp)
    demand = np.array([pod[1] for pod in pods], np.int64)
    weights = weights_of(np.array([pod[2] for pod in pods], np.int64))
    found = granted_cpu(demand, weights, nodes, np.array(capacity, np.int64))
    for node in range(4):
        rows = np.flatnonzero(nodes == node).tolist()
        own = [(int(demand[row]), int(weights[row])) for row in rows]
        expected = shared_on_one_node(own, capacity[node])
        assert found[rows].tolist() == pytest.approx(expected, abs=1e-6)
        lost = float(demand[rows].sum() - found[rows].sum())
        assert lost == pytest.approx(max(demand[rows].sum() - capacity[node], 0), abs=1e-6)


def test_what_one_pod_does_not_need_goes_to_the_others_by_weight() -> None:
    demand = np.array([500, 4000, 4000], np.int64)
    weights = weights_of(np.array([2000, 1000, 1000], np.int64))
    nodes = np.zeros(3, np.intp)
    granted = granted_cpu(demand, weights, nodes, np.array([4000], np.int64))
    assert granted.tolist() == [500.0, 1750.0, 1750.0]


def test_a_pod_without_a_request_has_the_least_weight() -> None:
    assert weights_of(np.array([0, 1, 1000], np.int64)).tolist() == [2, 2, 1024]
