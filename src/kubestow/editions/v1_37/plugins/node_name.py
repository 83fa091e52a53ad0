"""NodeName of v1.37: a pod that names its node looks at that one only (spec 12 §2)."""

from kubestow.api.pod_info import PodInfo
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import PreFilterResult, Restriction
from kubestow.index.nodes import Nodes
from kubestow.plugins.node_name import NodeName


class NodeNameV137(NodeName):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        wanted = pod.pod.spec.node_name
        return Restriction(frozenset((wanted,))) if wanted else None
