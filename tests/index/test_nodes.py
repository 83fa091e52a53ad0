"""Views on some rows, and one node with other pods on it."""

import numpy as np
import pytest

from kubestow.api.pod import Affinity, PodAffinity, PodAffinityTerm
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.columns import CPU, MEMORY
from kubestow.cache.snapshot import Snapshot
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.testing import make_node, make_pod, make_snapshot

GPU = "example.com/gpu"
ANTI = Affinity(pod_anti_affinity=PodAffinity(required=(PodAffinityTerm(topology_key="z"),)))


@pytest.fixture
def snapshot() -> Snapshot:
    return make_snapshot(
        [
            make_node(
                f"n{number}",
                cpu=number + 1,
                pods=100 + number,
                labels={"rack": f"r{number % 2}"} if number != 3 else None,
                taints=["key:NoSchedule"] if number == 1 else [],
                unschedulable=number == 2,
                images={f"img{number}": 5},
                allocatable={GPU: number},
            )
            for number in range(4)
        ],
        [make_pod(cpu="500m", node="n1", requests={GPU: 1}), make_pod(node="n2", affinity=ANTI)],
    )


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        pytest.param(slice(None), ["n0", "n1", "n2", "n3"], id="all"),
        pytest.param(slice(1, 3), ["n1", "n2"], id="stretch"),
        pytest.param(np.array([3, 1], np.intp), ["n3", "n1"], id="any-order"),
        pytest.param(np.array([], np.intp), [], id="none"),
        pytest.param(slice(4, 4), [], id="empty-stretch"),
    ],
)
def test_everything_a_view_returns_is_in_its_order(
    snapshot: Snapshot, rows: Rows, names: list[str]
) -> None:
    nodes = nodes_of(snapshot, rows)
    numbers = [int(name[1]) for name in names]
    gpu = nodes.resource_column(GPU)
    assert gpu is not None
    assert len(nodes) == len(names)
    assert nodes.names == names
    assert [node.metadata.name for node in nodes.node_objects()] == names
    assert [info.name for info in nodes.infos()] == names
    assert nodes.allocatable(CPU).tolist() == [1000 * (n + 1) for n in numbers]
    assert nodes.allocatable(gpu).tolist() == numbers
    assert nodes.requested(CPU).tolist() == [500 if n == 1 else 0 for n in numbers]
    assert nodes.non_zero_requested(0).tolist() == [{1: 500, 2: 100}.get(n, 0) for n in numbers]
    assert nodes.pod_count.tolist() == [int(n in (1, 2)) for n in numbers]
    assert nodes.allowed_pods.tolist() == [100 + n for n in numbers]
    assert nodes.unschedulable.tolist() == [n == 2 for n in numbers]
    assert [len(nodes.taint_lists[i]) for i in nodes.taint_set] == [int(n == 1) for n in numbers]
    assert nodes.has_affinity.tolist() == [n == 2 for n in numbers]
    assert nodes.has_required_anti_affinity.tolist() == [n == 2 for n in numbers]
    assert [{image.name for image in images} for images in nodes.images()] == [
        {f"img{n}"} for n in numbers
    ]
    values = nodes.label_values("rack")
    expected = [None if n == 3 else f"r{n % 2}" for n in numbers]
    assert [values[i] for i in nodes.label_ids("rack")] == expected


@pytest.mark.parametrize(
    "rows", [slice(None), slice(1, 4), slice(None, None, -1), np.array([3, 2, 0], np.intp)], ids=str
)
def test_a_subset_counts_from_the_view_it_is_of(snapshot: Snapshot, rows: Rows) -> None:
    nodes = nodes_of(snapshot, rows)
    positions = np.array([2, 0], np.intp)
    assert nodes.subset(positions).names == [nodes.names[2], nodes.names[0]]


def test_an_unknown_resource_has_no_column(snapshot: Snapshot) -> None:
    assert nodes_of(snapshot).resource_column("example.com/unheard-of") is None


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(slice(None), [(1, 1, 1), (2, 2, 0), (3, 3, 0)], id="all"),
        pytest.param(slice(1, 3), [(0, 1, 1), (1, 2, 0)], id="stretch"),
        pytest.param(slice(0, 1), [], id="none"),
        pytest.param(np.array([1]), None, id="array"),
    ],
)
def test_few_nodes_with_a_resource(
    snapshot: Snapshot, rows: Rows, expected: list[tuple[int, int, int]] | None
) -> None:
    nodes = nodes_of(snapshot, rows)
    column = nodes.resource_column(GPU)
    assert column is not None
    few = nodes.few_with(column)
    assert (few and sorted(few)) == expected


def test_many_nodes_with_a_resource_are_not_listed() -> None:
    nodes = nodes_of(make_snapshot([make_node(f"n{i}", allocatable={GPU: 1}) for i in range(30)]))
    column = nodes.resource_column(GPU)
    assert column is not None
    assert nodes.few_with(column) is None


def test_a_derived_array_is_computed_once_for_all_views(snapshot: Snapshot) -> None:
    asked: list[int] = []

    def compute(nodes: Nodes) -> IntArray:
        asked.append(len(nodes))
        return nodes.allocatable(CPU) * 2

    view = nodes_of(snapshot, np.array([3, 1], np.intp))
    assert view.tracked("double", Depends.NODE, compute).tolist() == [8000, 4000]
    first = nodes_of(snapshot, slice(0, 1))
    assert first.tracked("double", Depends.NODE, compute).tolist() == [2000]
    assert asked == [4]


class TestSimulatedNode:
    def test_pods_come_and_go_without_a_trace(self, snapshot: Snapshot) -> None:
        node = SimulatedNode(snapshot, 1)
        gpu = node.resource_column(GPU)
        assert gpu is not None
        added = PodInfo(make_pod("x", cpu="2", memory="1Gi", requests={GPU: 3}, affinity=ANTI))
        node.add_pod(added)
        assert node.row == 1
        assert node.names == ["n1"]
        assert node.requested(CPU).tolist() == [2500]
        assert node.requested(MEMORY).tolist() == [2**30]
        assert node.requested(gpu).tolist() == [4]
        assert node.non_zero_requested(0).tolist() == [2500]
        assert node.pod_count.tolist() == [2]
        assert node.has_affinity.tolist() == [True]
        assert node.has_required_anti_affinity.tolist() == [True]
        assert node.allocatable(CPU).tolist() == [2000]
        assert [pod.name for pod in node.infos()[0].pods] == ["p", "x"]
        node.remove_pod(added)
        assert node.requested(CPU).tolist() == [500]
        assert node.has_affinity.tolist() == [False]
        assert nodes_of(snapshot).pod_count.tolist() == [0, 1, 1, 0]

    def test_a_clone_goes_its_own_way(self, snapshot: Snapshot) -> None:
        node = SimulatedNode(snapshot, 0)
        with_pod = node.clone()
        with_pod.add_pod(PodInfo(make_pod("x", cpu="1")))
        assert (node.pod_count.tolist(), with_pod.pod_count.tolist()) == ([0], [1])
        assert with_pod.row == 0
        assert with_pod.names == ["n0"]

    def test_arrays_over_pods_include_simulated_pods(self, snapshot: Snapshot) -> None:
        def compute(nodes: Nodes) -> IntArray:
            return np.array([len(info.pods) for info in nodes.infos()], np.int64)

        node = SimulatedNode(snapshot, 1)
        node.add_pod(PodInfo(make_pod("x")))
        assert node.tracked("pods", Depends.PODS, compute).tolist() == [2]
        assert nodes_of(snapshot).tracked("pods", Depends.PODS, compute).tolist() == [0, 1, 1, 0]

    def test_arrays_over_nodes_are_the_kept_ones(self, snapshot: Snapshot) -> None:
        def compute(nodes: Nodes) -> IntArray:
            return nodes.allowed_pods.copy()

        node = SimulatedNode(snapshot, 2)
        assert node.tracked("allowed", Depends.NODE, compute).tolist() == [102]

    def test_its_only_subset_is_itself(self, snapshot: Snapshot) -> None:
        node = SimulatedNode(snapshot, 2)
        assert node.subset(np.array([0], np.intp)) is node
