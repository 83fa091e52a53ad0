"""Brings raw scores into 0..100 relative to the best one (spec 05 §2.1)."""

from functools import lru_cache

import numpy as np

from kubestow.arrays import IntArray, largest
from kubestow.framework.plugin import MAX_NODE_SCORE


def normalise(
    scores: IntArray, *, reverse: bool = False, max_score: int = MAX_NODE_SCORE
) -> IntArray:
    """Each score as its share of the highest; reversed, the lowest is the best.

    scores   int64[node], not negative; the feasible nodes that were scored
    Returns int64[node]. If all are 0 they stay 0, or reversed all become `max_score`.
    """
    highest = largest(scores)
    if highest == 0:
        return np.full_like(scores, max_score) if reverse else scores
    # Many nodes have few distinct raw scores: then each is computed once and looked up.
    if highest < len(scores):
        return _table(highest, reverse, max_score).take(scores)
    return _shares(scores, highest, reverse, max_score)


@lru_cache(16)
def _table(highest: int, reverse: bool, max_score: int) -> IntArray:
    """The shares of all raw scores up to the highest."""
    return _shares(np.arange(highest + 1), highest, reverse, max_score)


def _shares(raw: IntArray, highest: int, reverse: bool, max_score: int) -> IntArray:
    shares = raw * max_score // highest
    return max_score - shares if reverse else shares
