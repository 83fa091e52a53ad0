"""PreFilter and PreScore of single plugins, outside the order in which the framework runs them.

A failure here is not reported: it occurs again when every plugin is asked.
"""

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import PRE_SCORE
from kubestow.framework.plugin import PreFilterPlugin, PreScorePlugin, Restriction
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes


def ask_pre_filter(
    plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> Restriction | Status | None:
    try:
        return plugin.pre_filter(state, pod, nodes)
    except Exception as error:  # The plain evaluation reports it.
        return Status.from_error(error)


def ask_pre_score(
    name: str, plugin: PreScorePlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> bool:
    try:
        status = plugin.pre_score(state, pod, nodes)
    except Exception:  # As above.
        return False
    state.sampler.plugin_ended(name, PRE_SCORE, status)
    if status is not None and status.code == Code.SKIP:
        state.skip_score.add(name)
        return True
    return status is None or status.is_success
