"""Rejects nodes that lack a feature the pod requires (spec 05 §11)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.declared_features import required_features
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFilterResult
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes

_LACKING: Final = Status.unresolvable("node(s) didn't match Pod's required features")
_PRE_FILTER: Final = "PreFilterNodeDeclaredFeatures"


class NodeDeclaredFeatures:
    name: ClassVar[str] = "NodeDeclaredFeatures"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        # Without the gate nodes declare nothing, so no feature may be required.
        self._is_enabled = handle.feature_gates.enabled("NodeDeclaredFeatures")
        self.reuse = Reuse(filter=Reads.NODE, pod=PodReads.SPEC, basis=self._required)

    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, hint_for_node),
            on(Resource.POD, Action.UPDATE, _hint_for_pod),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        required = self._required(pod)
        if not required:
            return Status.skip()
        state.write(_PRE_FILTER, required)
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        required: int | None = state.get(_PRE_FILTER)
        if required is None:
            raise PluginError(f'error reading "{_PRE_FILTER}" from cycle-state: not found')
        lacking = (nodes.features & required) != required
        return lacking.astype(np.int64) if lacking.any() else None

    def _required(self, pod: PodInfo) -> int:
        return required_features(pod.pod) if self._is_enabled else 0

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return {"v1.Pod.Spec.RequiredFeatures()": self._required(pod)}

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _LACKING


def hint_for_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    # Whether the new list is sufficient is not checked (spec 05 §11).
    is_same = old is not None and old.status.declared_features == new.status.declared_features
    return Hint.SKIP if is_same else Hint.QUEUE


def _hint_for_pod(pod: Pod, old: Pod, new: Pod) -> Hint:
    is_same_pod = new.metadata.uid == pod.metadata.uid
    differs = is_same_pod and required_features(old) != required_features(new)
    return Hint.QUEUE if differs else Hint.SKIP
