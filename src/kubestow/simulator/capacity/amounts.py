"""Bounds: what cannot fit is found without placing it.

Placing decides; a bound only leaves out what is certain to fail. It has the resources that
NodeResourcesFit always counts: cpu, memory, ephemeral storage, and pods, of which each takes one.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.arrays import IntArray
from kubestow.cache.node_info import NodeInfo


def amounts(resources: Resources, pod_count: int) -> IntArray:
    """int64[4]: cpu in thousandths, bytes of memory, bytes of ephemeral storage, pods."""
    return np.array(
        (resources.milli_cpu, resources.memory, resources.ephemeral_storage, pod_count), np.int64
    )


def requested(pod: PodInfo) -> IntArray:
    """int64[4]: what a pod takes of a node."""
    return amounts(pod.accounted.requested, 1)


def allocatable(info: NodeInfo) -> IntArray:
    """int64[4]: what a node has."""
    return amounts(info.allocatable, info.allocatable.allowed_pods)


def free(info: NodeInfo) -> IntArray:
    """int64[4]: what a node has left; nothing is left of what is used up."""
    used = amounts(info.requested, len(info.pods))
    return np.maximum(allocatable(info) - used, 0)


def total(parts: Iterable[IntArray]) -> IntArray:
    """int64[4]: the sum, zeros of nothing."""
    return sum(parts, start=np.zeros(4, np.int64))


class Room:
    """What is free on each node, of a cluster whose changes are reported here."""

    def __init__(self, infos: Sequence[NodeInfo]) -> None:
        self._rows: Final = {info.name: row for row, info in enumerate(infos)}
        # int64[node, 4]; zeros for a node that is gone.
        self._free = np.array([free(info) for info in infos], np.int64).reshape(-1, 4)

    def changed(self, info: NodeInfo) -> None:
        self._free[self._rows[info.name]] = free(info)

    def gone(self, name: str) -> None:
        self._free[self._rows[name]] = 0

    def misfit_without(self, name: str, pods: Iterable[PodInfo]) -> PodInfo | None:
        """A pod for which the other nodes have certainly no room, beside those like it."""
        others = self._free.copy()
        others[self._rows[name]] = 0
        alike: dict[tuple[int, ...], list[PodInfo]] = {}
        for pod in pods:
            alike.setdefault(tuple(requested(pod).tolist()), []).append(pod)
        for request, equal in alike.items():
            wanted = np.array(request)
            # Each pod takes one of the pods of a node, so there is always something to divide by.
            per_node = (others[:, wanted > 0] // wanted[wanted > 0]).min(axis=1)
            if (room := int(per_node.sum())) < len(equal):
                return equal[room]
        return None
