"""Reasons as numbers: what keeps a pod off a node, in v1.9's words.

A predicate gives a list of reasons per node, and a node fails for all reasons of all predicates
together. There are few distinct lists however many nodes there are, so each gets a number when it
is first seen. Numbers are the same for the whole process: they outlive an attempt, which the
equivalence cache relies on.
"""

from typing import Final

import numpy as np

from kubestow.arrays import BoolArray, IntArray

Reasons = tuple[str, ...]

FITS: Final = 0

_LISTS: Final[list[Reasons]] = [()]
_CODES: Final[dict[Reasons, int]] = {(): FITS}


def code_of(*reasons: str) -> int:
    """The number of a list of reasons; no reasons have the number FITS."""
    code = _CODES.get(reasons)
    if code is None:
        code = _CODES[reasons] = len(_LISTS)
        _LISTS.append(reasons)
    return code


def reasons_of(code: int) -> Reasons:
    return _LISTS[code]


def failing_where(mask: BoolArray, code: int) -> IntArray | None:
    """int64[node]: the code where the mask is set; None if it is set nowhere."""
    return mask * np.int64(code) if mask.any() else None


def joined(first: IntArray | None, second: IntArray | None) -> IntArray | None:
    """The reasons of both, the first's in front. Neither may hold errors."""
    if first is None or second is None:
        return second if first is None else first
    both = (first > FITS) & (second > FITS)
    result = np.maximum(first, second)
    if not both.any():
        return result
    pairs, place = np.unique(np.stack((first[both], second[both])), axis=1, return_inverse=True)
    codes = [code_of(*reasons_of(a), *reasons_of(b)) for a, b in pairs.T.tolist()]
    result[both] = np.array(codes, np.int64)[place.reshape(-1)]
    return result
