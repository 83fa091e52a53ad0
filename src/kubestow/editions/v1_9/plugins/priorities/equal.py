"""EqualPriority: every node scores 1; also used if there is no other priority (spec 05 §18)."""

import numpy as np

from kubestow.arrays import IntArray
from kubestow.editions.v1_9.plugins.contract import Attempt, NamedRule
from kubestow.index.nodes import Nodes


class EqualPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        return np.ones(len(nodes), np.int64)
