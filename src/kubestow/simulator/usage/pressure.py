"""Which pods a kubelet evicts when a node is short of memory.

The documented rules (node-pressure eviction), for memory:

when    the free memory of the node falls below the hard threshold, 100Mi by default. Pods may
        together use at most what is allocatable, which has the threshold taken off already where a
        kubelet reported it.
whom    first pods that use more than they request; among those the lowest priority first; then
        those that exceed their request most. Pods within their requests follow by the same order.
        Pods of critical priority are never evicted.
how     one pod in each check, every 10 s, without a grace period; its phase is Failed, its reason
        Evicted. The node has the condition MemoryPressure, which stays for 5 minutes after the last
        check that found too little.
"""

from typing import Final

import numpy as np

from kubestow.arrays import BoolArray, IntArray, IntpArray

THRESHOLD_BYTES: Final = 100 * 2**20
CHECK_S: Final = 10.0
TRANSITION_S: Final = 300.0
CRITICAL_PRIORITY: Final = 2_000_000_000


def usable_memory(*, allocatable: int, capacity: int, threshold: int) -> int:
    """How much the pods of a node may use together before a kubelet evicts one of them."""
    return max(min(allocatable, capacity - threshold), 0)


def evicted_pods(
    use: IntArray,
    requested: IntArray,
    priorities: IntArray,
    nodes: IntpArray,
    usable: IntArray,
    *,
    checks: int,
) -> IntpArray:
    """The pods that are evicted from nodes that are short of memory, node by node in their order.

    use, requested, priorities   int64[pod]; nodes: intp[pod]
    usable                       int64[node], see `usable_memory`
    checks                       how many checks a kubelet makes until the next call
    """
    totals = np.bincount(nodes, use, len(usable)).astype(np.int64)
    rows = np.flatnonzero(_is_candidate(priorities) & (totals > usable)[nodes])
    if not len(rows):
        return rows
    excess = use[rows] - requested[rows]
    order = np.lexsort((rows, -excess, priorities[rows], excess <= 0, nodes[rows]))
    rows = rows[order]
    own = nodes[rows]
    # Before each pod in its turn: what the ones before it on its node have freed, and how many.
    first = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
    lengths = np.diff(np.r_[first, len(rows)])
    freed = np.cumsum(use[rows]) - use[rows]
    freed -= np.repeat(freed[first], lengths)
    turn = np.arange(len(rows)) - np.repeat(first, lengths)
    return rows[(totals[own] - freed > usable[own]) & (turn < checks)]


def _is_candidate(priorities: IntArray) -> BoolArray:
    return priorities < CRITICAL_PRIORITY
