"""NodeResourcesBalancedAllocation for one node."""

import math
from collections.abc import Sequence
from typing import Final

from kubestow.api.resources import CPU, MEMORY
from kubestow.cache.node_info import NodeInfo
from kubestow.engine.equivalence.row_forms.amounts import (
    LoadReader,
    load_readers,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.profile import RowFunction
from kubestow.plugins.node_resources_balanced_allocation import (
    HALF_SCORE,
    NodeResourcesBalancedAllocation,
)

_MOST: Final = float(MAX_NODE_SCORE)
# One share alone is always even.
_ALONE: Final = HALF_SCORE + HALF_SCORE // 2


def score_form(plugin: NodeResourcesBalancedAllocation, state: CycleState) -> RowFunction:
    names, amounts, weights = plugin.scored_request(state)
    if names == (CPU, MEMORY):
        return balance_of_cpu_and_memory(*amounts.ravel().tolist())
    return balance_of_any(load_readers(names, amounts, weights, non_zero=False))


def balance_of_any(readers: Sequence[LoadReader]) -> RowFunction:
    def score(info: NodeInfo) -> int:
        after: list[float] = []
        before: list[float] = []
        for read, request, _ in readers:
            allocatable, used = read(info)
            if allocatable:
                # A whole number divided by a float becomes a float first, as in an array.
                whole = float(allocatable)
                after.append(min((used + request) / whole, 1.0))
                before.append(min(used / whole, 1.0))
        if len(after) < 2:
            return _ALONE
        even_after, even_before = 1 - _deviation(after), 1 - _deviation(before)
        return (int(even_after * _MOST) - int(even_before * _MOST) + 3 * HALF_SCORE) // 2

    return score


def balance_of_cpu_and_memory(cpu_request: int, memory_request: int) -> RowFunction:
    """The balance of one node without loops, for the default resources."""

    def score(info: NodeInfo) -> int:
        allocatable, used = info.allocatable, info.requested
        if not (allocatable.milli_cpu and allocatable.memory):
            return _ALONE
        cpu, cpu_used = float(allocatable.milli_cpu), used.milli_cpu
        memory, memory_used = float(allocatable.memory), used.memory
        cpu_before, cpu_after = cpu_used / cpu, (cpu_used + cpu_request) / cpu
        memory_before, memory_after = memory_used / memory, (memory_used + memory_request) / memory
        # Faster than four calls of `min`.
        cpu_before = cpu_before if cpu_before < 1.0 else 1.0
        cpu_after = cpu_after if cpu_after < 1.0 else 1.0
        memory_before = memory_before if memory_before < 1.0 else 1.0
        memory_after = memory_after if memory_after < 1.0 else 1.0
        even_before = 1 - abs((cpu_before - memory_before) / 2)
        even_after = 1 - abs((cpu_after - memory_after) / 2)
        return (int(even_after * _MOST) - int(even_before * _MOST) + 3 * HALF_SCORE) // 2

    return score


def _deviation(shares: Sequence[float]) -> float:
    # Operations in the order of the array form: the last bit may change the truncated result.
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2)
    mean = sum(shares[1:], shares[0]) / len(shares)
    squares = [(share - mean) * (share - mean) for share in shares]
    return math.sqrt(sum(squares[1:], squares[0]) / len(shares))
