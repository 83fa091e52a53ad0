"""NodeResourcesFit for one node: what is lacking, and the three strategies."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kubestow.cache.node_info import NodeInfo
from kubestow.engine.equivalence.row_forms.amounts import NodeLoad, amounts_reader, loads_reader
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.profile import RowFunction
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import (
    TOO_MANY_PODS,
    UNRESOLVABLE,
    Demand,
    FitRequest,
)
from kubestow.plugins.node_resources_fit.strategies import Strategy

_KEPT: Final = "RowFormNodeResourcesFit"


def filter_form(plugin: NodeResourcesFit, state: CycleState) -> RowFunction:
    request = plugin.fit_request(state)
    # Preemption calls this for each node with the same state.
    kept: tuple[FitRequest, RowFunction] | None = state.get(_KEPT)
    if kept is None or kept[0] is not request:
        kept = request, _shortage_test(request.demands)
        state.write(_KEPT, kept)
    return kept[1]


def score_form(plugin: NodeResourcesFit, state: CycleState) -> RowFunction:
    names, amounts, weights = plugin.scored_request(state)
    loads_on = loads_reader(names, amounts, weights, non_zero=True)
    score = node_strategy(plugin.strategy)
    return lambda info: score(loads_on(info))


def _shortage_test(demands: Iterable[Demand]) -> RowFunction:
    tests = [
        (amounts_reader(name), amount, 1 << bit, by_devices)
        for name, amount, bit, by_devices in demands
    ]

    def shortage(info: NodeInfo) -> int:
        code = TOO_MANY_PODS if len(info.pods) >= info.allocatable.allowed_pods else 0
        for read, amount, bit, by_devices in tests:
            offered, requested = read(info)
            if offered - requested < amount and not (by_devices and offered == 0):
                code |= bit | (UNRESOLVABLE if offered < amount else 0)
        return code

    return shortage


def node_strategy(strategy: Strategy) -> Callable[[Sequence[NodeLoad]], int]:
    """The strategy for one node; the loads are those of the resources that count."""
    match strategy.kind:
        case "LeastAllocated":
            return _least_allocated
        case "MostAllocated":
            return _most_allocated
        case "RequestedToCapacityRatio":
            return _requested_to_capacity_ratio(strategy)


def _least_allocated(loads: Sequence[NodeLoad]) -> int:
    score_sum = weight_sum = 0
    for allocatable, used, request, weight in loads:
        free = allocatable - used - request
        if free > 0:
            score_sum += free * MAX_NODE_SCORE // allocatable * weight
        weight_sum += weight
    return score_sum // weight_sum if weight_sum else 0


def _most_allocated(loads: Sequence[NodeLoad]) -> int:
    score_sum = weight_sum = 0
    for allocatable, used, request, weight in loads:
        taken = min(used + request, allocatable)
        score_sum += taken * MAX_NODE_SCORE // allocatable * weight
        weight_sum += weight
    return score_sum // weight_sum if weight_sum else 0


def _requested_to_capacity_ratio(strategy: Strategy) -> Callable[[Sequence[NodeLoad]], int]:
    curve = strategy.curve
    assert curve is not None

    def score(loads: Sequence[NodeLoad]) -> int:
        score_sum = weight_sum = 0
        for allocatable, used, request, weight in loads:
            taken = min(used + request, allocatable)
            one = curve.score(taken * MAX_NODE_SCORE // allocatable)
            if one > 0:
                score_sum += one * weight
                weight_sum += weight
        return math.floor(score_sum / max(weight_sum, 1) + 0.5)

    return score
