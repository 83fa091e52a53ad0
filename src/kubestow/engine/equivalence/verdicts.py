"""Operations on arrays of verdicts and scores that frames, records and attempts share."""

import numpy as np

from kubestow.arrays import IntArray, IntpArray
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.plugin import MAX_NODE_SCORE


class FallBackToPlain(Exception):
    """A plugin failed. The attempt is made again by asking every plugin, because which failure
    counts depends on the order of all plugins."""


def override(
    failed_by: IntArray,
    codes: IntArray,
    found: IntArray,
    index: int,
    positions: IntpArray | None = None,
) -> None:
    """Enter a filter's codes where it is the first to reject the node.

    With `positions` the codes are those of these nodes only.
    """
    rejected = found.nonzero()[0]
    if len(rejected) == 0:
        return
    where = rejected if positions is None else positions[rejected]
    before = failed_by[where]
    is_first = (before == PASSED) | (before > index)
    failed_by[where[is_first]] = index
    codes[where[is_first]] = found[rejected[is_first]]


def checked(scores: IntArray) -> IntArray:
    # As unsigned, negative numbers are huge: one comparison finds both kinds.
    unsigned = scores.astype(np.int64, copy=False).view(np.uint64)
    if np.maximum.reduce(unsigned, initial=0) > MAX_NODE_SCORE:
        raise FallBackToPlain
    return scores
