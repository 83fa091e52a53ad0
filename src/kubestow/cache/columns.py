"""The numbers of all nodes as arrays: one row per node, one contiguous run per resource.

Plugins compare a pod with every node at once. Resources come first in the shape
(`int64[resource, row]`): a comparison of one resource over all nodes reads memory in order.

Invariant: all arrays share one row order, the visiting order of the snapshot.
Not here: when a row is rewritten (`snapshot`), arrays that only some pods need (`tracked`).
"""

from typing import Final

import numpy as np

from kubestow.api.node import Node, Taint
from kubestow.arrays import BoolArray, IdArray, IntArray
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.numbering import numbered_max
from kubestow.cache.resource_columns import ResourceColumns, ResourceIndex

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2

# Where the basic numbers lie in the block.
REQUESTED: Final = slice(0, 3)
ALLOCATABLE: Final = slice(3, 6)
NON_ZERO: Final = slice(6, 8)
POD_COUNT: Final = 8
ALLOWED_PODS: Final = 9
_BLOCK_HEIGHT: Final = 10


class TaintSets:
    """Distinct taint lists, numbered: clusters have few, so taint rules are evaluated per list."""

    def __init__(self) -> None:
        self._ids: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}
        self.lists: list[tuple[Taint, ...]] = [()]

    def id_of(self, taints: tuple[Taint, ...]) -> int:
        key = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = len(self.lists)
            self.lists.append(taints)
        return number


class Columns:
    """The arrays every cycle reads.

    The basic numbers are rows of one block, so that one operation picks those of some nodes.

    requested      int64[resource, row]   sums of what the pods on the node request
    allocatable    int64[resource, row]   0 where the node lacks the resource
    non_zero       int64[2, row]          cpu and memory with defaults for what is not requested
    pod_count, allowed_pods   int64[row]
    unschedulable, has_affinity, has_required_anti_affinity   bool[row]
    affinity_rows  how many rows have affinity
    taint_set      int32[row]             index into `taint_sets.lists`
    features       int64[row]             declared features as bits
    """

    def __init__(self) -> None:
        self.resources = ResourceIndex()
        self._resources_max = numbered_max(len(self.resources))
        self.taint_sets = TaintSets()
        self._allocate(0)

    def _allocate(self, rows: int) -> None:
        self.block: IntArray = np.zeros((_BLOCK_HEIGHT, rows), np.int64)
        self.requested = ResourceColumns(self.resources, self.block[REQUESTED])
        self.allocatable = ResourceColumns(self.resources, self.block[ALLOCATABLE])
        self._point_into_block()
        self.unschedulable: BoolArray = np.zeros(rows, np.bool_)
        self.has_affinity: BoolArray = np.zeros(rows, np.bool_)
        self.affinity_rows = 0
        self.has_required_anti_affinity: BoolArray = np.zeros(rows, np.bool_)
        self.taint_set: IdArray = np.zeros(rows, np.int32)
        self.features: IntArray = np.zeros(rows, np.int64)

    def _point_into_block(self) -> None:
        self.non_zero: IntArray = self.block[NON_ZERO]
        self.pod_count: IntArray = self.block[POD_COUNT]
        self.allowed_pods: IntArray = self.block[ALLOWED_PODS]
        # The rows that `write_sums` fills: a single number is written faster in this form.
        self._sums = [
            numbers.data
            for numbers in (*self.block[REQUESTED], *self.block[NON_ZERO], self.pod_count)
        ]

    def __len__(self) -> int:
        return self.block.shape[1]

    def reorder(self, source: np.ndarray[tuple[int], np.dtype[np.intp]]) -> None:
        """Row i becomes what was row `source[i]`; where that is -1 the caller has to write it."""
        if len(self) == 0:
            self._allocate(len(source))
            return
        self.block = self.block.take(source, axis=1)
        self.requested.reorder(source, self.block[REQUESTED])
        self.allocatable.reorder(source, self.block[ALLOCATABLE])
        self._point_into_block()
        for name in (
            "unschedulable",
            "has_affinity",
            "has_required_anti_affinity",
            "taint_set",
            "features",
        ):
            setattr(self, name, getattr(self, name)[source])
        self.affinity_rows = int(np.count_nonzero(self.has_affinity))

    def write_node(self, row: int, info: NodeInfo, node: Node) -> None:
        """Copy what comes from the Node object."""
        if len(self.resources) > self._resources_max:
            self._renumber_resources()
        if len(self.taint_sets.lists) > numbered_max(len(self)):
            self._renumber_taints()
        self.allocatable.write(row, info.allocatable)
        self.allowed_pods[row] = info.allocatable.allowed_pods
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_set[row] = self.taint_sets.id_of(node.spec.taints)
        self.features[row] = info.declared_features

    def write_pods(self, row: int, info: NodeInfo) -> None:
        """Copy what comes from the pods on the node."""
        self.write_sums(row, info)
        has_affinity = bool(info.pods_with_affinity)
        # As a Python bool: comparing one with a NumPy bool takes a microsecond.
        had_affinity = self.has_affinity.item(row)
        if has_affinity is not had_affinity:
            self.has_affinity[row] = has_affinity
            self.affinity_rows += 1 if has_affinity else -1
        if has_affinity or had_affinity:
            required = bool(info.pods_with_required_anti_affinity)
            self.has_required_anti_affinity[row] = required

    def write_sums(self, row: int, info: NodeInfo) -> None:
        """Copy the sums over the pods on the node, and nothing else."""
        cpu, memory, ephemeral_storage, non_zero_cpu, non_zero_memory, pod_count = self._sums
        requested = info.requested
        cpu[row] = requested.milli_cpu
        memory[row] = requested.memory
        ephemeral_storage[row] = requested.ephemeral_storage
        non_zero_cpu[row] = info.non_zero_cpu
        non_zero_memory[row] = info.non_zero_memory
        pod_count[row] = len(info.pods)
        if requested.scalar or row in self.requested.columns_of_row:
            self.requested.write_scalars(row, requested.scalar)

    def _renumber_resources(self) -> None:
        self.resources = ResourceIndex()
        self.requested.renumber(self.resources)
        self.allocatable.renumber(self.resources)
        self._resources_max = numbered_max(len(self.resources))

    def _renumber_taints(self) -> None:
        lists, self.taint_sets = self.taint_sets.lists, TaintSets()
        numbers: IdArray = np.zeros(len(lists), np.int32)
        in_use: list[int] = np.unique(self.taint_set).tolist()
        for number in in_use:
            numbers[number] = self.taint_sets.id_of(lists[number])
        self.taint_set = numbers[self.taint_set]
