"""A custom priority of a Policy, argument `labelPreference` (spec 05 §18)."""

import numpy as np

from kubestow.arrays import IntArray
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt
from kubestow.index.nodes import Nodes


class LabelPreference:
    """Prefers nodes that have the label, or with `presence` False nodes that lack it."""

    def __init__(self, name: str, *, label: str, presence: bool) -> None:
        self.name = name
        self._label = label
        self._presence = presence

    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        has_label = nodes.label_ids(self._label) != 0
        return (has_label == self._presence).astype(np.int64) * MAX_PRIORITY
