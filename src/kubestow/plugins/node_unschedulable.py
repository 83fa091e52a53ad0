"""Rejects cordoned nodes for pods that do not tolerate them (spec 05 §5.2)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import UNSCHEDULABLE_TAINT, TolerationTable
from kubestow.arrays import IntArray
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases

_CORDONED: Final = Status.unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    name: ClassVar[str] = "NodeUnschedulable"
    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE, pod=PodReads.SPEC, basis=bases.tolerations)

    def __init__(self, args: object, handle: Handle) -> None:
        self._comparison_operators = handle.feature_gates.enabled(
            "TaintTolerationComparisonOperators"
        )

    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, hint_for_node),
            on(Resource.POD, Action.UPDATE_POD_TOLERATION, self._hint_for_toleration),
        ]

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        cordoned = nodes.unschedulable
        if not cordoned.any() or self._tolerates_cordon(pod.pod):
            return None
        return cordoned.astype(np.int64)

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_tolerations(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _CORDONED

    def _tolerates_cordon(self, pod: Pod) -> bool:
        return TolerationTable(pod.spec.tolerations).accepts(
            UNSCHEDULABLE_TAINT, comparison_operators=self._comparison_operators
        )

    def _hint_for_toleration(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        is_same = new.metadata.uid == pod.metadata.uid
        return Hint.QUEUE if is_same and self._tolerates_cordon(new) else Hint.SKIP


def hint_for_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    was_closed = old is None or old.spec.unschedulable
    return Hint.QUEUE if was_closed and not new.spec.unschedulable else Hint.SKIP
