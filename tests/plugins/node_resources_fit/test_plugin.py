"""Spec 05 §8: the plugin's state, errors and signature."""

import pytest

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_pre_filter

FOO = "example.com/foo"


def make_plugin(objects: ClusterObjects | None = None) -> NodeResourcesFit:
    return NodeResourcesFit(NodeResourcesFitArgs(), make_handle(objects=objects))


def test_pre_filter_never_skips() -> None:
    assert run_pre_filter(make_plugin(), make_pod(), make_snapshot()) is None


def test_filter_needs_pre_filter() -> None:
    text = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        make_plugin().filter(CycleState(), PodInfo(make_pod()), nodes_of(make_snapshot()))


def test_score_does_without_pre_score() -> None:
    nodes = nodes_of(make_snapshot([make_node(cpu="4", memory="8Gi")]))
    assert make_plugin().score(CycleState(), PodInfo(make_pod()), nodes).tolist() == [97]


def test_arguments_of_another_plugin_are_refused() -> None:
    text = "want args to be of type NodeResourcesFitArgs, got dict"
    with pytest.raises(ConfigError, match=text):
        NodeResourcesFit({}, make_handle())


def test_the_signature_is_the_request() -> None:
    plugin = make_plugin()
    one, other = make_pod(cpu="1", requests={FOO: 2}), make_pod(cpu="1000m", requests={FOO: 2})
    assert plugin.sign(PodInfo(one)) == plugin.sign(PodInfo(other))
    assert plugin.sign(PodInfo(one)) != plugin.sign(PodInfo(make_pod(cpu="1")))


def test_pods_served_by_devices_are_not_signed() -> None:
    objects = ClusterObjects()
    objects.device_classes.put(
        DeviceClass(metadata=ObjectMeta(name="c"), spec=DeviceClassSpec(extended_resource_name=FOO))
    )
    plugin = make_plugin(objects)
    assert plugin.sign(PodInfo(make_pod(requests={FOO: 1}))) == Status.unschedulable(
        "signature disabled when dra extended resources are used in the cluster"
    )
    assert not isinstance(plugin.sign(PodInfo(make_pod(requests={FOO: 0}))), Status)
