"""The form for one node is made once for each request."""

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.engine.equivalence.row_forms.node_resources_fit import filter_form
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot


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
