"""Which filters take part in a trial."""

import pytest

from kubestow.api.meta import ApiObject
from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.runner import run_pre_filter
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption import filters
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.testing import make_node, make_pod, make_term
from kubestow.testing.storage import DRIVER, make_claim, make_csi_node, make_volume
from tools.small_cluster import SmallCluster

PLUGINS = ("NodeResourcesFit", "NodeVolumeLimits", "VolumeBinding")
CLAIM = make_claim("data", volume="v")
NAMES = ("NodeUnschedulable", "NodeResourcesFit", "VolumeZone", "NodeAffinity")
CLUSTER = SmallCluster([make_node("n1")], plugins=NAMES)


def state_without(*names: str) -> CycleState:
    state = CycleState()
    state.skip_filter = frozenset(names)
    return state


def test_those_that_pre_filter_left_take_part() -> None:
    table, plain = FilterTable(CLUSTER.profile), PodInfo(make_pod())
    found = table.of_attempt(state_without("NodeUnschedulable"), plain)
    assert [each.name for each in found] == ["NodeResourcesFit", "VolumeZone", "NodeAffinity"]
    assert found.reused == found


def test_those_that_look_at_the_single_pod_are_not_reused() -> None:
    table, mounting = FilterTable(CLUSTER.profile), PodInfo(make_pod(pvcs=["c1"]))
    found = table.of_attempt(state_without("NodeAffinity"), mounting)
    assert found.reused_names == ("NodeUnschedulable", "NodeResourcesFit")
    assert [each.name for each in found.per_pod] == ["VolumeZone"]


@pytest.mark.parametrize(
    ("passed_before", "names"),
    [
        pytest.param(0, ["NodeUnschedulable", "NodeResourcesFit", "NodeAffinity"], id="none"),
        # The second one reads what is free.
        pytest.param(2, ["NodeResourcesFit", "NodeAffinity"], id="two"),
        pytest.param(9, ["NodeResourcesFit"], id="all"),
    ],
)
def test_those_that_read_nodes_alone_and_have_passed_them_are_left_out(
    passed_before: int, names: list[str]
) -> None:
    table, pod = FilterTable(CLUSTER.profile), PodInfo(make_pod())
    found = table.of_attempt(state_without("VolumeZone"), pod, passed_before)
    assert [each.name for each in found] == names


def test_selections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_SELECTIONS_MAX", 2)
    table, pod = FilterTable(CLUSTER.profile), PodInfo(make_pod())
    first = table.of_attempt(state_without(), pod)
    assert table.of_attempt(state_without(), pod) is first
    for name in NAMES:
        table.of_attempt(state_without(name), pod)
        assert len(table._selections) <= 2
        assert len(table._left) <= 2
    assert table.of_attempt(state_without(), pod) == first


@pytest.mark.parametrize(
    ("objects", "names"),
    [
        pytest.param((make_volume("v"),), ["NodeResourcesFit"], id="pass-whatever-pods-there-are"),
        pytest.param(
            (make_volume("v", handle="h"), make_csi_node("n1", {DRIVER: 9})),
            ["NodeResourcesFit", "NodeVolumeLimits"],
            id="passes-with-these-pods",
        ),
        pytest.param(
            (make_volume("v", terms=[make_term("zone In a")]),),
            ["NodeResourcesFit", "VolumeBinding"],
            id="passes-some-nodes",
        ),
    ],
)
def test_filters_that_pass_every_node_are_left_out(
    objects: tuple[ApiObject, ...], names: list[str]
) -> None:
    cluster = SmallCluster([make_node("n1")], plugins=PLUGINS, objects=[CLAIM, *objects])
    pod, state = PodInfo(make_pod("p", pvcs=["data"])), CycleState()
    run_pre_filter(cluster.profile, state, pod, nodes_of(cluster.snapshot))
    found = FilterTable(cluster.profile).of_attempt(state, pod)
    assert [each.name for each in found] == names
