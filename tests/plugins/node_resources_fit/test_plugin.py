"""Spec 05 §8: the plugin's state and errors."""

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_pre_filter


def make_plugin() -> NodeResourcesFit:
    return NodeResourcesFit(NodeResourcesFitArgs(), make_handle())


def test_pre_filter_never_skips() -> None:
    assert run_pre_filter(make_plugin(), make_pod(), make_snapshot()) is None


def test_filter_needs_pre_filter() -> None:
    text = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        make_plugin().filter(CycleState(), PodInfo(make_pod()), nodes_of(make_snapshot()))


def test_score_does_without_pre_score() -> None:
    nodes = nodes_of(make_snapshot([make_node(cpu="4", memory="8Gi")]))
    assert make_plugin().score(CycleState(), PodInfo(make_pod()), nodes).tolist() == [97]
