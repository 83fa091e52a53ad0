"""NodeResourcesFit for one node: what is lacking, and the three strategies."""

import math
from collections.abc import Sequence
from typing import Final

from kubestow.api.resources import CPU, MEMORY
from kubestow.cache.node_info import NodeInfo
from kubestow.engine.equivalence.row_forms.amounts import (
    LoadReader,
    amounts_reader,
    load_readers,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.profile import RowFunction
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import (
    CPU_SHORT,
    MEMORY_SHORT,
    TOO_MANY_PODS,
    UNRESOLVABLE,
    FitRequest,
)
from kubestow.plugins.node_resources_fit.strategies import Strategy

_KEPT: Final = "RowFormNodeResourcesFit"


def filter_form(plugin: NodeResourcesFit, state: CycleState) -> RowFunction:
    request = plugin.fit_request(state)
    # Preemption calls this for each node with the same state.
    kept: tuple[FitRequest, RowFunction] | None = state.get(_KEPT)
    if kept is None or kept[0] is not request:
        kept = request, _shortage_test(request)
        state.write(_KEPT, kept)
    return kept[1]


def score_form(plugin: NodeResourcesFit, state: CycleState) -> RowFunction:
    names, amounts, weights = plugin.scored_request(state)
    of_any = node_strategy(plugin.strategy, load_readers(names, amounts, weights, non_zero=True))
    if names != (CPU, MEMORY) or plugin.strategy.kind != "LeastAllocated":
        return of_any
    return least_of_cpu_and_memory(
        amounts.ravel().tolist(), weights.ravel().tolist(), otherwise=of_any
    )


def _shortage_test(request: FitRequest) -> RowFunction:
    wanted = {demand.name: demand.amount for demand in request.demands}
    cpu, memory = wanted.get(CPU, 0), wanted.get(MEMORY, 0)
    others = [
        (amounts_reader(name), amount, 1 << bit, by_devices)
        for name, amount, bit, by_devices in request.demands
        if name not in (CPU, MEMORY)
    ]

    def shortage(info: NodeInfo) -> int:
        # Cpu and memory by themselves: nearly every pod requests these, and few request others.
        allocatable, used = info.allocatable, info.requested
        code = TOO_MANY_PODS if len(info.pods) >= allocatable.allowed_pods else 0
        if cpu and allocatable.milli_cpu - used.milli_cpu < cpu:
            code |= CPU_SHORT | (UNRESOLVABLE if allocatable.milli_cpu < cpu else 0)
        if memory and allocatable.memory - used.memory < memory:
            code |= MEMORY_SHORT | (UNRESOLVABLE if allocatable.memory < memory else 0)
        for read, amount, bit, by_devices in others:
            offered, requested = read(info)
            if offered - requested < amount and not (by_devices and offered == 0):
                code |= bit | (UNRESOLVABLE if offered < amount else 0)
        return code

    return shortage


def node_strategy(strategy: Strategy, readers: Sequence[LoadReader]) -> RowFunction:
    """The strategy for one node. A resource the node lacks does not count."""
    match strategy.kind:
        case "LeastAllocated":
            return _least_allocated(readers)
        case "MostAllocated":
            return _most_allocated(readers)
        case "RequestedToCapacityRatio":
            return _requested_to_capacity_ratio(strategy, readers)


def _least_allocated(readers: Sequence[LoadReader]) -> RowFunction:
    def score(info: NodeInfo) -> int:
        score_sum = weight_sum = 0
        for read, request, weight in readers:
            allocatable, used = read(info)
            if allocatable:
                free = allocatable - used - request
                if free > 0:
                    score_sum += free * MAX_NODE_SCORE // allocatable * weight
                weight_sum += weight
        return score_sum // weight_sum if weight_sum else 0

    return score


def least_of_cpu_and_memory(
    requests: Sequence[int], weights: Sequence[int], *, otherwise: RowFunction
) -> RowFunction:
    """LeastAllocated of cpu and memory without a loop; `otherwise` for nodes that lack one."""
    cpu_request, memory_request = requests
    cpu_weight, memory_weight = weights
    weight_sum = cpu_weight + memory_weight

    def score(info: NodeInfo) -> int:
        cpu, memory = info.allocatable.milli_cpu, info.allocatable.memory
        if not (cpu and memory):
            return otherwise(info)
        score_sum = 0
        free_cpu = cpu - info.non_zero_cpu - cpu_request
        if free_cpu > 0:
            score_sum = free_cpu * MAX_NODE_SCORE // cpu * cpu_weight
        free_memory = memory - info.non_zero_memory - memory_request
        if free_memory > 0:
            score_sum += free_memory * MAX_NODE_SCORE // memory * memory_weight
        return score_sum // weight_sum

    return score


def _most_allocated(readers: Sequence[LoadReader]) -> RowFunction:
    def score(info: NodeInfo) -> int:
        score_sum = weight_sum = 0
        for read, request, weight in readers:
            allocatable, used = read(info)
            if allocatable:
                taken = min(used + request, allocatable)
                score_sum += taken * MAX_NODE_SCORE // allocatable * weight
                weight_sum += weight
        return score_sum // weight_sum if weight_sum else 0

    return score


def _requested_to_capacity_ratio(strategy: Strategy, readers: Sequence[LoadReader]) -> RowFunction:
    curve = strategy.curve
    assert curve is not None

    def score(info: NodeInfo) -> int:
        score_sum = weight_sum = 0
        for read, request, weight in readers:
            allocatable, used = read(info)
            if allocatable:
                taken = min(used + request, allocatable)
                one = curve.score(taken * MAX_NODE_SCORE // allocatable)
                if one > 0:
                    score_sum += one * weight
                    weight_sum += weight
        return math.floor(score_sum / max(weight_sum, 1) + 0.5)

    return score
