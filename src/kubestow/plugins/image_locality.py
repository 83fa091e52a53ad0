"""Prefers nodes that already have the pod's images (spec 05 §10).

An image counts by its size, scaled by the share of nodes that have it: an image on a single node
should not attract all pods there.
"""

from collections import Counter
from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import FloatArray, IntArray
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE, Fragments
from kubestow.framework.reuse import PodReads, Reads, Reuse, VersionedBasis
from kubestow.index.image_rows import ImageRows
from kubestow.index.nodes import Nodes

_MEBIBYTE: Final = 1024 * 1024
_SUM_MIN: Final = 23 * _MEBIBYTE
_SUM_MAX_PER_CONTAINER: Final = 1000 * _MEBIBYTE
# Up to this many images each is looked up by itself.
IMAGES_BY_THEMSELVES_MAX: Final = 16


class ImageLocality:
    name: ClassVar[str] = "ImageLocality"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._rows = handle.snapshot.derived(ImageRows)
        self.reuse = Reuse(
            score=Reads.NODE,
            pod=PodReads.SPEC,
            basis=VersionedBasis(self._basis, self._rows.names),
        )

    def _basis(self, pod: PodInfo) -> Hashable:
        """Images that no node has do not count: they do not distinguish pods."""
        known = self._rows.names()
        if not known:
            return None
        images = self._images(pod.pod)
        return None if known.isdisjoint(images) else (images, self._container_count(pod.pod))

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        images = self._images(pod.pod)
        sums: IntArray | None = None
        if len(images) > IMAGES_BY_THEMSELVES_MAX:
            node_count = len(nodes.snapshot)
            sums = nodes.image_sums(
                Counter(images), lambda sizes, counts: _scaled(sizes, counts, node_count)
            )
        else:
            for image in images:
                sizes = _scaled_sizes(nodes, image)
                if sizes is not None:
                    sums = sizes if sums is None else sums + sizes
        if sums is None:
            return 0
        # Image volumes add to the sum but not to this limit.
        largest = _SUM_MAX_PER_CONTAINER * self._container_count(pod.pod)
        if not largest:
            # The API server rejects pods without containers, but the formula covers them.
            return np.where(sums < _SUM_MIN, 0, MAX_NODE_SCORE)
        clamped = np.clip(sums, _SUM_MIN, largest)
        return MAX_NODE_SCORE * (clamped - _SUM_MIN) // (largest - _SUM_MIN)

    def sign_pod(self, pod: PodInfo) -> Fragments:
        """Each image of a container once; image volumes do not count here."""
        spec = pod.pod.spec
        images = {
            normalized_image(each.image) for each in (*spec.containers, *spec.init_containers)
        }
        return {"v1.Pod.Spec.CanonicalImageNames()": images}

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
    column = nodes.image_column(image)
    if column is None:
        return None
    return _scaled(column.sizes, column.node_counts, len(nodes.snapshot))[column.ids]


def _scaled(sizes: FloatArray, node_counts: FloatArray, node_count: int) -> IntArray:
    # Spec 05 §10: first the share, then the product, then truncated: another order differs.
    return (sizes * (node_counts / node_count)).astype(np.int64)


def normalized_image(name: str) -> str:
    """The name with `:latest` where the pod gave no tag. Names reported by nodes stay as they are.

    A colon before the last slash belongs to a registry's port; one in a digest counts as a tag.
    """
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def pod_images(pod: Pod) -> tuple[str, ...]:
    """All images the pod needs, normalized: init containers, containers, image volumes.

    One used twice is listed twice.
    """
    spec = pod.spec
    return tuple(
        normalized_image(name)
        for name in (
            *(container.image for container in spec.init_containers),
            *(container.image for container in spec.containers),
            *(volume.image.reference for volume in spec.volumes if volume.image is not None),
        )
    )
