"""Tries deferred resizes on their own node, unless it forbids evictions for them (spec 12 §11)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.editions.v1_37.api.deferred import is_deferred
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import PreFilterResult
from kubestow.framework.status import Status
from kubestow.index.node_match import name_matches
from kubestow.index.nodes import Nodes

_OTHER_NODE: Final = 1
_DISABLED: Final = 2
_STATUSES: Final = {
    _OTHER_NODE: Status.unresolvable("pod assigned to different node"),
    _DISABLED: Status.unresolvable("node had resize preemption disabled"),
}
_FITS: Final = Status.unresolvable("pod resize fits, waiting for Kubelet actuation")


class DeferredPodScheduling:
    name: ClassVar[str] = "DeferredPodScheduling"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.UPDATE_NODE_PREEMPTION_POLICY, self._hint_for_policy),
            on(Resource.NODE, Action.ADD, self._hint_for_policy),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        return None if is_deferred(pod.pod) else Status.skip()

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        is_own = name_matches(nodes, pod.pod.spec.node_name)
        is_disabled = np.array([_is_disabled(node) for node in nodes.node_objects()], np.bool_)
        codes = np.where(is_own, is_disabled * np.int64(_DISABLED), np.int64(_OTHER_NODE))
        return codes if codes.any() else None

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _STATUSES[code]

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """The pod is bound already; its kubelet does the rest."""
        return (_FITS if is_deferred(pod.pod) else None), 0.0

    def _hint_for_policy(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        """The node of the pod is new, or permits evictions again."""
        was_closed = old is None or _is_disabled(old)
        is_own = new.metadata.name == pod.spec.node_name
        return Hint.QUEUE if is_own and was_closed and not _is_disabled(new) else Hint.SKIP


def _is_disabled(node: Node) -> bool:
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)
