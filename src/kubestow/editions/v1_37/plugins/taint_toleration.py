"""TaintToleration of v1.37: another hint for tolerations, and PreFilter (spec 12 §2, §3.3)."""

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.plugin import PreFilterResult
from kubestow.index.nodes import Nodes
from kubestow.plugins.taint_toleration import TaintToleration


class TaintTolerationV137(TaintToleration):
    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._hint_for_node),
            on(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        """Succeeds: no pod leaves the filter out."""
        return None
