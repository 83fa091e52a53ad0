"""Piecewise linear functions: the score of a utilization (spec 05 §2.2)."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.config.plugin_args import UtilizationShapePoint
from kubestow.framework.plugin import MAX_NODE_SCORE

# Shapes are configured with scores of 0..10.
MAX_SHAPE_SCORE: Final = 10
MAX_UTILIZATION: Final = 100


class UtilizationCurve:
    """A line through (utilization, score) points, flat before the first and after the last."""

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        """The points in order of their utilization; at least one."""
        # A utilization is 0..100, so all scores fit in a table that arrays can index.
        self._scores = [
            _value_at(points, utilization) for utilization in range(MAX_UTILIZATION + 1)
        ]
        self._table: IntArray = np.array(self._scores, np.int64)

    @classmethod
    def from_args(cls, points: Sequence[UtilizationShapePoint]) -> "UtilizationCurve":
        """A configured shape, its scores scaled to those of nodes."""
        factor = MAX_NODE_SCORE // MAX_SHAPE_SCORE
        return cls([(point.utilization, point.score * factor) for point in points])

    def score(self, utilization: int) -> int:
        """The score of one utilization, which must be 0..100."""
        return self._scores[utilization]

    def scores(self, utilization: IntArray) -> IntArray:
        """The score of each utilization, which must be 0..100."""
        return self._table[utilization]


def _value_at(points: Sequence[tuple[int, int]], utilization: int) -> int:
    before, score_before = points[0]
    if utilization <= before:
        return score_before
    for after, score_after in points[1:]:
        if utilization <= after:
            rise = (score_after - score_before) * (utilization - before)
            return score_before + _truncated(rise, after - before)
        before, score_before = after, score_after
    return score_before


def _truncated(dividend: int, divisor: int) -> int:
    # Towards zero: a falling line would otherwise be one too low nearly everywhere.
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient
