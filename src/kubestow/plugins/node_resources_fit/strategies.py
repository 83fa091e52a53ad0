"""What the load of a node is worth: free, full, or a configured curve (spec 05 §8.4).

All arithmetic is on integers and cut, as upstream: floats would break ties between nodes that it
calls equal. A resource the node lacks counts neither as score nor as weight.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.arrays import IntArray
from kubestow.config.plugin_args import ScoringStrategy
from kubestow.errors import ConfigError
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.plugins._shared.scoring_resources import Loads, NodeLoad
from kubestow.plugins._shared.shape import Shape

NodesStrategy = Callable[[Loads], IntArray]
# The same for one node, of whose resources only those that count are given.
NodeStrategy = Callable[[Sequence[NodeLoad]], int]


class Strategy(NamedTuple):
    """One rule in two forms: for many nodes at once, and for one that changed."""

    score_nodes: NodesStrategy
    score_node: NodeStrategy


def strategy_of(args: ScoringStrategy) -> Strategy:
    match args.type:
        case "LeastAllocated":
            return Strategy(least_allocated, least_allocated_on)
        case "MostAllocated":
            return Strategy(most_allocated, most_allocated_on)
        case "RequestedToCapacityRatio":
            return requested_to_capacity_ratio(args)
        case _:
            raise ConfigError(f"scoring strategy {args.type} is not supported")


def least_allocated(loads: Loads) -> IntArray:
    """int64[node] in 0..100: the share of each resource that would stay free, weighted."""
    free = loads.allocatable - loads.used
    free -= loads.request
    return _truncated_mean(np.maximum(free, 0, out=free), loads)


def most_allocated(loads: Loads) -> IntArray:
    """int64[node] in 0..100: the share of each resource that would be taken, weighted."""
    return _truncated_mean(_taken(loads), loads)


def requested_to_capacity_ratio(args: ScoringStrategy) -> Strategy:
    """A strategy that reads the score off a configured curve."""
    ratio = args.requested_to_capacity_ratio
    if ratio is None or not ratio.shape:
        raise ConfigError("at least one point must be specified")
    shape = Shape.from_args(ratio.shape)

    def score(loads: Loads) -> IntArray:
        """int64[node] in 0..100."""
        scores = shape.scores(_percent(_taken(loads), loads.allocatable))
        scores *= loads.allocatable > 0
        # Only here a resource that scores nothing drops out with its weight. Half is rounded up.
        mean = (scores * loads.weight).sum(axis=0) / _weights(scores, loads.weight)
        return np.floor(mean + 0.5).astype(np.int64)

    def score_on(loads: Sequence[NodeLoad]) -> int:
        score_sum = weight_sum = 0
        for allocatable, used, request, weight in loads:
            taken = min(used + request, allocatable)
            one = shape.score(taken * MAX_NODE_SCORE // allocatable)
            if one > 0:
                score_sum += one * weight
                weight_sum += weight
        return math.floor(score_sum / max(weight_sum, 1) + 0.5)

    return Strategy(score, score_on)


def least_allocated_on(loads: Sequence[NodeLoad]) -> int:
    """`least_allocated` for one node."""
    score_sum = weight_sum = 0
    for allocatable, used, request, weight in loads:
        free = allocatable - used - request
        if free > 0:
            score_sum += free * MAX_NODE_SCORE // allocatable * weight
        weight_sum += weight
    return score_sum // weight_sum if weight_sum else 0


def most_allocated_on(loads: Sequence[NodeLoad]) -> int:
    """`most_allocated` for one node."""
    score_sum = weight_sum = 0
    for allocatable, used, request, weight in loads:
        taken = min(used + request, allocatable)
        score_sum += taken * MAX_NODE_SCORE // allocatable * weight
        weight_sum += weight
    return score_sum // weight_sum if weight_sum else 0


def _taken(loads: Loads) -> IntArray:
    # Pods that say nothing count with defaults, so the sum can exceed what there is.
    return np.minimum(loads.used + loads.request, loads.allocatable)


def _percent(part: IntArray, whole: IntArray) -> IntArray:
    """0 where there is no whole."""
    return part * MAX_NODE_SCORE // np.maximum(whole, 1)


def _truncated_mean(part: IntArray, loads: Loads) -> IntArray:
    """int64[node]: the percentage that the parts are, as the weighted mean over the resources the
    node has; 0 where it has none."""
    if np.count_nonzero(loads.allocatable) != loads.allocatable.size:
        scores = _percent(part, loads.allocatable) * loads.weight
        return scores.sum(axis=0) // _weights(loads.allocatable, loads.weight)
    # No node leaves anything out, so all are divided by the same.
    scores = part * MAX_NODE_SCORE
    scores //= loads.allocatable
    weights: list[int] = loads.weight.ravel().tolist()
    if max(weights, default=1) > 1:
        scores *= loads.weight
    return np.add.reduce(scores, axis=0) // max(sum(weights), 1)


def _weights(counts_where: IntArray, weight: IntArray) -> IntArray:
    """int64[node]: the weight of all resources that count: those with a number above zero there."""
    return np.maximum((weight * (counts_where > 0)).sum(axis=0), 1)
