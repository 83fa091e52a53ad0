"""SelectorSpread: spreads pods of a service or controller over nodes and zones (spec 06 §6.6.5).

v1.17 has it as DefaultPodTopologySpread, v1.20 only with the gate of that name off.
"""

from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from kubestow.api.labels import Selector
from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import zone_key
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.editions.shared.zone_spread import spread
from kubestow.editions.v1_20.plugins.default_selectors import SelectorsByLabel
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, Live, PodSet

_PRE_SCORE: Final = "PreScoreSelectorSpread"
_ZONES: Final = "v1.20 zones of nodes"


class SelectorSpread:
    name: ClassVar[str] = "SelectorSpread"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._selectors = SelectorsByLabel(handle.objects)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if self._leaves_alone(pod):
            return Status.skip()
        state.write(_PRE_SCORE, (self._selectors.of(pod.pod), nodes))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        selector, _ = _stored(state)
        if selector.is_empty:
            return 0
        pods = Live(InAll((PodSet(frozenset((pod.namespace,)), selector),)))
        return TopologyCounts.at(nodes.snapshot).pods(pods).rows.array()[nodes.rows]

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        _, nodes = _stored(state)
        return spread(scores, _zones(nodes), best=MAX_NODE_SCORE)

    def _leaves_alone(self, pod: PodInfo) -> bool:
        """Whether the pod spreads by constraints of its own."""
        return bool(pod.pod.spec.topology_spread_constraints)


def _stored(state: CycleState) -> tuple[Selector, Nodes]:
    try:
        return state.read(_PRE_SCORE)
    except PluginError as error:
        raise PluginError(f'reading "{_PRE_SCORE}" from cycleState: {error}') from error


def _zones(nodes: Nodes) -> npt.NDArray[np.intp]:
    """The number of each node's zone, by the beta labels if it has them; 0 for none."""

    def compute(nodes: Nodes) -> npt.NDArray[np.object_]:
        keys = [zone_key(node.metadata.labels) for node in nodes.node_objects()]
        return np.array(keys, np.object_)

    keys = nodes.tracked(_ZONES, Depends.NODE, compute)
    return np.unique(np.append(keys, "").astype(str), return_inverse=True)[1][:-1]
