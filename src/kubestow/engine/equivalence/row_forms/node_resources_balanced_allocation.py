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
    after: list[float] = []
    before: list[float] = []
    for allocatable, used, request, _ in loads:
        # Both become floats before they are divided, as in an array.
        whole = float(allocatable)
        after.append(min(float(used + request) / whole, 1.0))
        before.append(min(float(used) / whole, 1.0))
    return (_evenness(after) - _evenness(before) + 3 * HALF_SCORE) // 2


def _evenness(shares: Sequence[float]) -> int:
    # Operations in the order of the array form: the last bit may change the truncated result.
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    else:
        mean = sum(shares[1:], shares[0]) / len(shares)
        squares = [(share - mean) * (share - mean) for share in shares]
        deviation = math.sqrt(sum(squares[1:], squares[0]) / len(shares))
    return int((1 - deviation) * float(MAX_NODE_SCORE))
