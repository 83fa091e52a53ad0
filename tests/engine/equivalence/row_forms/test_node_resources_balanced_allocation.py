"""The form for one node gives the score of the array form, for any number of resources."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.cache.node_info import NodeInfo
from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from kubestow.engine.equivalence.row_forms.amounts import load_readers
from kubestow.engine.equivalence.row_forms.node_resources_balanced_allocation import (
    balance_of_any,
    balance_of_cpu_and_memory,
    score_form,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot

NAMES = ("cpu", "memory", "example.com/a", "example.com/b")


@pytest.mark.parametrize("count", [2, 3, 4])
def test_one_node_scores_as_among_all(count: int) -> None:
    args = NodeResourcesBalancedAllocationArgs(
        resources=tuple(ResourceSpec(name=name, weight=1) for name in NAMES[:count])
    )
    plugin, state = NodeResourcesBalancedAllocation(args, make_handle()), CycleState()
    node = make_node("n1", cpu="100", memory="100", allocatable=dict.fromkeys(NAMES[2:], "100"))
    running = make_pod(
        "r", node="n1", requests=dict(zip(NAMES, ("5", "40", "10", "0"), strict=True))
    )
    snapshot = make_snapshot([node], [running])
    (info,) = snapshot.node_infos
    # Shares far from each other, the last not the first.
    pod = PodInfo(make_pod("p", requests=dict(zip(NAMES, ("5", "50", "60", "30"), strict=True))))
    plugin.pre_score(state, pod, nodes_of(snapshot))
    (among_all,) = plugin.score(state, pod, nodes_of(snapshot)).tolist()
    assert score_form(plugin, state)(info) == among_all


amounts = st.integers(0, 2**40) | st.integers(0, 8) | st.just(2**63 - 1)


@given(cpu=st.tuples(amounts, amounts, amounts), memory=st.tuples(amounts, amounts, amounts))
def test_the_default_resources_score_as_any_others(
    cpu: tuple[int, int, int], memory: tuple[int, int, int]
) -> None:
    info = NodeInfo("n")
    info.allocatable = Resources(milli_cpu=cpu[0], memory=memory[0])
    info.requested = Resources(milli_cpu=cpu[1], memory=memory[1])
    requests, weights = np.array([cpu[2], memory[2]]), np.array([1, 1])
    of_any = balance_of_any(load_readers(NAMES[:2], requests, weights, non_zero=False))
    assert balance_of_cpu_and_memory(cpu[2], memory[2])(info) == of_any(info)
