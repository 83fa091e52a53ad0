"""TaintTolerationPriority: nodes with fewer untolerated soft taints (spec 05 §18)."""

import numpy as np

from kubestow.api.taints import TolerationTable, soft_tolerations
from kubestow.arrays import IntArray
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.index.nodes import Nodes
from kubestow.index.taint_match import untolerated_soft_counts
from kubestow.plugins._shared.normalise import normalise


class TaintTolerationPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        tolerations = TolerationTable(soft_tolerations(attempt.pod.pod.spec.tolerations))
        counts = untolerated_soft_counts(nodes, tolerations, comparison_operators=False)
        return np.zeros(len(nodes), np.int64) if counts is None else counts

    def reduce(self, attempt: Attempt, nodes: Nodes, scores: IntArray) -> IntArray:
        return normalise(scores, reverse=True, max_score=MAX_PRIORITY)
