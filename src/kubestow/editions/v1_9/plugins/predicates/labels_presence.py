"""A custom predicate of a Policy, argument `labelsPresence` (spec 05 §17.2)."""

from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from kubestow.editions.v1_9.plugins.contract import Attempt, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.nodes import Nodes

_WRONG_LABELS: Final = code_of("CheckNodeLabelPresence")


class LabelsPresence:
    """Nodes must have all the labels, or with `presence` False none of them."""

    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def __init__(self, name: str, *, labels: Iterable[str], presence: bool) -> None:
        self.name = name
        self._labels = tuple(labels)
        self._presence = presence

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        is_wrong = np.zeros(len(nodes), np.bool_)
        for label in self._labels:
            is_wrong |= (nodes.label_ids(label) != 0) != self._presence
        return Verdicts(failing_where(is_wrong, _WRONG_LABELS))
