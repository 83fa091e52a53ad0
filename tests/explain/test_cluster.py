"""A cluster at one moment decides as a scheduler would, and is as before after every change."""

from collections.abc import Callable, Sequence

import pytest

from kubestow.api.meta import ApiObject
from kubestow.explain.cluster import StillCluster
from kubestow.testing import make_node, make_pod

MakeCluster = Callable[..., StillCluster]


BIG = make_pod("big", cpu="3")
LOW = make_pod("low", cpu="2", node="a", priority=1)
HIGH = make_pod("high", cpu="3", priority=10)


def test_decides_as_a_scheduler_would(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(make_node("a", cpu="2"), make_node("b", cpu="4"), BIG)
    assert cluster.decide(BIG).node_name == "b"


def test_victims_are_named_and_nothing_is_evicted(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(make_node("a", cpu="4"), LOW, HIGH)
    for _ in range(2):
        frozen = cluster.decide(HIGH).freeze()
        assert [victim.key for victim in frozen.victims] == ["default/low"]
        assert frozen.nominated_node == "a"
    assert cluster.objects.pods.get("default", "low") is LOW


@pytest.mark.parametrize(
    ("new", "removed", "node"),
    [
        pytest.param([make_node("a", cpu="8")], [], "a", id="node-replaced"),
        pytest.param([make_node("c", cpu="8")], [], "c", id="node-added"),
        pytest.param([], [LOW], "a", id="pod-removed"),
        pytest.param([make_node("b", cpu="8", zone="z2")], [], "b", id="zone-changed"),
    ],
)
def test_a_change_counts_and_is_undone(
    make_cluster: MakeCluster, new: Sequence[ApiObject], removed: Sequence[ApiObject], node: str
) -> None:
    nodes = [make_node("a", cpu="4", zone="z1"), make_node("b", cpu="1", zone="z1")]
    others = [make_pod(f"o{number}", cpu="100m", node="a") for number in range(3)]
    cluster = make_cluster(*nodes, LOW, *others, BIG)
    before = cluster.decide(BIG).message
    order = [info.key for info in cluster.snapshot.get("a").pods]
    with cluster.changed(*new, removed=removed):
        assert cluster.decide(BIG).node_name == node
    assert cluster.decide(BIG).message == before
    assert cluster.snapshot.names == ["a", "b"]
    assert [info.key for info in cluster.snapshot.get("a").pods] == order
    assert cluster.scheduler.cache.node_tree.list() == ["a", "b"]


def test_changes_nest(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(make_node("a", cpu="2"), BIG)
    with cluster.changed(make_node("a", cpu="1")):
        with cluster.changed(make_node("a", cpu="8")):
            assert cluster.decide(BIG).is_scheduled
        assert cluster.refresh().get("a").allocatable.milli_cpu == 1000
        assert not cluster.decide(BIG).is_scheduled
    assert cluster.refresh().get("a").allocatable.milli_cpu == 2000


def test_a_placed_pod_can_be_tried_as_if_it_waited(make_cluster: MakeCluster) -> None:
    placed = make_pod("p", uid="u", cpu="2", node="a")
    cluster = make_cluster(make_node("a", cpu="2"), make_node("b", cpu="2"), placed)
    waiting = make_pod("p", uid="u", cpu="2")
    with cluster.changed(waiting):
        assert len(cluster.decide(waiting).feasible) == 2
    assert [info.key for info in cluster.refresh().get("a").pods] == ["default/p"]


def test_the_snapshot_shows_no_change_that_was_only_tried(make_cluster: MakeCluster) -> None:
    tainted = make_node("n", taints=["k=v:NoSchedule"])
    cluster = make_cluster(tainted)
    cluster.refresh()
    with cluster.changed(make_node("n")):
        cluster.decide(make_pod("p"))
    assert [node.spec.taints for node in cluster.snapshot.nodes] == [tainted.spec.taints]
