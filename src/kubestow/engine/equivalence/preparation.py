"""PreScore of single plugins, outside the order in which the framework runs them.

A failure here is not reported: it occurs again when every plugin is asked.
"""

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import PRE_SCORE
from kubestow.framework.plugin import PreScorePlugin
from kubestow.framework.runner import pre_score_of
from kubestow.framework.status import Code
from kubestow.index.nodes import Nodes


def ask_pre_score(
    name: str, plugin: PreScorePlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> bool:
    """Whether the plugin is prepared, or leaves itself out."""
    status = pre_score_of(name, plugin, state, pod, nodes)
    state.sampler.plugin_ended(name, PRE_SCORE, status)
    if status is not None and status.code == Code.SKIP:
        state.skip_score.add(name)
        return True
    return status is None or status.is_success
