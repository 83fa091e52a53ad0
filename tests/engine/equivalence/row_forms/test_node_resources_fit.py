"""The form for one node is made once for each request, and equals that for all nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.device import DeviceClass
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import NodeResourcesFitArgs, ScoringStrategy
from kubestow.engine.equivalence.row_forms.amounts import load_readers
from kubestow.engine.equivalence.row_forms.node_resources_fit import (
    filter_form,
    least_of_cpu_and_memory,
    node_strategy,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_resources_fit.strategies import strategy_of
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


@pytest.mark.parametrize(
    ("used", "requests", "is_short"),
    [
        pytest.param("3", {"cpu": "2", "memory": "2"}, False, id="enough"),
        pytest.param("3", {"cpu": "3", "memory": "2"}, True, id="cpu"),
        pytest.param("3", {"cpu": "9"}, True, id="cpu-even-if-empty"),
        pytest.param("3", {"memory": "3"}, True, id="memory"),
        pytest.param("3", {"memory": "9"}, True, id="memory-even-if-empty"),
        pytest.param("3", {"ephemeral-storage": "3"}, True, id="storage"),
        pytest.param("3", {"ephemeral-storage": "9"}, True, id="storage-even-if-empty"),
        pytest.param("3", {"cpu": "3", "memory": "9", "ephemeral-storage": "3"}, True, id="all"),
        pytest.param("3", {"example.com/gpu": "1"}, True, id="scalar"),
        pytest.param("9", {}, False, id="nothing-on-an-overcommitted-node"),
    ],
)
def test_one_node_lacks_what_it_lacks_among_all(
    used: str, requests: dict[str, str], is_short: bool
) -> None:
    plugin, state = NodeResourcesFit(NodeResourcesFitArgs(), make_handle()), CycleState()
    basic = ("cpu", "memory", "ephemeral-storage")
    node = make_node("n1", allocatable=dict.fromkeys(basic, "5"))
    snapshot = make_snapshot(
        [node], [make_pod("r", node="n1", requests=dict.fromkeys(basic, used))]
    )
    (info,) = snapshot.node_infos
    pod = PodInfo(make_pod(requests=requests))
    plugin.pre_filter(state, pod, nodes_of(snapshot))
    codes = plugin.filter(state, pod, nodes_of(snapshot))
    assert filter_form(plugin, state)(info) == (0 if codes is None else codes[0])
    assert (codes is not None) is is_short


amounts = st.integers(0, 2**40) | st.integers(0, 8)


@given(
    cpu=st.tuples(amounts, amounts, amounts),
    memory=st.tuples(amounts, amounts, amounts),
    weights=st.tuples(st.integers(1, 100), st.integers(1, 100)),
)
def test_the_default_resources_score_as_any_others(
    cpu: tuple[int, int, int], memory: tuple[int, int, int], weights: tuple[int, int]
) -> None:
    info = NodeInfo("n")
    info.allocatable = Resources(milli_cpu=cpu[0], memory=memory[0])
    info.non_zero_cpu, info.non_zero_memory = cpu[1], memory[1]
    requests = cpu[2], memory[2]
    of_any = node_strategy(
        strategy_of(ScoringStrategy(type="LeastAllocated")),
        load_readers(("cpu", "memory"), np.array(requests), np.array(weights), non_zero=True),
    )
    of_two = least_of_cpu_and_memory(requests, weights, otherwise=of_any)
    assert of_two(info) == of_any(info)
