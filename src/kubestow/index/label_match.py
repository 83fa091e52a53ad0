"""Requirements on labels over many nodes: the work grows with the requirements, not their product.

A requirement reads one label, so it is a set of that label's values. Requirements on a key that no
node has hold on all nodes or on none, and need no column; alternatives on the same key are one set.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kubestow.api.labels import Requirement
from kubestow.arrays import BoolArray, IdArray, IntArray
from kubestow.index.nodes import Nodes
from kubestow.index.present import LabelKeys
from kubestow.index.tracked import LabelColumn, LabelColumns


class LabelView:
    """The labels of some nodes while a selector is evaluated: each column is looked up once."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._columns = nodes.snapshot.derived(LabelColumns)
        self._present: Mapping[str, int] = nodes.snapshot.derived(LabelKeys).present()
        self._read: dict[str, tuple[LabelColumn, IdArray]] = {}

    def reduced(self, requirements: Iterable[Requirement]) -> list[Requirement] | None:
        """Those on labels that some node has; None if one of the others fails on all nodes."""
        present = self._present
        left: list[Requirement] = []
        for requirement in requirements:
            if requirement.key in present:
                left.append(requirement)
            elif not requirement.matches_value(None):
                return None
        return left

    def all_match(self, requirements: Sequence[Requirement]) -> BoolArray:
        """bool[node]: where all of these hold. They are on labels that some node has."""
        mask = np.ones(len(self._nodes), np.bool_)
        for requirement in requirements:
            column, ids = self._column(requirement.key)
            mask &= column.matching(requirement)[ids]
            if not mask.any():
                break
        return mask

    def any_matches(self, key: str, requirements: Sequence[Requirement]) -> BoolArray:
        """bool[node]: where one of these holds, all of them on this key."""
        column, ids = self._column(key)
        return column.matching_any(requirements)[ids]

    def sum_of_weights(self, key: str, weighted: Iterable[tuple[Requirement, int]]) -> IntArray:
        """int64[node]: the sum of the weights of those that hold, all of them on this key."""
        column, ids = self._column(key)
        return column.weights(weighted)[ids]

    def _column(self, key: str) -> tuple[LabelColumn, IdArray]:
        found = self._read.get(key)
        if found is None:
            column = self._columns.column(key)
            found = self._read[key] = column, column.ids[self._nodes.rows]
        return found
