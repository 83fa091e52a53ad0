"""Reasons as numbers: why a pod does not fit a node, with v1.9's texts.

A predicate returns a list of reasons per node, and a node fails for all reasons of all predicates
together. There are few distinct lists, so each gets a number at first use. Numbers stay the same
for the whole process, which the equivalence cache relies on. Names of resources are part of
reasons, so the number of lists has a limit: beyond it new lists share one text.
"""

from typing import Final

import numpy as np

from kubestow.arrays import BoolArray, IntArray

Reasons = tuple[str, ...]

FITS: Final = 0

REASON_LISTS_MAX: Final = 65_536

_OTHER: Final = 1  # the number of all lists beyond the limit
_LISTS: Final[list[Reasons]] = [(), ("Insufficient resources",)]
_CODES: Final[dict[Reasons, int]] = {reasons: code for code, reasons in enumerate(_LISTS)}


def code_of(*reasons: str) -> int:
    """The number of a list of reasons; the empty list has the number FITS."""
    code = _CODES.get(reasons)
    if code is None:
        if len(_LISTS) >= REASON_LISTS_MAX:
            return _OTHER
        code = _CODES[reasons] = len(_LISTS)
        _LISTS.append(reasons)
    return code


def reasons_of(code: int) -> Reasons:
    return _LISTS[code]


def failing_where(mask: BoolArray, code: int) -> IntArray | None:
    """int64[node]: the code where the mask is set; None if it is set nowhere."""
    return mask * np.int64(code) if mask.any() else None


def joined(first: IntArray | None, second: IntArray | None) -> IntArray | None:
    """The reasons of both, those of `first` first. Neither may contain errors."""
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
