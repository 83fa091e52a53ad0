"""BalancedResourceAllocation: equal shares of cpu and memory should be used (spec 05 §18)."""

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray
from kubestow.cache.columns import CPU, MEMORY
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.editions.v1_9.plugins.priorities.requested import total_request
from kubestow.index.nodes import Nodes


class BalancedResourceAllocation(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        cpu = _fraction(attempt, nodes, CPU)
        memory = _fraction(attempt, nodes, MEMORY)
        # Doubles and then truncation, as upstream: a difference of 0.3 gives 6, not 7.
        scores = ((1 - np.abs(cpu - memory)) * float(MAX_PRIORITY)).astype(np.int64)
        return np.where((cpu >= 1) | (memory >= 1), 0, scores)


def _fraction(attempt: Attempt, nodes: Nodes, column: int) -> npt.NDArray[np.float64]:
    capacity, total = nodes.allocatable(column), total_request(attempt, nodes, column)
    return np.where(capacity == 0, 1.0, total / np.maximum(capacity, 1))
