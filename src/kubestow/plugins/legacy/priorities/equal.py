"""EqualPriority: every node scores 1; also used if there is no other priority (spec 05 §18)."""

import numpy as np

from kubestow.arrays import IntArray
from kubestow.index.nodes import Nodes
from kubestow.plugins.legacy.contract import Attempt, NamedRule


class EqualPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        return np.ones(len(nodes), np.int64)
