"""Prefers nodes that already have the pod's images (spec 05 §10).

An image counts by its size, scaled by the share of nodes that have it: an image on a single node
should not attract all pods there.
"""

from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from kubestow.api.images import pod_images
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray
from kubestow.cache.change_log import Depends
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.index.image_rows import ImageRows
from kubestow.index.nodes import Nodes

_MEBIBYTE: Final = 1024 * 1024
_SUM_MIN: Final = 23 * _MEBIBYTE
_SUM_MAX_PER_CONTAINER: Final = 1000 * _MEBIBYTE


class ImageLocality:
    name: ClassVar[str] = "ImageLocality"
    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(score=Reads.NODE, pod=PodReads.SPEC)

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        sums: IntArray | None = None
        image_rows = nodes.snapshot.derived(ImageRows)
        for image in self._images(pod.pod):
            if not image_rows.may_have(image):
                continue
            scaled = _scaled_sizes(nodes, image)
            if scaled is not None:
                sums = scaled if sums is None else sums + scaled
        if sums is None:
            return 0
        # Image volumes add to the sum but not to this limit.
        largest = _SUM_MAX_PER_CONTAINER * self._container_count(pod.pod)
        if not largest:
            # The API server rejects pods without containers, but the formula covers them.
            return np.where(sums < _SUM_MIN, 0, MAX_NODE_SCORE)
        clamped = np.clip(sums, _SUM_MIN, largest)
        return MAX_NODE_SCORE * (clamped - _SUM_MIN) // (largest - _SUM_MIN)

    # Older versions read fewer images.

    def _images(self, pod: Pod) -> tuple[str, ...]:
        return pod_images(pod)

    def _container_count(self, pod: Pod) -> int:
        return len(pod.spec.init_containers) + len(pod.spec.containers)


def _scaled_sizes(nodes: Nodes, image: str) -> IntArray | None:
    """int64[node]: the scaled size of the image; None if no node has it.

    Size and number of nodes are those when the row was last copied (spec 05 §10), so they may
    differ between nodes.
    """
    sizes, node_counts = _tracked_image(nodes, image)
    if not sizes.any():
        return None
    shares = node_counts / len(nodes.snapshot)
    # Spec 05 §10: first the share, then the product, then truncated: another order differs.
    return (sizes * shares).astype(np.int64)


def _tracked_image(nodes: Nodes, image: str) -> npt.NDArray[np.float64]:
    """float64[2, node]: the size of the image, and how many nodes have it."""

    def compute(nodes: Nodes) -> npt.NDArray[np.float64]:
        tables = nodes.images()
        found: npt.NDArray[np.float64] = np.zeros((2, len(tables)))
        if isinstance(nodes.rows, slice) and nodes.rows == ALL_ROWS:
            places = nodes.snapshot.derived(ImageRows).rows_with(image)
        else:
            places = [place for place, images in enumerate(tables) if image in images]
        if places:
            found[:, places] = np.array([tables[place][image] for place in places]).T
        return found

    return nodes.tracked(("image", image), Depends.NODE, compute)
