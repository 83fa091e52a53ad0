"""Nodes without their pods: how nodes that an extender returned as objects are scored.

Such an object contains no pods, and none are added to it (spec 04 §13.3): every sum over pods is
zero, and so are the counts of images, which only the cache has. Labels, taints and amounts are
those of the snapshot.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import FrozenImages
from kubestow.index.image_rows import Scale
from kubestow.index.nodes import Nodes


class BareNodes(Nodes):
    """Some nodes of a snapshot without their pods."""

    __slots__ = ()

    def subset(self, positions: npt.NDArray[np.intp]) -> Nodes:
        return BareNodes(self.snapshot, super().subset(positions).rows)

    def requested(self, column: int) -> IntArray:
        return np.zeros(len(self), np.int64)

    def non_zero_requested(self, column: int) -> IntArray:
        return np.zeros(len(self), np.int64)

    @property
    def pod_count(self) -> IntArray:
        return np.zeros(len(self), np.int64)

    @property
    def has_affinity(self) -> BoolArray:
        return np.zeros(len(self), np.bool_)

    @property
    def has_required_anti_affinity(self) -> BoolArray:
        return np.zeros(len(self), np.bool_)

    def images(self) -> list[FrozenImages]:
        return [()] * len(self)

    def image_column(self, image: str) -> None:
        return None

    def image_sums(self, counts: Mapping[str, int], scale: Scale) -> IntArray:
        return np.zeros(len(self), np.int64)

    def infos(self) -> list[NodeInfo]:
        infos: list[NodeInfo] = []
        for node in self.node_objects():
            info = NodeInfo(node.metadata.name)
            info.set_node(node)
            infos.append(info)
        return infos

    def tracked(
        self,
        key: Hashable,
        depends: Depends,
        compute: Callable[[Nodes], npt.NDArray[Any]],
        *,
        is_large: bool = False,
    ) -> npt.NDArray[Any]:
        # The kept array includes pods and images.
        return compute(self)
