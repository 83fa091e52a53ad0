"""NodePreferAvoidPods: a node may name controllers to avoid in an annotation (spec 05 §13)."""

from typing import ClassVar

import numpy as np

from kubestow.api.owners import controller_of
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.editions.shared.avoided_pods import AVOIDABLE_KINDS, avoids
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.nodes import Nodes


class NodePreferAvoidPods:
    name: ClassVar[str] = "NodePreferAvoidPods"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        owner = controller_of(pod.pod)
        if owner is None or owner.kind not in AVOIDABLE_KINDS:
            return MAX_NODE_SCORE
        kind, uid = owner.kind, owner.uid

        def compute(nodes: Nodes) -> IntArray:
            return np.array(
                [0 if avoids(node, kind, uid) else MAX_NODE_SCORE for node in nodes.node_objects()],
                np.int64,
            )

        return nodes.tracked(("v1.20 avoided", kind, uid), Depends.NODE, compute)
