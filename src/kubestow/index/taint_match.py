"""Taints against a pod's tolerations, over all nodes at once.

Clusters have few distinct taint lists, so the rules are evaluated per list. The answer for a list
of tolerations is kept by the snapshot: pods of one controller tolerate the same.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from kubestow.api.node import Taint
from kubestow.api.pod import Toleration
from kubestow.api.taints import TolerationTable, first_untolerated, untolerated_soft_count
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.index.distinct import per_distinct
from kubestow.index.nodes import Nodes

Tolerations = TolerationTable[Toleration]

_HARD: Final = "untolerated taints"
_SOFT: Final = "untolerated soft taints"
# The answer for more tolerations than this is not kept: the key alone may take megabytes.
TOLERATIONS_KEPT_MAX: Final = 256


def untolerated(
    nodes: Nodes, tolerations: Tolerations, *, comparison_operators: bool
) -> IntArray | None:
    """int64[node]: 1 where a NoSchedule or NoExecute taint keeps the pod out, 0 elsewhere.

    None if no node of the cluster has taints. Read-only for the caller.
    """

    def keeps_out(taints: tuple[Taint, ...]) -> bool:
        taint = first_untolerated(taints, tolerations, comparison_operators=comparison_operators)
        return taint is not None

    return _per_taint_list(nodes, _HARD, tolerations, keeps_out, comparison_operators)


def untolerated_soft_counts(
    nodes: Nodes, tolerations: Tolerations, *, comparison_operators: bool
) -> IntArray | None:
    """int64[node]: how many PreferNoSchedule taints are not tolerated.

    None if no node of the cluster has taints. Read-only for the caller.
    """

    def count(taints: tuple[Taint, ...]) -> int:
        return untolerated_soft_count(
            taints, tolerations, comparison_operators=comparison_operators
        )

    return _per_taint_list(nodes, _SOFT, tolerations, count, comparison_operators)


def _per_taint_list(
    nodes: Nodes,
    question: str,
    tolerations: Tolerations,
    rule: Callable[[tuple[Taint, ...]], int],
    comparison_operators: bool,
) -> IntArray | None:
    if len(nodes.taint_lists) == 1:  # The first list is the empty one.
        return None

    def compute(nodes: Nodes) -> IntArray:
        return per_distinct(nodes.taint_set, nodes.taint_lists, rule, np.int64)

    if len(tolerations.entries) > TOLERATIONS_KEPT_MAX:
        return compute(nodes)
    key = question, tolerations.entries, comparison_operators
    return nodes.tracked(key, Depends.NODE, compute)
