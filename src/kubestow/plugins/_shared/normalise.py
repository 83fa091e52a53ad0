"""Brings raw scores into 0..100 relative to the best one (spec 05 §2.1)."""

import numpy as np

from kubestow.arrays import IntArray
from kubestow.framework.plugin import MAX_NODE_SCORE


def normalise(
    scores: IntArray, *, reverse: bool = False, max_score: int = MAX_NODE_SCORE
) -> IntArray:
    """Each score as its share of the highest; reversed, the lowest is the best.

    scores   int64[node], not negative; the feasible nodes that were scored
    Returns int64[node]. If all are 0 they stay 0, or reversed all become `max_score`.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, max_score) if reverse else scores
    # Many nodes have few distinct raw scores: then each is computed once and looked up.
    is_table = highest < len(scores)
    raw = np.arange(highest + 1) if is_table else scores
    shares = raw * max_score // highest
    if reverse:
        shares = max_score - shares
    return shares.take(scores) if is_table else shares
