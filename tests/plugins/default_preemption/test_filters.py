"""Which filters take part in a trial."""

import pytest

from kubestow.api.meta import ApiObject
from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.runner import run_pre_filter
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.testing import make_node, make_pod, make_term
from kubestow.testing.small_cluster import SmallCluster
from kubestow.testing.storage import DRIVER, make_claim, make_csi_node, make_volume

PLUGINS = ("NodeResourcesFit", "NodeVolumeLimits", "VolumeBinding")
CLAIM = make_claim("data", volume="v")


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
