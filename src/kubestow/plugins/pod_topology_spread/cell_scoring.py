"""The scores of two constraints, one on hosts and one on larger domains (spec 06 §6.3.8).

All nodes of a zone with equally many matching pods have one score, and there are few such cells
(`index.topology.cells`): a score is computed for each cell and looked up for each node.
"""

import math

import numpy as np

from kubestow.arrays import IntArray
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.nodes import Nodes
from kubestow.index.topology.cells import CELLS_MAX, Cells
from kubestow.index.topology.domains import ABSENT, EMPTY
from kubestow.plugins.pod_topology_spread.normalising import Rounding, inverted


def cell_scores(
    cells: Cells,
    nodes: Nodes,
    *,
    host_allowance: int,
    allowance: int,
    domain_counts: IntArray,
    rounding: Rounding,
) -> IntArray:
    """int64[node]: the normalised scores of all feasible nodes; there must be one.

    Either constraint allows for some skew; `domain_counts` are those of the one that is not on
    hosts.
    """
    ids, width = cells.ids[nodes.rows], cells.width
    is_all = len(ids) == len(cells.ids)
    populations = cells.populations if is_all else np.bincount(ids, minlength=CELLS_MAX)
    present: list[int] = populations.nonzero()[0].tolist()
    domains = {cell % width for cell in present}
    if ABSENT in domains:
        # Spec 06 §6.3.7: nodes without the label form the domain "".
        domains = domains - {ABSENT} | {EMPTY}
    host_weight, weight = math.log(len(ids) + 2), math.log(len(domains) + 2)
    # In doubles (spec 06 §6.3.8): Python's are those of NumPy.
    by_domain = [count * weight + allowance for count in domain_counts.tolist()]
    by_domain[ABSENT] = 0.0
    rounded = rounding.one
    raw = [
        rounded(cell // width * host_weight + host_allowance + by_domain[cell % width])
        for cell in present
    ]
    highest, lowest = max(0, *raw), min(raw)
    if highest == 0:
        return np.full(len(ids), MAX_NODE_SCORE, np.int64)
    scores = [0] * (present[-1] + 1)
    for cell, score in zip(present, raw, strict=True):
        scores[cell] = inverted(score, lowest, highest)
    return np.array(scores, np.int64).take(ids)
