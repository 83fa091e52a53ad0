"""How many more pods of a shape fit, counted by what nodes have left.

The shape is an amount of one resource, or of several. Only open nodes count.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import amount_of
from kubestow.arrays import IntArray
from kubestow.errors import InputError
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.ground import Ground


class Defragment(Goal):
    """The number of further pods of a shape that fit."""

    unit = "more pods fit"
    is_more_better: ClassVar[bool] = True
    # Nodes are cleared of the pods that use the resource, one node at a time.
    clears_nodes = True

    def __init__(self, shape: Mapping[str, int | None], text: str) -> None:
        """Amounts by resource; None stands for the largest request of a pod there is."""
        self.text = text
        self._given = shape

    def start(self, ground: Ground) -> None:
        snapshot = ground.cluster.refresh()
        infos = snapshot.node_infos
        self.resources: Sequence[str] = list(self._given)
        self._shape = [self._amount(name, ground) for name in self.resources]
        is_open = [not node.spec.unschedulable for node in snapshot.nodes]
        # int64[resource, node]: what is left, and the pods that may still come.
        self._left: IntArray = np.array(
            [
                [
                    amount_of(name, info.allocatable) - amount_of(name, info.requested)
                    for info in infos
                ]
                for name in self.resources
            ],
            np.int64,
        ).reshape(len(self.resources), -1)
        self._pods_left: IntArray = np.array(
            [info.allocatable.allowed_pods - len(info.pods) for info in infos], np.int64
        )
        self._is_open = is_open
        self._fits = [self._fit(row) for row in range(len(infos))]
        self._total = sum(self._fits)

    def take(self, pod: PodInfo, row: int) -> None:
        self._add(pod, row, 1)

    def put(self, pod: PodInfo, row: int) -> None:
        self._add(pod, row, -1)

    def figure(self) -> float:
        return float(self._total)

    def tendency(self) -> float:
        # What is left on few nodes has larger squares.
        left = self._left[0] / self._shape[0]
        return -float((left * left).sum())

    def pressure(self, pod: PodInfo, row: int) -> float:
        requested = pod.accounted.requested
        if not any(amount_of(name, requested) for name in self.resources):
            return 0.0
        self.take(pod, row)
        gain = float(self._fits[row])
        self.put(pod, row)
        gain -= self._fits[row]
        # A pod on a node that has much left is nearer to a free place for the shape.
        rest = self._left.item(0, row) % self._shape[0]
        return gain + rest / self._shape[0] / 2

    def rows(self) -> Iterator[int]:
        """Nodes on which a part of the shape is left, the largest part first."""
        rest = np.where(np.array(self._is_open), self._left[0] % self._shape[0], 0)
        for row in np.argsort(-rest, kind="stable").tolist():
            if rest[row] <= 0:
                return
            yield row

    def hinders(self, pod: PodInfo) -> bool:
        """Whether a pod takes of the resources of the shape."""
        requested = pod.accounted.requested
        return any(amount_of(name, requested) for name in self.resources)

    def _add(self, pod: PodInfo, row: int, sign: int) -> None:
        requested = pod.accounted.requested
        for number, name in enumerate(self.resources):
            self._left[number, row] += sign * amount_of(name, requested)
        self._pods_left[row] += sign
        before, after = self._fits[row], self._fit(row)
        self._fits[row] = after
        self._total += after - before

    def _fit(self, row: int) -> int:
        if not self._is_open[row]:
            return 0
        counts = [
            self._left.item(number, row) // amount for number, amount in enumerate(self._shape)
        ]
        return max(0, min(*counts, self._pods_left.item(row)))

    def _amount(self, name: str, ground: Ground) -> int:
        given, infos = self._given[name], ground.cluster.snapshot.node_infos
        if not any(amount_of(name, info.allocatable) for info in infos):
            raise InputError(f'no node has the resource "{name}"')
        if given is not None:
            return given
        requests = [amount_of(name, pod.accounted.requested) for info in infos for pod in info.pods]
        largest = max(requests, default=0)
        return largest or max(amount_of(name, info.allocatable) for info in infos)
