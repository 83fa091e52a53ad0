"""Node conditions: CheckNodeCondition and the two predicates on pressure (spec 05 §17.2).

In v1.36 these conditions reach the scheduler as taints.
"""

from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import FITS, code_of
from kubestow.index.nodes import Nodes

_MEMORY_PRESSURE: Final = code_of("NodeUnderMemoryPressure")
_DISK_PRESSURE: Final = code_of("NodeUnderDiskPressure")
# Condition → the required status, and the reason for any other.
_WANTED: Final = {
    "Ready": ("True", "NodeNotReady"),
    "OutOfDisk": ("False", "NodeOutOfDisk"),
    "NetworkUnavailable": ("False", "NodeNetworkUnavailable"),
}


class CheckNodeCondition(NamedRule):
    """Part of every set of predicates, whether a Policy names it or not."""

    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        return _per_node(nodes, "v1.9 conditions", _condition_code)


class CheckNodeMemoryPressure(NamedRule):
    """Best-effort pods are killed first, so they are not placed where memory is short."""

    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        if not attempt.is_best_effort:
            return ALL_FIT
        return _per_node(nodes, "v1.9 memory pressure", _memory_pressure_code)


class CheckNodeDiskPressure(NamedRule):
    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        return _per_node(nodes, "v1.9 disk pressure", _disk_pressure_code)


def _per_node(nodes: Nodes, key: str, code: Callable[[Node], int]) -> Verdicts:
    def compute(nodes: Nodes) -> IntArray:
        return np.array([code(node) for node in nodes.node_objects()], np.int64)

    codes: IntArray = nodes.tracked(key, Depends.NODE, compute)
    return Verdicts(codes) if codes.any() else ALL_FIT


def _condition_code(node: Node) -> int:
    reasons: list[str] = []
    for condition in node.status.conditions:
        wanted = _WANTED.get(condition.type)
        # Unknown counts as the wrong status; an absent condition passes.
        if wanted is not None and condition.status != wanted[0]:
            reasons.append(wanted[1])
    if node.spec.unschedulable:
        reasons.append("NodeUnschedulable")
    return code_of(*reasons)


def _memory_pressure_code(node: Node) -> int:
    return _MEMORY_PRESSURE if _is_true(node, "MemoryPressure") else FITS


def _disk_pressure_code(node: Node) -> int:
    return _DISK_PRESSURE if _is_true(node, "DiskPressure") else FITS


def _is_true(node: Node, kind: str) -> bool:
    statuses = [cond.status for cond in node.status.conditions if cond.type == kind]
    return bool(statuses) and statuses[-1] == "True"
