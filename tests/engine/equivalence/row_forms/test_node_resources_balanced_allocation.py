"""The form for one node gives the score of the array form, for any number of resources."""

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from kubestow.engine.equivalence.row_forms.node_resources_balanced_allocation import score_form
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
