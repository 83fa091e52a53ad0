"""The score of a node's load: least or most allocated, or a configured curve (spec 05 §8.4).

All arithmetic is on integers and truncated, as upstream: floats would break its ties between nodes.
A resource the node lacks counts neither as score nor as weight.
"""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import numpy as np

from kubestow.arrays import IntArray, smallest
from kubestow.config.plugin_args import ScoringStrategy
from kubestow.errors import ConfigError
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.plugins._shared.curve import UtilizationCurve
from kubestow.plugins._shared.scoring_resources import Loads

# As an array: Python's numbers are converted in each operation.
_WHOLE: Final = np.array(MAX_NODE_SCORE)

StrategyKind = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class Strategy(NamedTuple):
    """How the loads of nodes become scores; with a curve for RequestedToCapacityRatio."""

    kind: StrategyKind
    score: Callable[[Loads], IntArray]
    curve: UtilizationCurve | None = None


def strategy_of(args: ScoringStrategy) -> Strategy:
    match args.type:
        case "LeastAllocated":
            return Strategy("LeastAllocated", least_allocated)
        case "MostAllocated":
            return Strategy("MostAllocated", most_allocated)
        case "RequestedToCapacityRatio":
            return requested_to_capacity_ratio(args)
        case _:
            raise ConfigError(f"scoring strategy {args.type} is not supported")


def least_allocated(loads: Loads) -> IntArray:
    """int64[node] in 0..100: the share of each resource that would stay free, weighted."""
    free = loads.allocatable - loads.used
    free -= loads.request
    if smallest(free) < 0:
        np.maximum(free, 0, out=free)
    return _truncated_mean(free, loads)


def most_allocated(loads: Loads) -> IntArray:
    """int64[node] in 0..100: the share of each resource that would be used, weighted."""
    return _truncated_mean(_taken(loads), loads)


def requested_to_capacity_ratio(args: ScoringStrategy) -> Strategy:
    """A strategy that reads the score off a configured curve."""
    ratio = args.requested_to_capacity_ratio
    if ratio is None or not ratio.shape:
        raise ConfigError("at least one point must be specified")
    curve = UtilizationCurve.from_args(ratio.shape)

    def score(loads: Loads) -> IntArray:
        """int64[node] in 0..100."""
        scores = curve.scores(_percent(_taken(loads), loads.allocatable))
        scores *= loads.allocatable > 0
        # Only here a resource that scores 0 does not count with its weight. Half is rounded up.
        mean = (scores * loads.weight).sum(axis=0) / _weights(scores, loads.weight)
        return np.floor(mean + 0.5).astype(np.int64)

    return Strategy("RequestedToCapacityRatio", score, curve)


def _taken(loads: Loads) -> IntArray:
    # Pods without requests count with defaults, so the sum can exceed the allocatable amount.
    return np.minimum(loads.used + loads.request, loads.allocatable)


def _percent(part: IntArray, whole: IntArray) -> IntArray:
    """0 where there is no whole."""
    return part * MAX_NODE_SCORE // np.maximum(whole, 1)


def _truncated_mean(part: IntArray, loads: Loads) -> IntArray:
    """int64[node]: the weighted mean percentage over the node's resources; 0 without any.

    `part` is overwritten.
    """
    if np.count_nonzero(loads.allocatable) != loads.allocatable.size:
        scores = _percent(part, loads.allocatable) * loads.weight
        return scores.sum(axis=0) // _weights(loads.allocatable, loads.weight)
    # Every node has all resources, so all sums are divided by the same weight.
    part *= _WHOLE
    part //= loads.allocatable
    scores = part
    weights: list[int] = loads.weight.ravel().tolist()
    if max(weights, default=1) > 1:
        scores *= loads.weight
    return np.add.reduce(scores, axis=0) // max(sum(weights), 1)


def _weights(counts_where: IntArray, weight: IntArray) -> IntArray:
    """int64[node]: the sum of the weights of the resources with a number above zero there."""
    return np.maximum((weight * (counts_where > 0)).sum(axis=0), 1)
