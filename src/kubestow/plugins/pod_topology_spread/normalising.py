"""From the costs of nodes to their scores (spec 06 §6.3.8)."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import numpy as np

from kubestow.arrays import BoolArray, FloatArray, IntArray, largest
from kubestow.framework.plugin import MAX_NODE_SCORE

IntOrArray = TypeVar("IntOrArray", int, IntArray)


class Rounding(NamedTuple):
    """How sums of costs become raw scores: one of them, or many, which may be changed."""

    one: Callable[[float], int]
    many: Callable[[FloatArray], IntArray]


# To the nearest integer, halves away from zero; np.rint would round them to even. Adding a half is
# exact here: a sum is 0 or, as every weight is ln 2 or more, above a half.
def _nearest(cost: float) -> int:
    return math.floor(cost + 0.5)


def _all_nearest(costs: FloatArray) -> IntArray:
    costs += 0.5
    return np.floor(costs, out=costs).astype(np.int64)


NEAREST: Final = Rounding(_nearest, _all_nearest)


def normalised(raw: IntArray, ignored: BoolArray | None) -> IntArray:
    """Invert the scores of all feasible nodes: 100 for the most even, 0 for ignored ones."""
    scored = raw if ignored is None else raw[~ignored]
    highest = largest(scored)
    if highest == 0:
        scores = np.full_like(raw, MAX_NODE_SCORE)
    else:
        lowest = scored.item(scored.argmin())
        # Many nodes have few distinct raw scores: then each is computed once and looked up.
        is_table = highest < len(raw)
        scores = inverted(np.arange(highest + 1) if is_table else raw, lowest, highest)
        if is_table:
            scores = scores.take(raw)
    if ignored is not None:
        scores[ignored] = 0
    return scores


def inverted(raw: IntOrArray, lowest: int, highest: int) -> IntOrArray:
    return MAX_NODE_SCORE * (highest + lowest - raw) // highest
