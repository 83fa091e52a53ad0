"""Pods that were placed a moment ago, and how much of each is not measured yet.

A measurement of a node is of the time before it. A pod that was placed at P counts on a node that
was measured last at T by its estimate, which fades into the measurement:

    whole            P >= T
    a part of it     (fade - (T - P)) / fade
    nothing          P <= T - fade

So what a pod counts changes with a measurement, not with the clock. A pod that ends leaves at once.
"""

from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.usage.measurement import Amounts

# How many pods the plugin keeps: those placed, of which the oldest go first, those that wait, and
# kinds of pods with an estimate.
PLACED_MAX: Final = 1 << 16


class PlacedPods:
    """The pods in the order in which they were placed; `node` is a number of the caller's for its
    node. One is added after every decision, so that is fast; columns are made of them when nodes
    have been measured."""

    def __init__(self, fade_ns: int) -> None:
        self.fade_ns = fade_ns
        # Node, time and estimate by UID.
        self._pods: dict[str, tuple[int, int, Amounts]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def add(self, uid: str, node: int, time_ns: int, estimate: Amounts) -> bool:
        """Whether the pod was not kept yet."""
        pods = self._pods
        pod = node, time_ns, estimate
        if pods.setdefault(uid, pod) is not pod:
            return False
        if len(pods) > PLACED_MAX:
            for oldest in list(pods)[: PLACED_MAX // 2]:
                del pods[oldest]
        return True

    def remove(self, uid: str) -> tuple[int, int, Amounts] | None:
        """The pod's node, time and estimate; None if it is not kept."""
        return self._pods.pop(uid, None)

    def forget_before(self, time_ns: int) -> None:
        """Drop pods that were placed before that time."""
        self._pods = {uid: pod for uid, pod in self._pods.items() if pod[1] >= time_ns}

    def sums(self, node_count: int, measured_ns: IntArray) -> IntArray:
        """int64[resource, node]: what the pods of each node count.

        measured_ns   int64[node], when it was measured last; -1 if never: its pods count whole
        """
        sums = np.zeros((2, node_count), np.int64)
        if not self._pods:
            return sums
        nodes, times, estimates = zip(*self._pods.values(), strict=True)
        node, placed_ns = np.array(nodes, np.int64), np.array(times, np.int64)
        weights = np.clip(self.fade_ns - (measured_ns[node] - placed_ns), 0, self.fade_ns)
        counted = faded(np.array(estimates, np.int64).T, weights, self.fade_ns)
        for place in range(2):
            np.add.at(sums[place], node, counted[place])
        return sums

    def renumber(self, numbers: IntArray) -> None:
        """Nodes have other numbers now; `numbers` is int64[old number], -1 where one is gone."""
        number_of: list[int] = numbers.tolist()
        self._pods = {
            uid: (number_of[node], time_ns, estimate)
            for uid, (node, time_ns, estimate) in self._pods.items()
            if number_of[node] >= 0
        }


def faded(amounts: IntArray, weights: IntArray, fade_ns: int) -> IntArray:
    """Amounts times weights of 0 to `fade_ns`, as a share of it in thousandths; rounded down.

    In thousandths, so that the product of bytes and nanoseconds does not exceed 64 bits.
    """
    return amounts * (weights * 1000 // fade_ns) // 1000
