"""Plugins that reject the same nodes as today's, with other reasons (spec 05 §19)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Taint
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import first_untolerated
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.index.distinct import per_distinct
from kubestow.index.nodes import Nodes
from kubestow.index.taint_match import TOLERATIONS_KEPT_MAX
from kubestow.plugins.node_affinity import NodeAffinity
from kubestow.plugins.node_name import NodeName
from kubestow.plugins.taint_toleration import TaintToleration

# Reasons that name a taint, of this many taints; further ones share a reason without a name.
TAINT_REASONS_MAX: Final = 4096

_OTHER_NODE: Final = Status.unresolvable("node(s) didn't match the requested hostname")
ANY_TAINT: Final = Status.unresolvable("node(s) had taints that the pod didn't tolerate")


class NodeName120(NodeName):
    def filter_status(self, state: CycleState, code: int) -> Status:
        return _OTHER_NODE


class NodeAffinity120(NodeAffinity):
    mismatch: ClassVar[str] = "node(s) didn't match Pod's node affinity"

    def filter_status(self, state: CycleState, code: int) -> Status:
        return (
            Status.unresolvable(self.mismatch) if code == 1 else super().filter_status(state, code)
        )


class TaintToleration120(TaintToleration):
    """Names the first taint of a node that the pod does not tolerate.

    A code is the number of a taint, from 1; verdicts are kept over attempts, and so are numbers.
    """

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._numbers: dict[tuple[str, str], int] = {}
        self._statuses: list[Status] = [ANY_TAINT]

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if len(nodes.taint_lists) == 1:  # The first list is the empty one.
            return None
        tolerations = pod.tolerations

        def code(taints: tuple[Taint, ...]) -> int:
            taint = first_untolerated(
                taints, tolerations, comparison_operators=self._comparison_operators
            )
            return 0 if taint is None else self._number(taint)

        def compute(nodes: Nodes) -> IntArray:
            return per_distinct(nodes.taint_set, nodes.taint_lists, code, np.int64)

        if len(tolerations.entries) > TOLERATIONS_KEPT_MAX:
            codes = compute(nodes)
        else:
            # Each profile has a plugin of its own, with numbers of its own.
            key = "v1.20 taints", id(self), tolerations.entries
            codes = nodes.tracked(key, Depends.NODE, compute)
        return codes if codes.any() else None

    def filter_status(self, state: CycleState, code: int) -> Status:
        return self._statuses[code - 1]

    def _number(self, taint: Taint) -> int:
        key = taint.key, taint.value
        number = self._numbers.get(key)
        if number is not None:
            return number
        if len(self._statuses) > TAINT_REASONS_MAX:
            return 1
        text = f"node(s) had taint {{{taint.key}: {taint.value}}}, that the pod didn't tolerate"
        self._statuses.append(Status.unresolvable(text))
        number = self._numbers[key] = len(self._statuses)
        return number
