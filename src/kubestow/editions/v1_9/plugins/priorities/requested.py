"""LeastRequestedPriority and MostRequestedPriority: how full a node would be (spec 05 §18).

Containers without requests count with v1.9's defaults.
"""

import numpy as np

from kubestow.arrays import IntArray
from kubestow.cache.columns import CPU, MEMORY
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.index.nodes import Nodes


class LeastRequestedPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        return (_unused(attempt, nodes, CPU) + _unused(attempt, nodes, MEMORY)) // 2


class MostRequestedPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        return (_used(attempt, nodes, CPU) + _used(attempt, nodes, MEMORY)) // 2


def total_request(attempt: Attempt, nodes: Nodes, column: int) -> IntArray:
    """int64[node]: what would be requested of cpu (0) or memory (1) with the pod on the node."""
    accounted = attempt.pod.accounted
    own = (accounted.non_zero_cpu, accounted.non_zero_memory)[column]
    return nodes.non_zero_requested(column) + own


def _unused(attempt: Attempt, nodes: Nodes, column: int) -> IntArray:
    capacity, total = nodes.allocatable(column), total_request(attempt, nodes, column)
    share = (capacity - total) * MAX_PRIORITY // np.maximum(capacity, 1)
    # Without capacity, or with more requested than that, it scores 0 but still counts.
    return np.where((capacity == 0) | (total > capacity), 0, share)


def _used(attempt: Attempt, nodes: Nodes, column: int) -> IntArray:
    capacity, total = nodes.allocatable(column), total_request(attempt, nodes, column)
    share = total * MAX_PRIORITY // np.maximum(capacity, 1)
    return np.where((capacity == 0) | (total > capacity), 0, share)
