"""What every filter says about one node, not only the first one that rejects it.

Each plugin is asked by itself, its PreFilter first: the filters after a rejecting one are not asked
in a scheduling cycle, and those after a rejecting PreFilter could not be.
"""

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.explain.explanation import FilterVerdict, NodeFilterAnswer
from kubestow.explain.reason_codes import reason_codes
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.plugin import FilterPlugin, PreFilterPlugin, Restriction
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.runner import run_pre_filter
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of


def filter_answers(
    profile: Profile, snapshot: Snapshot, pod: PodInfo, node_name: str
) -> tuple[NodeFilterAnswer, ...]:
    """The answers about a node of the snapshot, in the order in which filters run."""
    row = snapshot.row_of(node_name)
    assert row is not None, node_name
    one = nodes_of(snapshot, np.array([row], np.intp))
    plugins = {plugin_name(plugin): plugin for plugin in (*profile.filter, *profile.pre_filter)}
    return tuple(_answer(name, plugin, pod, one) for name, plugin in plugins.items())


def _answer(name: str, plugin: object, pod: PodInfo, one: Nodes) -> NodeFilterAnswer:
    try:
        status = _status(name, plugin, pod, one)
    except Exception as error:  # A plugin of a user may raise anything.
        status = Status.from_error(error)
    if status is None:
        return NodeFilterAnswer(plugin=name, verdict="Passed")
    verdict: FilterVerdict = "Rejected" if status.is_rejected else "Error"
    if status.code == Code.SKIP:
        return NodeFilterAnswer(plugin=name, verdict="Skipped")
    return NodeFilterAnswer(
        plugin=name,
        verdict=verdict,
        code=status.code.label,
        reasons=status.all_reasons,
        reason_codes=reason_codes(name, status.all_reasons),
    )


def _status(name: str, plugin: object, pod: PodInfo, one: Nodes) -> Status | None:
    """None if the plugin accepts the node."""
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(state, pod, nodes_of(one.snapshot))
        if isinstance(answer, Restriction):
            if one.names[0] not in answer.node_names:
                return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{name}]")
        elif answer is not None and not answer.is_success:
            return answer
    if not isinstance(plugin, FilterPlugin):
        return None
    codes = plugin.filter(state, pod, one)
    code = 0 if codes is None else int(codes[0])
    return decode_status(plugin, state, code) if code else None


def asked_filters(profile: Profile, snapshot: Snapshot, pod: PodInfo) -> list[str]:
    """The filters that an attempt asks, in their order: PreFilter may skip some."""
    state = CycleState()
    run_pre_filter(profile, state, pod, nodes_of(snapshot))
    names = map(plugin_name, profile.filter)
    return [name for name in names if name not in state.skip_filter]
