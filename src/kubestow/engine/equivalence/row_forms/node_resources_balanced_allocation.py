"""NodeResourcesBalancedAllocation for one node."""

import math
from collections.abc import Sequence

from kubestow.engine.equivalence.row_forms.amounts import NodeLoad, loads_reader
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.profile import RowFunction
from kubestow.plugins.node_resources_balanced_allocation import (
    HALF_SCORE,
    NodeResourcesBalancedAllocation,
)


def score_form(plugin: NodeResourcesBalancedAllocation, state: CycleState) -> RowFunction:
    names, amounts, weights = plugin.scored_request(state)
    loads_on = loads_reader(names, amounts, weights, non_zero=False)
    return lambda info: balance_score(loads_on(info))


def balance_score(loads: Sequence[NodeLoad]) -> int:
    if len(loads) < 2:
        return HALF_SCORE + HALF_SCORE // 2
    if len(loads) == 2:
        return _score_of_two(*loads)
    after: list[float] = []
    before: list[float] = []
    for allocatable, used, request, _ in loads:
        # Both become floats before they are divided, as in an array.
        whole = float(allocatable)
        after.append(min(float(used + request) / whole, 1.0))
        before.append(min(float(used) / whole, 1.0))
    return _score(_deviation(after), _deviation(before))


def _score_of_two(one: NodeLoad, other: NodeLoad) -> int:
    """The same without lists: by default there are cpu and memory."""
    allocatable, used, request, _ = one
    allocatable_2, used_2, request_2, _ = other
    whole, whole_2 = float(allocatable), float(allocatable_2)
    # A whole number divided by a float becomes a float first.
    after = min((used + request) / whole, 1.0) - min((used_2 + request_2) / whole_2, 1.0)
    before = min(used / whole, 1.0) - min(used_2 / whole_2, 1.0)
    return _score(abs(after / 2), abs(before / 2))


def _deviation(shares: Sequence[float]) -> float:
    # Operations in the order of the array form: the last bit may change the truncated result.
    mean = sum(shares[1:], shares[0]) / len(shares)
    squares = [(share - mean) * (share - mean) for share in shares]
    return math.sqrt(sum(squares[1:], squares[0]) / len(shares))


def _score(after: float, before: float) -> int:
    """Of the deviations with the pod and without it."""
    most = float(MAX_NODE_SCORE)
    return (int((1 - after) * most) - int((1 - before) * most) + 3 * HALF_SCORE) // 2
