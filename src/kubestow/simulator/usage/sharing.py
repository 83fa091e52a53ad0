"""The CPU of a node, shared by the pods on it as control groups share it.

A pod's weight is that of its control group: its request in shares of 1,024 for a core, at least 2.
While all pods of a node together ask for no more than it has, each gets what it asks for. Else
each has a part of the node in proportion to its weight; what a pod does not need of its part goes
to the others, again by weight. What a pod asks for and does not get is lost.

Simpler than a kernel: pods are in one group, not in one for each class of quality of service, and
there is no cost of switching.
"""

from typing import Final

import numpy as np

from kubestow.arrays import FloatArray, IntArray, IntpArray

_SHARES_PER_CORE: Final = 1024
_SHARES_MIN: Final = 2


def weights_of(requested_milli: IntArray) -> IntArray:
    """The weight of each pod's control group."""
    return np.maximum(requested_milli * _SHARES_PER_CORE // 1000, _SHARES_MIN)


def granted_cpu(
    demand: IntArray, weights: IntArray, nodes: IntpArray, capacity: IntArray
) -> FloatArray:
    """What each pod gets, in thousandths of a core.

    demand, weights   int64[pod]
    nodes             intp[pod], the node of each pod
    capacity          int64[node]
    """
    granted = demand.astype(np.float64)
    totals = np.bincount(nodes, demand, len(capacity))
    rows = np.flatnonzero((totals > capacity)[nodes])
    left = capacity.astype(np.float64)
    while len(rows):
        own = nodes[rows]
        weight = np.bincount(own, weights[rows], len(capacity))
        parts = left[own] * weights[rows] / weight[own]
        granted[rows] = parts
        is_satisfied = demand[rows] <= parts
        # A node none of whose pods needs less than its part is done.
        goes_on = np.zeros(len(capacity), np.bool_)
        goes_on[own[is_satisfied]] = True
        satisfied = rows[is_satisfied]
        granted[satisfied] = demand[satisfied]
        left -= np.bincount(nodes[satisfied], demand[satisfied], len(capacity))
        rows = rows[~is_satisfied & goes_on[own]]
    return granted
