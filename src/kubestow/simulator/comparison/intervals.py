"""Confidence intervals over seeds: Student's t.

Each seed gives one value of a figure. Their mean has an interval of 95 %: the mean plus and minus
t * s / √n, with the quantile t of n - 1 degrees of freedom. Variants run with the same seeds, so
the difference of two variants is a mean of differences, seed by seed, which has an interval of its
own and much less noise than the difference of two means.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

CONFIDENCE: Final = 0.95


class Estimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`plus_minus` is half the width of the interval; None for a single value."""

    mean: float
    plus_minus: float | None = None
    count: int


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some values and its interval; there is at least one value."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return Estimate(mean=mean, count=count)
    squares = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(squares / (count - 1))
    return Estimate(
        mean=mean, plus_minus=t_quantile(count - 1) * deviation / math.sqrt(count), count=count
    )


def t_quantile(degrees: int) -> float:
    """The t for which a value of Student's distribution is within ±t with 95 % probability."""
    low, high = 0.0, 16.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _probability_within(middle, degrees) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _probability_within(t: float, degrees: int) -> float:
    """P(|T| ≤ t): a finite sum in sine and cosine of atan(t / √degrees)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine, is_odd = math.cos(angle), degrees % 2
    term = cosine if is_odd else 1.0
    total = 0.0
    for step in range(1 + is_odd, degrees, 2):
        total += term
        term *= cosine**2 * step / (step + 1)
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if is_odd else total
