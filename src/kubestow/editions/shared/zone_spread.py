"""Scores from the counts of matching pods on nodes and in zones (spec 06 §6.6.3)."""

from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray

_ZONE_WEIGHT: Final = 2.0 / 3.0

_Doubles = npt.NDArray[np.float64]


def spread(counts: IntArray, zones: npt.NDArray[np.intp], *, best: int) -> IntArray:
    """Scores from the counts of matching pods.

    counts   int64[node], of the feasible nodes
    zones    intp[node], the number of each node's zone; 0 for none
    best     the highest score
    Returns int64[node] in 0..best.
    """
    scores = _inverse_share(counts, int(counts.max(initial=0)), best)
    if zones.any():
        in_zone = np.bincount(zones, weights=counts).astype(np.int64)
        in_zone[0] = 0
        zone_scores = _inverse_share(in_zone, int(in_zone.max()), best)[zones]
        # In exactly this order, in doubles: 5 becomes 4.999… in the same cases as upstream.
        blended = (scores * (1.0 - _ZONE_WEIGHT)) + (_ZONE_WEIGHT * zone_scores)
        scores = np.where(zones > 0, blended, scores)
    return scores.astype(np.int64)


def _inverse_share(counts: IntArray, highest: int, best: int) -> _Doubles:
    if highest == 0:
        return np.full(len(counts), float(best))
    return float(best) * ((highest - counts) / float(highest))
