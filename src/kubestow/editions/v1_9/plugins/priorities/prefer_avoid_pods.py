"""NodePreferAvoidPodsPriority: a node may name controllers to avoid (spec 05 §13, §18)."""

import numpy as np

from kubestow.api.owners import controller_of
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.editions.shared.avoided_pods import AVOIDABLE_KINDS, avoids
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.index.nodes import Nodes


class NodePreferAvoidPodsPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        owner = controller_of(attempt.pod.pod)
        if owner is None or owner.kind not in AVOIDABLE_KINDS:
            return np.full(len(nodes), MAX_PRIORITY, np.int64)
        kind, uid = owner.kind, owner.uid

        def compute(nodes: Nodes) -> IntArray:
            return np.array(
                [0 if avoids(node, kind, uid) else MAX_PRIORITY for node in nodes.node_objects()],
                np.int64,
            )

        return nodes.tracked(("v1.9 avoided", kind, uid), Depends.NODE, compute)
