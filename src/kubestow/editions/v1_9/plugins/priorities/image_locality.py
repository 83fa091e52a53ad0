"""ImageLocalityPriority: nodes that have the pod's images already (spec 05 §18)."""

from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.index.nodes import Nodes

_MB: Final = 1024 * 1024
_SMALLEST: Final = 23 * _MB
_LARGEST: Final = 1000 * _MB


class ImageLocalityPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        sizes = np.zeros(len(nodes), np.int64)
        for container in attempt.pod.pod.spec.containers:
            sizes += _size_of(nodes, container.image)
        return score_of(sizes)


def score_of(sizes: IntArray) -> IntArray:
    """int64[node] in 0..10, by the bytes that need not be pulled."""
    inside = MAX_PRIORITY * (sizes - _SMALLEST) // (_LARGEST - _SMALLEST) + 1
    return np.select([sizes < _SMALLEST, sizes >= _LARGEST], [0, MAX_PRIORITY], inside)


def _size_of(nodes: Nodes, image: str) -> IntArray:
    """int64[node]: the size of the image with exactly this name; 0 where the node lacks it."""

    def compute(nodes: Nodes) -> IntArray:
        return np.array(
            [
                # For a name listed twice, the later size counts.
                next((entry.size_bytes for entry in reversed(images) if image in entry.names), 0)
                for images in (node.status.images for node in nodes.node_objects())
            ],
            np.int64,
        )

    return nodes.tracked(("v1.9 image", image), Depends.NODE, compute)
