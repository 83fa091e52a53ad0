"""Spec 05 §8.4 and §8.8: what the load of a node is worth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.cache.node_info import NodeInfo
from kubestow.config.plugin_args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubestow.engine.equivalence.row_forms.node_resources_fit import node_strategy
from kubestow.errors import ConfigError
from kubestow.plugins._shared.curve import UtilizationCurve
from kubestow.plugins._shared.scoring_resources import Loads
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_resources_fit.strategies import Strategy, strategy_of
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_score

GPU = "nvidia.com/gpu"
GI = 1024**3

# What each node offers and uses of one resource, the pod's request and the weight.
Column = tuple[list[tuple[int, int]], int, int]


def strategy_args(
    kind: str, shape: list[tuple[int, int]] | None = None, **weights: int
) -> ScoringStrategy:
    points = tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in shape or ())
    return ScoringStrategy(
        type=kind,
        resources=tuple(ResourceSpec(name=name, weight=weight) for name, weight in weights.items()),
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=points) if shape else None,
    )


LEAST, MOST = strategy_args("LeastAllocated"), strategy_args("MostAllocated")


def ratio(*shape: tuple[int, int]) -> ScoringStrategy:
    return strategy_args("RequestedToCapacityRatio", list(shape))


RISING = ratio((0, 0), (100, 10))
BEST_EFFORT = make_pod()
POD = make_pod(cpu="500m")
RUNNING = make_pod(node="n", cpu="500m", memory="1Gi")


def score(args: ScoringStrategy, pod: Pod, *running: Pod) -> int:
    """The score of a node with 4 cpus and 8Gi."""
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=args), make_handle())
    snapshot = make_snapshot([make_node("n", cpu="4", memory="8Gi")], running)
    scores = run_score(plugin, pod, snapshot)
    assert scores is not None
    return scores[0]


@pytest.mark.parametrize(
    ("args", "pod", "running", "expected"),
    [
        pytest.param(LEAST, POD, [RUNNING], 80, id="1-least"),
        pytest.param(MOST, POD, [RUNNING], 19, id="2-most"),
        pytest.param(RISING, POD, [RUNNING], 20, id="3-ratio-rounds"),
        pytest.param(LEAST, BEST_EFFORT, [RUNNING], 85, id="4-best-effort"),
        pytest.param(LEAST, BEST_EFFORT, [], 97, id="4-best-effort-on-an-empty-node"),
        pytest.param(LEAST, BEST_EFFORT, [make_pod(node="n")], 95, id="those-on-the-node-too"),
        pytest.param(LEAST, make_pod(cpu="0"), [RUNNING], 86, id="an-explicit-zero-counts"),
    ],
)
def test_pods_score_with_defaults_for_missing_requests(
    args: ScoringStrategy, pod: Pod, running: list[Pod], expected: int
) -> None:
    assert score(args, pod, *running) == expected


def test_pod_level_requests_are_not_seen_by_the_score() -> None:
    # Spec 05 §8.5; what runs on the node already counts with them.
    assert score(LEAST, make_pod(pod_requests={"cpu": "4", "memory": "8Gi"})) == 97
    placed = make_pod(node="n", pod_requests={"cpu": "4", "memory": "8Gi"})
    assert score(LEAST, BEST_EFFORT, placed) == 0


def load(requested: int, allocatable: int, weight: int = 1) -> Column:
    return [(allocatable, requested)], 0, weight


def loads_of(columns: list[Column], node_count: int = 1) -> Loads:
    shape = (len(columns), node_count)
    return Loads(
        np.array([[a for a, _ in numbers] for numbers, _, _ in columns], np.int64).reshape(shape),
        np.array([[u for _, u in numbers] for numbers, _, _ in columns], np.int64).reshape(shape),
        np.array([[request] for _, request, _ in columns], np.int64).reshape(-1, 1),
        np.array([[weight] for _, _, weight in columns], np.int64).reshape(-1, 1),
    )


@pytest.mark.parametrize(
    ("args", "loads", "expected"),
    [
        pytest.param(LEAST, [load(5000, 4000), load(2 * GI, 8 * GI)], 37, id="5-least-over"),
        pytest.param(MOST, [load(5000, 4000), load(2 * GI, 8 * GI)], 62, id="5-most-over"),
        pytest.param(
            LEAST,
            [load(2000, 8000), load(4 * GI, 32 * GI), load(3, 8, 5)],
            67,
            id="6-least-weights",
        ),
        pytest.param(
            MOST, [load(2000, 8000), load(4 * GI, 32 * GI), load(3, 8, 5)], 31, id="6-most-weights"
        ),
        pytest.param(
            ratio((0, 0), (70, 10), (100, 3)), [load(70, 100), load(87, 100, 2)], 74, id="7-falling"
        ),
        pytest.param(
            ratio((0, 10), (30, 5), (100, 0)), [load(1, 100), load(12, 100)], 90, id="8-half-up"
        ),
        pytest.param(RISING, [load(0, 100), load(50, 100, 3)], 50, id="9-zero-drops-out"),
        pytest.param(ratio((0, 0), (80, 8)), [load(90, 100), load(85, 100)], 80, id="10-flat-end"),
        pytest.param(
            ratio((20, 2), (80, 9)), [load(10, 100), load(12, 100)], 20, id="10-flat-start"
        ),
        pytest.param(LEAST, [load(0, 0), load(25, 100)], 75, id="what-the-node-lacks-is-out"),
        pytest.param(LEAST, [load(0, 0)], 0, id="nothing-counts"),
        pytest.param(LEAST, [], 0, id="no-resource"),
        pytest.param(
            ratio((0, 10), (100, 0)), [load(0, 0), load(50, 100)], 50, id="ratio-without-resource"
        ),
    ],
)
def test_loads_become_scores(args: ScoringStrategy, loads: list[Column], expected: int) -> None:
    assert strategy_of(args).score(loads_of(loads)).tolist() == [expected]


@pytest.mark.parametrize(
    ("pod_gpus", "expected"),
    [
        pytest.param(1, 67, id="6-asks-for-gpus"),
        pytest.param(0, 81, id="6-asks-for-none"),
    ],
)
def test_scalars_count_only_for_pods_that_ask_for_them(pod_gpus: int, expected: int) -> None:
    args = strategy_args("LeastAllocated", None, cpu=1, memory=1, **{GPU: 5})
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=args), make_handle())
    node = make_node("n", cpu="8", memory="32Gi", allocatable={GPU: 8})
    running = make_pod(node="n", cpu="1", memory="3Gi", requests={GPU: 3 - pod_gpus})
    pod = make_pod(cpu="1", memory="1Gi", requests={GPU: pod_gpus})
    assert run_score(plugin, pod, make_snapshot([node], [running])) == [expected]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(ScoringStrategy(type="LeastAllocated", resources=()), id="none-given"),
        pytest.param(strategy_args("LeastAllocated", None, cpu=0, memory=0), id="weight-0-means-1"),
    ],
)
def test_defaults_of_the_resources(args: ScoringStrategy) -> None:
    assert score(args, POD, RUNNING) == 80


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(ScoringStrategy(type=""), id="empty-type"),
        pytest.param(ScoringStrategy(type="Fullest"), id="unknown-type"),
        pytest.param(ScoringStrategy(type="RequestedToCapacityRatio"), id="ratio-without-shape"),
    ],
)
def test_strategies_that_do_not_exist_are_refused(args: ScoringStrategy) -> None:
    with pytest.raises(ConfigError):
        strategy_of(args)


SHAPE = [(0, 10), (30, 5), (100, 0)]
STRATEGIES: dict[str, Strategy] = {
    "least": strategy_of(LEAST),
    "most": strategy_of(MOST),
    "ratio": strategy_of(ratio(*SHAPE)),
}

node_numbers = st.tuples(st.integers(0, 50), st.integers(0, 60))


@given(
    kind=st.sampled_from(sorted(STRATEGIES)),
    columns=st.lists(
        st.tuples(
            st.lists(node_numbers, min_size=4, max_size=4), st.integers(0, 9), st.integers(1, 100)
        ),
        max_size=4,
    ),
)
def test_arrays_equal_the_scalar_reading(kind: str, columns: list[Column]) -> None:
    expected = [
        _score_of_node(
            kind, [(*numbers[row], request, weight) for numbers, request, weight in columns]
        )
        for row in range(4)
    ]
    assert STRATEGIES[kind].score(loads_of(columns, 4)).tolist() == expected
    for row in range(4):
        readers = [
            (lambda _, held=numbers[row]: held, request, weight)
            for numbers, request, weight in columns
        ]
        assert node_strategy(STRATEGIES[kind], readers)(NodeInfo("n")) == expected[row]


def _score_of_node(kind: str, resources: list[tuple[int, int, int, int]]) -> int:
    total = weights = 0
    for allocatable, used, request, weight in resources:
        if allocatable == 0:
            continue
        points = _points(kind, used + request, allocatable)
        if kind == "ratio" and points == 0:
            continue
        total += points * weight
        weights += weight
    if weights == 0:
        return 0
    return math.floor(total / weights + 0.5) if kind == "ratio" else total // weights


def _points(kind: str, requested: int, allocatable: int) -> int:
    if kind == "least":
        return 0 if requested > allocatable else (allocatable - requested) * 100 // allocatable
    if kind == "most":
        return min(requested, allocatable) * 100 // allocatable
    utilization = 100 if requested > allocatable else requested * 100 // allocatable
    shape = UtilizationCurve([(point, value * 10) for point, value in SHAPE])
    return int(shape.scores(np.array([utilization]))[0])
