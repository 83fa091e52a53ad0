"""Reuse changes no verdict on nodes that pods are nominated to (spec 04 §5, §7)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.testing import make_node, make_pod, make_term
from kubestow.testing.small_cluster import SmallCluster
from kubestow.testing.storage import make_claim, make_volume

ZONE = "topology.kubernetes.io/zone"
# Volumes are looked at for every pod, before and after what is kept for a shape.
PLUGINS = (
    "VolumeZone",
    "NodeUnschedulable",
    "NodeResourcesFit",
    "NodePorts",
    "VolumeBinding",
    "NodeResourcesBalancedAllocation",
)
VOLUMES: list[ApiObject] = [
    make_claim("c1", volume="v1"),
    make_volume("v1", labels={ZONE: "z1"}),
    make_claim("c2", volume="v2"),
    make_volume("v2", terms=[make_term(f"{ZONE} In z2")]),
]
KINDS: list[dict[str, Any]] = [
    {"cpu": "1"},
    {"cpu": "3"},
    {"cpu": "9"},
    {"cpu": "1", "host_ports": [80]},
    {"cpu": "1", "pvcs": ["c1"]},
    {"cpu": "1", "pvcs": ["c2"]},
    {"cpu": "9", "pvcs": ["c1"]},
    {"cpu": "9", "pvcs": ["c2"]},
]
NAMES = [f"n{number}" for number in range(4)]


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    zone = draw(st.sampled_from([None, "z1", "z2"]))
    return make_node(
        name,
        cpu=draw(st.sampled_from(["2", "4"])),
        labels={} if zone is None else {ZONE: zone},
        unschedulable=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    nominated = "" if node else draw(st.sampled_from(["", "gone", *NAMES]))
    kind = draw(st.sampled_from(KINDS))
    priority = draw(st.integers(0, 2))
    return make_pod(name, node=node, nominated_node=nominated, priority=priority, **kind)


@settings(deadline=None)
@given(st.data())
def test_decisions_equal_those_of_asking_every_plugin(data: st.DataObject) -> None:
    cluster = SmallCluster(
        [data.draw(nodes(name)) for name in NAMES],
        [
            data.draw(pods(f"on-{name}", name))
            for name in data.draw(st.sets(st.sampled_from(NAMES)))
        ],
        plugins=PLUGINS,
        objects=VOLUMES,
    )
    plain = Decider(
        cluster.snapshot, cluster.nominator, percentage_of_nodes_to_score=100, reuses_answers=False
    )
    for number in range(8):
        info = cluster.wait(data.draw(pods(f"p{number}")))
        for _ in range(2):
            cluster.snapshot.refresh(cluster.cache)
            expected = plain.decide(cluster.profile, info)
            assert described(cluster.decide(info.pod)) == described(expected)
        if expected.node_name and data.draw(st.booleans()):
            cluster.nominator.delete(info.pod)
            cluster.cache.assume_pod(PodInfo(info.pod).assigned_to(expected.node_name))


def test_a_filter_that_comes_first_decides_where_no_node_fits() -> None:
    """VolumeZone is asked for every pod, and rejects one of the nodes before NodeResourcesFit."""
    cluster = SmallCluster(
        [make_node("n0", cpu="2", labels={ZONE: "z1"}), make_node("n1", labels={ZONE: "z2"})],
        plugins=PLUGINS,
        objects=VOLUMES,
    )
    texts = {
        cluster.decide(make_pod(f"p{number}", cpu="9", pvcs=["c1"])).message for number in range(4)
    }
    assert texts == {
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had no available volume zone."
    }


def described(decision: Decision) -> tuple[Any, ...]:
    diagnosis = decision.diagnosis
    return (
        decision.node_name,
        decision.message,
        decision.via_nominated_node,
        decision.feasible.tolist(),
        decision.evaluated_count,
        diagnosis.statuses(),
        diagnosis.unschedulable_plugins,
        diagnosis.pending_plugins,
    )
