"""The form for one node is made once for each request, and equals that for all nodes."""

import pytest

from kubestow.api.device import DeviceClass
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.engine.equivalence.row_forms.node_resources_fit import filter_form
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot
from kubestow.testing.devices import make_device_class


def test_the_form_is_kept_until_the_request_changes() -> None:
    plugin, state = NodeResourcesFit(NodeResourcesFitArgs(), make_handle()), CycleState()
    snapshot = make_snapshot([make_node("n1", cpu="2")])
    (info,) = snapshot.node_infos
    plugin.pre_filter(state, PodInfo(make_pod(cpu="1")), nodes_of(snapshot))
    small = filter_form(plugin, state)
    assert filter_form(plugin, state) is small
    plugin.pre_filter(state, PodInfo(make_pod(cpu="3")), nodes_of(snapshot))
    large = filter_form(plugin, state)
    assert (small(info) == 0, large(info) == 0) == (True, False)


@pytest.mark.parametrize("offered", [0, 1, 2])
def test_devices_serve_what_a_node_has_nothing_of(offered: int) -> None:
    objects = ClusterObjects()
    objects.store(DeviceClass).put(make_device_class("gpus", extended_resource="example.com/gpu"))
    handle = make_handle(objects=objects)
    plugin, state = NodeResourcesFit(NodeResourcesFitArgs(), handle), CycleState()
    node = make_node("n1", allocatable={"example.com/gpu": str(offered)} if offered else {})
    snapshot = make_snapshot([node])
    (info,) = snapshot.node_infos
    pod = PodInfo(make_pod(requests={"example.com/gpu": "2"}))
    plugin.pre_filter(state, pod, nodes_of(snapshot))
    codes = plugin.filter(state, pod, nodes_of(snapshot))
    assert filter_form(plugin, state)(info) == (0 if codes is None else codes[0])
    assert (codes is None) is (offered != 1)
