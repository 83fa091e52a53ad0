"""What the load of a node is worth: free, full, or a configured curve (spec 05 §8.4).

All arithmetic is on integers and cut, as upstream: floats would break ties between nodes that it
calls equal. A resource the node lacks counts neither as score nor as weight.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.arrays import IntArray
from kubestow.config.plugin_args import ScoringStrategy
from kubestow.errors import ConfigError
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.plugins._shared.scoring_resources import Load, NodeLoad
from kubestow.plugins._shared.shape import Shape

# Scores that many nodes by the resources that count, the incoming pod's requests not yet added.
NodesStrategy = Callable[[Sequence[Load], int], IntArray]
# The same for one node, of whose resources only those that count are given.
NodeStrategy = Callable[[Sequence[NodeLoad]], int]


class Strategy(NamedTuple):
    """One rule in two forms: for many nodes at once, and for one that changed."""

    score_nodes: NodesStrategy
    score_node: NodeStrategy


LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"


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


def least_allocated(loads: Sequence[Load], node_count: int) -> IntArray:
    """int64[node] in 0..100: the share of each resource that would stay free, weighted."""
    mean = _WeightedMean(node_count)
    for (allocatable, used), request, weight in loads:
        free = allocatable - (used + request)
        np.maximum(free, 0, out=free)
        mean.add(_percent(free, allocatable), weight, allocatable)
    return mean.truncated()


def most_allocated(loads: Sequence[Load], node_count: int) -> IntArray:
    """int64[node] in 0..100: the share of each resource that would be taken, weighted."""
    mean = _WeightedMean(node_count)
    for (allocatable, used), request, weight in loads:
        # Pods that say nothing count with defaults, so the sum can exceed what there is.
        taken = np.minimum(used + request, allocatable)
        mean.add(_percent(taken, allocatable), weight, allocatable)
    return mean.truncated()


def requested_to_capacity_ratio(args: ScoringStrategy) -> Strategy:
    """A strategy that reads the score off a configured curve."""
    ratio = args.requested_to_capacity_ratio
    if ratio is None or not ratio.shape:
        raise ConfigError("at least one point must be specified")
    shape = Shape.from_args(ratio.shape)

    def score(loads: Sequence[Load], node_count: int) -> IntArray:
        """int64[node] in 0..100."""
        mean = _WeightedMean(node_count)
        for (allocatable, used), request, weight in loads:
            # Beyond what there is counts as full.
            taken = np.minimum(used + request, allocatable)
            scores = shape.scores(_percent(taken, allocatable))
            scores *= allocatable > 0
            # Only here a resource that scores nothing drops out with its weight.
            mean.add(scores, weight, scores)
        return mean.rounded()

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


def _percent(part: IntArray, whole: IntArray) -> IntArray:
    """0 where there is no whole."""
    return part * MAX_NODE_SCORE // (whole if whole.all() else np.maximum(whole, 1))


class _WeightedMean:
    """The mean of several scores per node, of which some nodes leave some out."""

    def __init__(self, node_count: int) -> None:
        self._sum: IntArray = np.zeros(node_count, np.int64)
        # One number as long as no node left anything out: dividing by it is much quicker.
        self._weight: IntArray | int = 0

    def add(self, scores: IntArray, weight: int, counts_where: IntArray) -> None:
        """Add a score, 0 where it does not count: that is where `counts_where` is 0."""
        self._sum += scores if weight == 1 else scores * weight
        self._weight += weight if counts_where.all() else weight * (counts_where > 0)

    def truncated(self) -> IntArray:
        """0 where nothing counted."""
        return self._sum // np.maximum(self._weight, 1)

    def rounded(self) -> IntArray:
        """Half up; 0 where nothing counted."""
        return np.floor(self._sum / np.maximum(self._weight, 1) + 0.5).astype(np.int64)
