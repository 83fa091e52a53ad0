"""Rejects nodes with untolerated taints, prefers nodes with fewer soft ones (spec 05 §6)."""

from typing import ClassVar, Final

from kubestow.api.node import Node
from kubestow.api.pod import Pod, Toleration
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import TolerationTable, first_untolerated, soft_tolerations
from kubestow.arrays import IntArray
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.taint_match import untolerated, untolerated_soft_counts
from kubestow.plugins._shared import bases
from kubestow.plugins._shared.normalise import normalise
from kubestow.plugins._shared.per_pod import PerPod

_UNTOLERATED: Final = Status.unresolvable("node(s) had untolerated taint(s)")
_PRE_SCORE: Final = "PreScoreTaintToleration"


class TaintToleration:
    name: ClassVar[str] = "TaintToleration"
    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(
        filter=Reads.NODE, score=Reads.NODE, pod=PodReads.SPEC, basis=bases.tolerations
    )

    def __init__(self, args: object, handle: Handle) -> None:
        self._comparison_operators = handle.feature_gates.enabled(
            "TaintTolerationComparisonOperators"
        )

    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._hint_for_node),
            on(Resource.POD, Action.UPDATE_POD_TOLERATION, _hint_for_toleration),
        ]

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        codes = untolerated(nodes, pod.tolerations, comparison_operators=self._comparison_operators)
        return codes if codes is not None and codes.any() else None

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_tolerations(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _UNTOLERATED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        state.write(_PRE_SCORE, TolerationTable(soft_tolerations(pod.pod.spec.tolerations)))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        tolerations: TolerationTable[Toleration] | None = state.get(_PRE_SCORE)
        if tolerations is None:
            raise PluginError(f'failed to read "{_PRE_SCORE}" from cycleState: not found')
        counts = untolerated_soft_counts(
            nodes, tolerations, comparison_operators=self._comparison_operators
        )
        return 0 if counts is None else counts

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return normalise(scores, reverse=True)

    def _hint_for_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        was_kept_out = old is None or self._keeps_out(old, pod)
        return Hint.QUEUE if was_kept_out and not self._keeps_out(new, pod) else Hint.SKIP

    def _keeps_out(self, node: Node, pod: Pod) -> bool:
        taint = first_untolerated(
            node.spec.taints, _table(pod), comparison_operators=self._comparison_operators
        )
        return taint is not None


def _toleration_table(pod: Pod) -> TolerationTable[Toleration]:
    return TolerationTable(pod.spec.tolerations)


_table: Final = PerPod(_toleration_table, lambda pod: len(pod.spec.tolerations))


def _hint_for_toleration(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return Hint.QUEUE if new.metadata.uid == pod.metadata.uid else Hint.SKIP
