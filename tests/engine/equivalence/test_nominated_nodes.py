"""Reuse changes no verdict on nodes that pods are nominated to (spec 04 §5, §7)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.equivalence import records
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.record import Record
from kubestow.engine.equivalence.records import Records
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.testing import make_node, make_pod, make_term
from kubestow.testing.storage import make_claim, make_volume
from tools.small_cluster import SmallCluster

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


def test_nothing_is_prepared_for_a_pod_that_gets_its_nominated_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second attempt makes a record pay, but not one that asks about a single node."""
    built: list[str] = []
    build_record = records.build_record

    def noted(frame: FrameRecord, pod: PodInfo, timer: AttemptTimer | None) -> Record:
        built.append(pod.name)
        return build_record(frame, pod, timer)

    monkeypatch.setattr(records, "build_record", noted)
    cluster = SmallCluster([make_node(name, cpu="4") for name in NAMES], plugins=PLUGINS)
    kept, profile = Records(cluster.snapshot), cluster.profile
    for number in range(3):
        kept.evaluation(profile, PodInfo(make_pod(f"common-{number}", cpu="1")))
        kept.looked_at(len(NAMES))
    built.clear()
    for pod in ("first", "again", "later"):
        nominated = NAMES[0] if pod == "again" else ""
        kept.evaluation(profile, PodInfo(make_pod(pod, cpu="3", nominated_node=nominated)))
        kept.looked_at(len(NAMES))
    assert built == ["later"]
