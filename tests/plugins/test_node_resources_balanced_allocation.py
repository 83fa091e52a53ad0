"""Spec 05 §9: pods that even out the shares of a node's resources score higher."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins._shared.scoring_resources import Loads
from kubestow.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    balance_scores,
)
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_score

GPU = "nvidia.com/gpu"
WITH_GPU = ("cpu", "memory", GPU)


def make_plugin(*resources: str) -> NodeResourcesBalancedAllocation:
    specs = tuple(ResourceSpec(name=name, weight=1) for name in resources)
    return NodeResourcesBalancedAllocation(
        NodeResourcesBalancedAllocationArgs(resources=specs), make_handle()
    )


Amounts = tuple[str, ...]


@pytest.mark.parametrize(
    ("resources", "offered", "used", "wanted", "expected"),
    [
        pytest.param((), ("4", "8Gi"), ("500m", "1Gi"), ("500m", "0"), 71, id="1"),
        pytest.param((), ("4", "16Gi"), ("500m", "2Gi"), ("1", "0"), 68, id="2-worse"),
        pytest.param((), ("4", "16Gi"), ("2", "12Gi"), ("1", "0"), 81, id="3-better"),
        pytest.param(
            WITH_GPU, ("8", "32Gi", "8"), ("1", "4Gi", "0"), ("1", "4Gi", "4"), 72, id="4-three"
        ),
        pytest.param((), ("4", "16Gi"), ("3", "8Gi"), ("2", "0"), 69, id="5-capped"),
        pytest.param((), ("0", "16Gi"), ("0", "4Gi"), ("100m", "4Gi"), 75, id="6-one-share"),
        pytest.param((), ("4", "4Gi"), ("0", "0"), ("1", "1Gi"), 75, id="7-no-change"),
        pytest.param((), ("2", "4Gi"), ("2", "0"), ("0", "4Gi"), 100, id="8-best"),
        pytest.param((), ("2", "4Gi"), ("0", "0"), ("0", "4Gi"), 50, id="9-worst"),
        pytest.param((), ("4", "8Gi"), ("1", "1Gi"), ("0", "0"), None, id="10-no-requests-skip"),
        pytest.param(
            WITH_GPU,
            ("8", "32Gi", "8"),
            ("1", "4Gi", "7"),
            ("1", "4Gi", "0"),
            75,
            id="4-without-gpus-the-column-is-out",
        ),
    ],
)
def test_evenness(
    resources: tuple[str, ...],
    offered: Amounts,
    used: Amounts,
    wanted: Amounts,
    expected: int | None,
) -> None:
    def amounts(values: Amounts) -> dict[str, str]:
        return dict(zip(WITH_GPU, values, strict=False))

    node = make_node("n", cpu=None, memory=None, allocatable=amounts(offered))
    running = make_pod(node="n", requests=amounts(used))
    pod = make_pod(requests=amounts(wanted))
    scores = run_score(make_plugin(*resources), pod, make_snapshot([node], [running]))
    assert scores == (None if expected is None else [expected])


def test_pods_without_requests_do_not_count() -> None:
    # Unlike NodeResourcesFit, no defaults: neither for the pod nor for those on the node.
    node = make_node("n", cpu="1", memory="1Gi")
    snapshot = make_snapshot([node], [make_pod(node="n")])
    assert run_score(make_plugin(), make_pod(cpu="1", memory="1Gi"), snapshot) == [75]


def test_pod_level_requests_count() -> None:
    snapshot = make_snapshot([make_node("n", cpu="2", memory="4Gi")])
    assert run_score(make_plugin(), make_pod(pod_requests={"memory": "4Gi"}), snapshot) == [50]


def test_score_does_without_pre_score() -> None:
    nodes = nodes_of(make_snapshot([make_node(cpu="4", memory="4Gi")]))
    plugin = make_plugin()
    scores = plugin.score(CycleState(), PodInfo(make_pod(cpu="1", memory="1Gi")), nodes)
    assert np.asarray(scores).tolist() == [75]
    assert plugin.score(CycleState(), PodInfo(make_pod()), nodes) == 0


# What each node offers of one resource, what it uses, and the pod's request.
Column = tuple[list[int], list[int], int]


def loads_of(columns: list[Column], node_count: int) -> Loads:
    shape = (len(columns), node_count)
    return Loads(
        np.array([offered for offered, _, _ in columns], np.int64).reshape(shape),
        np.array([used for _, used, _ in columns], np.int64).reshape(shape),
        np.array([request for _, _, request in columns], np.int64).reshape(-1, 1),
        np.ones((len(columns), 1), np.int64),
    )


def test_sums_run_from_left_to_right() -> None:
    # Shares of .1, .8, .1 and .8: added from the right, the last bit falls the other way (93).
    loads = loads_of([([10], [used], 9) for used in (1, 8, 1, 8)], 1)
    assert np.asarray(balance_scores(loads)).tolist() == [92]


ROWS = 5
# Tenths often come out on the border where a score is cut.
offers = st.sampled_from([0, 10, 10, 20]) | st.integers(0, 10**13)
amounts = st.integers(0, 10) | st.integers(0, 10**13)


@given(
    columns=st.lists(
        st.tuples(
            st.lists(offers, min_size=ROWS, max_size=ROWS),
            st.lists(amounts, min_size=ROWS, max_size=ROWS),
            amounts,
        ),
        max_size=5,
    )
)
def test_arrays_equal_the_scalar_reading(columns: list[Column]) -> None:
    scores = np.broadcast_to(balance_scores(loads_of(columns, ROWS)), ROWS).tolist()
    assert scores == [
        _score_of_node([(offered[row], used[row], pod) for offered, used, pod in columns])
        for row in range(ROWS)
    ]


def _score_of_node(resources: list[tuple[int, int, int]]) -> int:
    there = [resource for resource in resources if resource[0] != 0]
    after = _evenness([min((used + pod) / offered, 1.0) for offered, used, pod in there])
    before = _evenness([min(used / offered, 1.0) for offered, used, _ in there])
    return 50 + (50 + after - before) // 2


def _evenness(shares: list[float]) -> int:
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total = total + share
        mean = total / len(shares)
        squares = 0.0
        for share in shares:
            squares = squares + (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * 100.0)
