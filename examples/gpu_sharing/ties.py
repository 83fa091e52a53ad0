"""Which of several best nodes is chosen: the one with the smallest name, by two Score plugins.

kube-scheduler leaves ties to chance, and kubestow to the order of its list; the paper's simulator
takes the smallest name. A rule for ties is a score that counts less than every other: the rank of
the node by name. A score has 101 values, so the rank has two digits, and the weights are those of
digits:

    the policy        10201
    NameOrderHigh       101
    NameOrderLow          1
"""

from typing import ClassVar, Final

import numpy as np

from kubestow.plugin import (
    CycleState,
    Depends,
    Handle,
    IntArray,
    Nodes,
    PodInfo,
    Snapshot,
)
from kubestow.plugin.fast import Follower

DIGITS: Final = 101
POLICY_WEIGHT: Final = DIGITS * DIGITS


class NameRanks(Follower):
    """int64[row]: the rank of each node by its name; nodes beyond the largest rank share that."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self.rows_moved(None)

    def ranks(self) -> IntArray:
        self.catch_up()
        return self._ranks

    def rows_moved(self, sources: object) -> None:
        names = self._snapshot.names
        self._ranks: IntArray = np.empty(len(names), np.int64)
        self._ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        np.minimum(self._ranks, POLICY_WEIGHT - 1, out=self._ranks)


class NameOrderHigh:
    name: ClassVar[str] = "NameOrderHigh"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return 100 - _ranks(nodes) // DIGITS


class NameOrderLow:
    name: ClassVar[str] = "NameOrderLow"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return 100 - _ranks(nodes) % DIGITS


def _ranks(nodes: Nodes) -> IntArray:
    return nodes.snapshot.derived(NameRanks).ranks()[nodes.rows]
