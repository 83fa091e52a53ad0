"""The plugins of v1.17 by name, and those that differ from v1.20's (spec 05 §19, 06 §6.6)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.editions.v1_20.plugins.inter_pod_affinity import InterPodAffinity120
from kubestow.editions.v1_20.plugins.registry import SINCE_V1_17, registry_with
from kubestow.editions.v1_20.plugins.resources import (
    NodeResourcesFit120,
    NodeResourcesMostAllocated,
    mean,
)
from kubestow.editions.v1_20.plugins.selector_spread import SelectorSpread
from kubestow.editions.v1_20.plugins.texts import ANY_TAINT, NodeAffinity120
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins.inter_pod_affinity.filtering import FORBIDDEN
from kubestow.plugins.inter_pod_affinity.plugin import filter_state_of
from kubestow.plugins.taint_toleration import TaintToleration


class NodeResourcesFit117(NodeResourcesFit120):
    too_many_pods: ClassVar[str] = "Insufficient pods"


class MostAllocated117(NodeResourcesMostAllocated):
    """A node whose pods would request more than it has scores 0."""

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        loads = self._loads(pod, nodes)
        taken = loads.used + loads.request
        return mean(np.where(taken > loads.allocatable, 0, taken), loads)


class NodeAffinity117(NodeAffinity120):
    mismatch: ClassVar[str] = "node(s) didn't match node selector"


class TaintToleration117(TaintToleration):
    def filter_status(self, state: CycleState, code: int) -> Status:
        return ANY_TAINT


class InterPodAffinity117(InterPodAffinity120):
    """The terms of running pods are checked first, so theirs is the reason where several fail."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        codes = super().filter(state, pod, nodes)
        if codes is None:
            return None
        forbidden = filter_state_of(state, pod).is_forbidden(nodes)
        return codes if forbidden is None else np.where(forbidden, FORBIDDEN, codes)


class DefaultPodTopologySpread(SelectorSpread):
    """Spreading in v1.17, which did not read constraints unless a gate was on."""

    name: ClassVar[str] = "DefaultPodTopologySpread"

    def _leaves_alone(self, pod: PodInfo) -> bool:
        return False


REGISTRY_117: Final = registry_with(
    *SINCE_V1_17,
    DefaultPodTopologySpread,
    InterPodAffinity117,
    MostAllocated117,
    NodeAffinity117,
    NodeResourcesFit117,
    TaintToleration117,
)
