"""How evenly nodes are used: the standard deviation of the shares in use, in percent.

A share is what is requested of a resource, or used, of what the node has. It is counted in
millionths as a whole number, so sums never drift. Only open nodes count: others get no pods.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import CPU, MEMORY, Resources, amount_of
from kubestow.arrays import IntArray
from kubestow.errors import InputError
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.ground import Ground

RESOURCES: Final = (CPU, MEMORY)
_MILLION: Final = 1_000_000


class Balance(Goal):
    """The mean, over cpu and memory, of the standard deviation of the nodes' shares."""

    unit = "% of deviation"

    def __init__(self, *, of_used: bool = False) -> None:
        self.text = "balance=used" if of_used else "balance"
        self._of_used = of_used

    def start(self, ground: Ground) -> None:
        if self._of_used and not ground.usage:
            raise InputError(
                "balance=used needs what pods use, and there are no PodMetrics; give them with -f, "
                "give measurements of pods with --usage, or use --goal balance=requested"
            )
        snapshot = ground.cluster.refresh()
        self._usage = ground.usage
        infos = snapshot.node_infos
        is_open = np.array([not node.spec.unschedulable for node in snapshot.nodes], np.bool_)
        # int64[resource, node]
        self._has: IntArray = np.array(
            [[amount_of(name, info.allocatable) for info in infos] for name in RESOURCES], np.int64
        ).reshape(len(RESOURCES), -1)
        self._has[:, ~is_open] = 0
        self._taken: IntArray = np.zeros_like(self._has)
        for row, info in enumerate(infos):
            for pod in info.pods:
                self._taken[:, row] += self._amounts(pod)
        shares = self._taken * _MILLION // np.maximum(self._has, 1)
        self._shares: IntArray = np.where(self._has > 0, shares, 0)
        self._counts = [int(np.count_nonzero(has)) for has in self._has]
        self._sums = [int(shares.sum()) for shares in self._shares]
        # As Python integers: squares of millionths over many nodes do not fit into 64 bits.
        self._squares = [sum(share * share for share in shares.tolist()) for shares in self._shares]

    def take(self, pod: PodInfo, row: int) -> None:
        self._add(self._amounts(pod), row, -1)

    def put(self, pod: PodInfo, row: int) -> None:
        self._add(self._amounts(pod), row, 1)

    def figure(self) -> float:
        return sum(map(self._deviation, range(len(RESOURCES)))) / len(RESOURCES)

    def pressure(self, pod: PodInfo, row: int) -> float:
        """How much the squares of the shares shrink if the pod goes to a node with the mean."""
        gain = 0.0
        for number, amount in enumerate(self._amounts(pod)):
            has = self._has.item(number, row)
            if has:
                mean = self._sums[number] / self._counts[number]
                share = amount * _MILLION / has
                gain += share * (self._shares.item(number, row) - mean - share)
        return gain

    def rows(self) -> Iterator[int]:
        """The fullest nodes first."""
        counts = np.maximum(np.array(self._counts), 1)
        means = np.array(self._sums)[:, None] // counts[:, None]
        above = np.where(self._has > 0, self._shares - means, -_MILLION).max(axis=0)
        order = np.argsort(-above, kind="stable")
        for row in order.tolist():
            if above[row] <= 0:
                return
            yield row

    def _deviation(self, number: int) -> float:
        count = self._counts[number]
        if not count:
            return 0.0
        # Exact: the variance times the square of the count.
        variance = count * self._squares[number] - self._sums[number] ** 2
        return math.sqrt(variance) / count / (_MILLION / 100)

    def _add(self, amounts: Sequence[int], row: int, sign: int) -> None:
        for number, amount in enumerate(amounts):
            has = self._has.item(number, row)
            if not has:
                continue
            before = self._shares.item(number, row)
            self._taken[number, row] += sign * amount
            after = self._taken.item(number, row) * _MILLION // has
            self._shares[number, row] = after
            self._sums[number] += after - before
            self._squares[number] += after * after - before * before

    def _amounts(self, pod: PodInfo) -> Sequence[int]:
        resources: Resources = pod.accounted.requested
        if self._of_used:
            # A replacement is expected to use what its pod used.
            found = self._usage.get(PodKey(pod.namespace, _name_before(pod)))
            resources = found if found is not None else resources
        return [amount_of(name, resources) for name in RESOURCES]


def _name_before(pod: PodInfo) -> str:
    """The name of the pod of the input that this one replaces."""
    return pod.name.partition("-again-")[0]
