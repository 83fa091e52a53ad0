"""Values computed once per node, that hold until the node or its devices change.

Nodes have a number here, their slot, which stays the same when the rows of the snapshot are
reordered; so arrays by slot stay as they are.
"""

from array import array
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from kubestow.api.node import Node
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import ChangeLog, Depends
from kubestow.cache.numbering import numbered_max
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes

S = TypeVar("S", bound=np.generic)


NOTED_MAX: Final = 65_536  # changes kept; a reader that is further behind reads all nodes again


class NodeSlots:
    """The numbers of nodes. A deleted node keeps its number, in case it is added again, until there
    are many of them: then all nodes are renumbered, and nothing that is kept holds.

    `log` has the slots whose node or devices changed.
    """

    def __init__(self) -> None:
        self.log = ChangeLog()
        self._numbering = 0
        self._by_name: dict[str, int] = {}
        self._nodes: list[Node] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, slot: int) -> Node:
        """The node as it was last seen."""
        return self._nodes[slot]

    def find(self, name: str) -> int | None:
        return self._by_name.get(name)

    def note(self, name: str) -> None:
        """Devices of the node changed; a node without a slot has nothing to recompute."""
        slot = self._by_name.get(name)
        if slot is not None:
            self.log.note_node(slot)
            self.log.trim(NOTED_MAX)

    def of(self, nodes: Nodes) -> IntArray:
        """int64[node]: the slot of each node. Nodes that changed are noted as such."""
        slots = self._tracked(nodes)
        if len(self._nodes) > numbered_max(len(nodes.snapshot)):
            self._by_name.clear()
            self._nodes.clear()
            self._numbering += 1
            self.log.invalidate()
            slots = self._tracked(nodes)
        return slots

    def _tracked(self, nodes: Nodes) -> IntArray:
        return nodes.tracked((self, self._numbering), Depends.NODE, self._compute)

    def _compute(self, nodes: Nodes) -> IntArray:
        return np.array([self._slot(node) for node in nodes.node_objects()], np.int64)

    def _slot(self, node: Node) -> int:
        name = node.metadata.name
        slot = self._by_name.get(name)
        if slot is None:
            slot = self._by_name[name] = len(self._nodes)
            self._nodes.append(node)
            return slot
        known = self._nodes[slot]
        if known is not node:
            self._nodes[slot] = node
            if _differ(known, node):
                self.note(name)
        return slot


def _differ(first: Node, second: Node) -> bool:
    """Whether they differ in what device rules read: labels, or what a device plugin offers."""
    return (
        first.metadata.labels != second.metadata.labels
        or first.status.allocatable != second.status.allocatable
    )


class KeptPerNode(Follower):
    """Base of arrays by slot: `is_known` marks the nodes for which they still hold."""

    def __init__(self, slots: NodeSlots) -> None:
        super().__init__(slots.log, Depends.NODE)
        self._slots = slots
        self.is_known: BoolArray = np.zeros(0, np.bool_)

    def missing(self, slots: IntArray) -> list[int]:
        """Which of the slots have to be computed (again)."""
        self.catch_up()
        if len(self.is_known) < len(self._slots):
            self.is_known = grown(self.is_known, len(self._slots))
            self._grow(len(self._slots))
        return slots[~self.is_known[slots]].tolist()

    def rows_moved(self, sources: Sources | None) -> None:
        self.is_known[:] = False

    def nodes_changed(self, rows: "array[int]") -> None:
        for slot in rows:
            if slot < len(self.is_known):
                self.is_known[slot] = False

    def _grow(self, size: int) -> None:
        """Extend all other arrays to `size` slots."""


def grown(values: npt.NDArray[S], size: int) -> npt.NDArray[S]:
    """A longer copy, with zeros at the end."""
    larger = np.zeros(size, values.dtype)
    larger[: len(values)] = values
    return larger
