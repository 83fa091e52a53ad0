"""NodeUnschedulable of v1.37: another hint for tolerations, and PreFilter (spec 12 §2, §3.3)."""

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.plugin import PreFilterResult
from kubestow.index.nodes import Nodes
from kubestow.plugins.node_unschedulable import NodeUnschedulable, hint_for_node


class NodeUnschedulableV137(NodeUnschedulable):
    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, hint_for_node),
            on(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, self._hint_for_own_toleration),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        """Succeeds: no pod leaves the filter out."""
        return None

    def _hint_for_own_toleration(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        # The event may be of another pod that is tried at the same time; it is not compared.
        return Hint.QUEUE if self._tolerates_cordon(new) else Hint.SKIP
