"""Arrays that are kept cannot be written to by what they are handed out to (`conftest`)."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from kubestow.api.labels import EVERYTHING
from kubestow.api.pod_info import PodInfo
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.records import Records
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, PodSet
from kubestow.index.tracked import LabelColumns
from kubestow.testing import make_node, make_pod
from tools.small_cluster import SmallCluster

ZONE = "topology.kubernetes.io/zone"
GPU = "example.com/gpu"
ALL_PODS = InAll((PodSet(None, EVERYTHING),))

NUMBERS: dict[str, Callable[[Nodes], npt.NDArray[np.generic]]] = {
    "requested": lambda nodes: nodes.requested(0),
    "requested-gpu": lambda nodes: nodes.requested(nodes.resource_column(GPU) or 0),
    "allocatable": lambda nodes: nodes.allocatable(0),
    "non-zero-requested": lambda nodes: nodes.non_zero_requested(0),
    "basic-requested": lambda nodes: nodes.basic_requested,
    "basic-allocatable": lambda nodes: nodes.basic_allocatable,
    "non-zero": lambda nodes: nodes.non_zero,
    "pod-count": lambda nodes: nodes.pod_count,
    "allowed-pods": lambda nodes: nodes.allowed_pods,
    "unschedulable": lambda nodes: nodes.unschedulable,
    "features": lambda nodes: nodes.features,
    "taint-set": lambda nodes: nodes.taint_set,
    "label-ids": lambda nodes: nodes.label_ids(ZONE),
    "has-affinity": lambda nodes: nodes.has_affinity,
    "has-required-anti-affinity": lambda nodes: nodes.has_required_anti_affinity,
    "tracked": lambda nodes: nodes.tracked("ones", Depends.NODE, _ones),
}


def _ones(nodes: Nodes) -> npt.NDArray[np.int64]:
    return np.ones(len(nodes), np.int64)


@pytest.fixture
def cluster() -> SmallCluster:
    nodes = [make_node(f"n{row}", zone=f"z{row}", allocatable={GPU: 2}) for row in range(3)]
    pods = [make_pod(f"p{row}", node=f"n{row}", requests={GPU: 1}) for row in range(3)]
    return SmallCluster(nodes, pods, plugins=["NodeResourcesFit"])


def views(snapshot: Snapshot) -> list[Nodes]:
    return [
        nodes_of(snapshot),
        nodes_of(snapshot, slice(1, 3)),
        nodes_of(snapshot, np.array([2, 0])),
        SimulatedNode(snapshot, 1),
    ]


def assert_read_only(array: npt.NDArray[np.generic]) -> None:
    assert array.size
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 7


@pytest.mark.parametrize("read", NUMBERS.values(), ids=NUMBERS)
def test_what_nodes_show(
    read: Callable[[Nodes], npt.NDArray[np.generic]], cluster: SmallCluster
) -> None:
    for nodes in views(cluster.snapshot):
        assert_read_only(read(nodes))


def test_label_columns(cluster: SmallCluster) -> None:
    column = cluster.snapshot.derived(LabelColumns).column(ZONE)
    assert_read_only(column.ids)


def test_topology_counts(cluster: SmallCluster) -> None:
    moved = [make_node("n0", zone=zone) for zone in ("z0", "z1", "z2")]
    for old, new in pairwise(moved):
        counts = TopologyCounts.at(cluster.snapshot)
        column, tally = counts.column(ZONE), counts.pods(ALL_PODS)
        assert tally.rows.total() == tally.sums(column).total
        for array in (
            column.ids,
            column.populations,
            tally.rows.array(),
            tally.sums(column).amounts.array(),
        ):
            assert_read_only(array)
        # What follows the snapshot goes on doing so.
        cluster.cache.add_pod(PodInfo(make_pod("another", node="n1")))
        cluster.cache.update_node(old, new)
        cluster.snapshot.refresh(cluster.cache)


def test_verdicts_that_are_reused(cluster: SmallCluster) -> None:
    pod = cluster.wait(make_pod("waiting"))
    records = Records(cluster.snapshot)
    for _ in range(3):  # From the third pod on there is a record.
        evaluation = records.evaluation(cluster.profile, pod)
        records.looked_at(3)
    evaluation.pre_filter()
    for array in evaluation.verdicts(slice(0, 3)):
        assert_read_only(array)
