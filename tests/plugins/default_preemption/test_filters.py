"""Which filters take part in a trial."""

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.plugins.default_preemption import filters
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.testing import make_node, make_pod
from kubestow.testing.small_cluster import SmallCluster

NAMES = ("NodeUnschedulable", "NodeResourcesFit", "VolumeZone", "NodeVolumeLimits")
CLUSTER = SmallCluster([make_node("n1")], plugins=NAMES)


def state_without(*names: str) -> CycleState:
    state = CycleState()
    state.skip_filter = set(names)
    return state


def test_those_that_pre_filter_left_take_part() -> None:
    table, plain = FilterTable(CLUSTER.profile), PodInfo(make_pod())
    found = table.of_attempt(state_without("NodeUnschedulable"), plain)
    assert [each.name for each in found] == ["NodeResourcesFit", "VolumeZone", "NodeVolumeLimits"]
    assert found.reused == found


def test_those_that_look_at_the_single_pod_are_not_reused() -> None:
    table, mounting = FilterTable(CLUSTER.profile), PodInfo(make_pod(pvcs=["c1"]))
    found = table.of_attempt(state_without("NodeVolumeLimits"), mounting)
    assert found.reused_names == ("NodeUnschedulable", "NodeResourcesFit")
    assert [each.name for each in found.per_pod] == ["VolumeZone"]


def test_selections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_SELECTIONS_MAX", 2)
    table, pod = FilterTable(CLUSTER.profile), PodInfo(make_pod())
    first = table.of_attempt(state_without(), pod)
    assert table.of_attempt(state_without(), pod) is first
    for name in NAMES:
        table.of_attempt(state_without(name), pod)
        assert len(table._selections) <= 2
    assert table.of_attempt(state_without(), pod) == first
