"""Views on some rows of a snapshot: what a plugin reads.

A plugin is asked about any set of nodes: all of them, a stretch of the visiting order, the rows
that changed since the last pod of the same shape, or one node with pods added and removed in a
simulation. It reads columns and answers with an array of the same length.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kubestow.api.node import Node, Taint
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, BoolArray, IdArray, IntArray, Rows, pick
from kubestow.cache.change_log import Depends
from kubestow.cache.columns import ALLOCATABLE, ALLOWED_PODS, NON_ZERO, POD_COUNT, REQUESTED
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.resource_columns import BASIC_RESOURCES
from kubestow.cache.snapshot import FrozenImages, Snapshot
from kubestow.index.image_rows import ImageColumn, ImageRows, Scale
from kubestow.index.tracked import LabelColumns, TrackedArrays

# So many nodes with a resource are read one by one rather than as an array of all nodes.
_FEW: Final = 16


class Nodes:
    """Some nodes of a snapshot, in the order of `rows`."""

    __slots__ = ("_columns", "rows", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self._columns = snapshot.columns

    def __len__(self) -> int:
        rows = self.rows
        if isinstance(rows, slice):
            return len(range(*rows.indices(len(self.snapshot.names))))
        return len(rows)

    def subset(self, positions: npt.NDArray[np.intp]) -> "Nodes":
        """The nodes at these positions of the view."""
        if isinstance(self.rows, slice):
            start, _, step = self.rows.indices(len(self.snapshot))
            return SnapshotNodes(self.snapshot, positions * step + start)
        return SnapshotNodes(self.snapshot, self.rows[positions])

    # --- numbers ---

    def resource_column(self, name: str) -> int | None:
        """The column of a resource; None only if no node and no pod of the cluster has it."""
        return self._columns.resources.column(name)

    def requested(self, column: int) -> IntArray:
        """int64[node]: what the pods on each node request of one resource."""
        return self._columns.requested[column][self.rows]

    def allocatable(self, column: int) -> IntArray:
        """int64[node]: what each node offers of one resource; 0 where it lacks it."""
        return self._columns.allocatable[column][self.rows]

    def few_with(self, column: int) -> list[tuple[int, int, int]] | None:
        """Which of the nodes offer a resource other than the basic ones, or have pods that request
        it: position, offered, requested. None if there may be many of them."""
        return None

    def non_zero_requested(self, column: int) -> IntArray:
        """int64[node]: cpu (0) or memory (1), with defaults for pods that request none."""
        return self._columns.non_zero[column][self.rows]

    @property
    def basic_requested(self) -> IntArray:
        """int64[3, node]: cpu, memory and ephemeral storage together."""
        return np.stack([self.requested(column) for column in range(len(BASIC_RESOURCES))])

    @property
    def basic_allocatable(self) -> IntArray:
        """int64[3, node]: cpu, memory and ephemeral storage together."""
        return np.stack([self.allocatable(column) for column in range(len(BASIC_RESOURCES))])

    @property
    def non_zero(self) -> IntArray:
        """int64[2, node]: both of `non_zero_requested`."""
        return np.stack([self.non_zero_requested(column) for column in range(2)])

    @property
    def pod_count(self) -> IntArray:
        return self._columns.pod_count[self.rows]

    @property
    def allowed_pods(self) -> IntArray:
        return self._columns.allowed_pods[self.rows]

    # --- what the Node object says ---

    @property
    def unschedulable(self) -> BoolArray:
        return self._columns.unschedulable[self.rows]

    @property
    def features(self) -> IntArray:
        """int64[node]: declared features as bits (api.declared_features)."""
        return self._columns.features[self.rows]

    @property
    def taint_set(self) -> IdArray:
        """int32[node]: index into `taint_lists`."""
        return self._columns.taint_set[self.rows]

    @property
    def taint_lists(self) -> list[tuple[Taint, ...]]:
        """The distinct taint lists of the cluster."""
        return self._columns.taint_sets.lists

    def label_ids(self, key: str) -> IdArray:
        """int32[node]: index into `label_values(key)`, 0 where the label is absent."""
        return self.snapshot.derived(LabelColumns).column(key).ids[self.rows]

    def label_values(self, key: str) -> list[str | None]:
        """The distinct values of a label key; the first is None, for nodes without the label."""
        return self.snapshot.derived(LabelColumns).column(key).values

    @property
    def names(self) -> list[str]:
        return pick(self.snapshot.names, self.rows)

    def node_objects(self) -> list[Node]:
        return pick(self.snapshot.nodes, self.rows)

    def images(self) -> list[FrozenImages]:
        """Per node: its images, with the numbers as of when the row was copied."""
        return pick(self.snapshot.images, self.rows)

    def image_column(self, image: str) -> ImageColumn | None:
        """One of these images on all nodes of the view; None if no node of the cluster has it."""
        return self.snapshot.derived(ImageRows).column(image, self.rows)

    def image_sums(self, counts: Mapping[str, int], scale: Scale) -> IntArray:
        """int64[node]: the scaled sizes of these images, times their counts, where they are."""
        return self.snapshot.derived(ImageRows).sums(counts, scale, self.rows)

    # --- the pods on the nodes ---

    def infos(self) -> list[NodeInfo]:
        return pick(self.snapshot.node_infos, self.rows)

    @property
    def has_affinity(self) -> BoolArray:
        return self._columns.has_affinity[self.rows]

    @property
    def has_required_anti_affinity(self) -> BoolArray:
        return self._columns.has_required_anti_affinity[self.rows]

    # --- derived arrays ---

    def tracked(
        self,
        key: Hashable,
        depends: Depends,
        compute: "Callable[[Nodes], npt.NDArray[Any]]",
        *,
        is_large: bool = False,
    ) -> npt.NDArray[Any]:
        """An array derived from these nodes, kept by the snapshot, computed for changed rows only.

        The key must name everything `compute` depends on besides the nodes. `is_large`: it may take
        megabytes, and only a few such arrays are kept.
        """
        snapshot = self.snapshot
        values = snapshot.derived(TrackedArrays).values(
            key, depends, lambda rows: compute(nodes_of(snapshot, rows)), is_large=is_large
        )
        return values[..., self.rows]


class SnapshotNodes(Nodes):
    """Nodes as in the snapshot; their basic numbers are gathered in one operation."""

    __slots__ = ("_block",)

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        # Not by the base class: every attempt makes several of these.
        self.snapshot = snapshot
        self.rows = rows
        self._columns = snapshot.columns
        self._block: IntArray | None = None

    def _picked(self) -> IntArray:
        if self._block is None:
            block, rows = self._columns.block, self.rows
            self._block = block[:, rows] if isinstance(rows, slice) else block.take(rows, axis=1)
        return self._block

    def requested(self, column: int) -> IntArray:
        if column < len(BASIC_RESOURCES):
            return self._picked()[REQUESTED][column]
        return super().requested(column)

    def allocatable(self, column: int) -> IntArray:
        if column < len(BASIC_RESOURCES):
            return self._picked()[ALLOCATABLE][column]
        return super().allocatable(column)

    def few_with(self, column: int) -> list[tuple[int, int, int]] | None:
        if not isinstance(self.rows, slice):
            return None
        shown = range(*self.rows.indices(len(self.snapshot.names)))
        offered = self._columns.allocatable.scattered(column)
        requested = self._columns.requested.scattered(column)
        if len(offered) + len(requested) > _FEW:
            return None
        return [
            (shown.index(row), offered.get(row, 0), requested.get(row, 0))
            for row in offered.keys() | requested.keys()
            if row in shown
        ]

    def non_zero_requested(self, column: int) -> IntArray:
        return self._picked()[NON_ZERO][column]

    @property
    def basic_requested(self) -> IntArray:
        return self._picked()[REQUESTED]

    @property
    def basic_allocatable(self) -> IntArray:
        return self._picked()[ALLOCATABLE]

    @property
    def non_zero(self) -> IntArray:
        return self._picked()[NON_ZERO]

    @property
    def pod_count(self) -> IntArray:
        return self._picked()[POD_COUNT]

    @property
    def allowed_pods(self) -> IntArray:
        return self._picked()[ALLOWED_PODS]


def nodes_of(snapshot: Snapshot, rows: Rows = ALL_ROWS) -> Nodes:
    """These nodes of the snapshot, by default all of them."""
    return SnapshotNodes(snapshot, rows)


class SimulatedNode(Nodes):
    """One node as it would be with other pods on it: for nominated pods and preemption.

    `info` is the snapshot's own until a pod is added or removed, and a copy from then on.
    """

    __slots__ = ("_is_copy", "info", "row")

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        super().__init__(snapshot, np.array([row], np.intp))
        self.row = row
        self.info = snapshot.node_infos[row]
        self._is_copy = False

    def clone(self) -> "SimulatedNode":
        copy = SimulatedNode.__new__(SimulatedNode)
        copy.snapshot, copy.rows, copy._columns = self.snapshot, self.rows, self._columns
        copy.row = self.row
        copy.info = self.info.clone() if self._is_copy else self.info
        copy._is_copy = self._is_copy
        return copy

    def subset(self, positions: npt.NDArray[np.intp]) -> Nodes:
        return self  # There is one node, and nothing asks for an empty subset.

    def add_pod(self, pod: PodInfo) -> None:
        self._copied().add_pod(pod)

    def remove_pod(self, pod: PodInfo) -> None:
        self._copied().remove_pod(pod.pod)

    def _copied(self) -> NodeInfo:
        if not self._is_copy:
            self.info, self._is_copy = self.info.simulated(), True
        return self.info

    def requested(self, column: int) -> IntArray:
        requested = self.info.requested
        basic = (requested.milli_cpu, requested.memory, requested.ephemeral_storage)
        if column < len(basic):
            return np.array([basic[column]], np.int64)
        return np.array([requested.scalar.get(self._columns.resources.names[column], 0)], np.int64)

    @property
    def basic_requested(self) -> IntArray:
        requested = self.info.requested
        return np.array(
            [[requested.milli_cpu], [requested.memory], [requested.ephemeral_storage]], np.int64
        )

    @property
    def basic_allocatable(self) -> IntArray:
        return self._columns.block[ALLOCATABLE, self.row : self.row + 1]

    def non_zero_requested(self, column: int) -> IntArray:
        return np.array([(self.info.non_zero_cpu, self.info.non_zero_memory)[column]], np.int64)

    @property
    def pod_count(self) -> IntArray:
        return np.array([len(self.info.pods)], np.int64)

    def infos(self) -> list[NodeInfo]:
        return [self.info]

    @property
    def has_affinity(self) -> BoolArray:
        return np.array([bool(self.info.pods_with_affinity)])

    @property
    def has_required_anti_affinity(self) -> BoolArray:
        return np.array([bool(self.info.pods_with_required_anti_affinity)])

    def tracked(
        self,
        key: Hashable,
        depends: Depends,
        compute: "Callable[[Nodes], npt.NDArray[Any]]",
        *,
        is_large: bool = False,
    ) -> npt.NDArray[Any]:
        if depends is Depends.NODE:
            return super().tracked(key, depends, compute, is_large=is_large)
        # The kept array has the pods of the snapshot, not the simulated ones.
        return compute(self)
