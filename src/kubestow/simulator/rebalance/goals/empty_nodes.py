"""What the nodes cost on which pods run; a node without any could go.

Pods that go with their node do not count: daemons, static pods, pods that are ending.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.simulator.input.pods import MIRROR
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.ground import Ground

_MILLION: Final = 1_000_000


class EmptyNodes(Goal):
    """The sum of the prices of nodes in use; each is 1 where no price is given."""

    clears_nodes = True
    closes_nodes = True

    def __init__(self, prices: Mapping[str, float]) -> None:
        self.text = "empty-nodes"
        self.unit = "paid for nodes in use" if prices else "nodes in use"
        self._given = prices

    def start(self, ground: Ground) -> None:
        snapshot = ground.cluster.refresh()
        prices = [self._given.get(name, 1.0) for name in snapshot.names]
        # Whole millionths, so that sums are exact.
        self._prices = [round(price * _MILLION) for price in prices]
        self._pods = [sum(keeps_node(pod.pod) for pod in each.pods) for each in snapshot.node_infos]
        self._total = sum(
            price for price, count in zip(self._prices, self._pods, strict=True) if count
        )

    def take(self, pod: PodInfo, row: int) -> None:
        if keeps_node(pod.pod):
            self._pods[row] -= 1
            if not self._pods[row]:
                self._total -= self._prices[row]

    def put(self, pod: PodInfo, row: int) -> None:
        if keeps_node(pod.pod):
            if not self._pods[row]:
                self._total += self._prices[row]
            self._pods[row] += 1

    def figure(self) -> float:
        return self._total / _MILLION

    def tendency(self) -> float:
        # Pods on few nodes have larger squares.
        return -float(sum(count * count for count in self._pods))

    def pressure(self, pod: PodInfo, row: int) -> float:
        return self._prices[row] / max(self._pods[row], 1)

    def rows(self) -> Iterator[int]:
        """Nodes with few pods for their price first."""
        counts = np.array(self._pods, np.float64)
        order = np.argsort(counts / np.maximum(np.array(self._prices), 1), kind="stable")
        for row in order.tolist():
            if self._pods[row]:
                yield row

    def hinders(self, pod: PodInfo) -> bool:
        return keeps_node(pod.pod)


def keeps_node(pod: Pod) -> bool:
    """Whether a node is in use because of this pod."""
    owner = controller_of(pod)
    return not (
        (owner is not None and owner.kind in ("DaemonSet", "Node"))
        or MIRROR in pod.metadata.annotations
        or is_terminating(pod)
    )
