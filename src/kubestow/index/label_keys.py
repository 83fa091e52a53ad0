"""Which label keys the nodes of a snapshot have.

A pod may name thousands of keys. The column of a key takes a pass over all nodes; one that no node
has needs none: every node reads as without the label.
"""

from array import array
from collections.abc import Mapping
from typing import Final

from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

_NO_LABELS: Final[Mapping[str, str]] = {}


class LabelKeys(Follower):
    """The keys of one snapshot, with the number of rows: `snapshot.derived(LabelKeys)`."""

    __slots__ = ("_counts", "_labels", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self._counts: dict[str, int] = {}
        # By row, what is counted.
        self._labels: list[Mapping[str, str]] = []
        self._read_all()

    def present(self) -> Mapping[str, int]:
        """The keys that some node has, as of now."""
        self.catch_up()
        return self._counts

    def rows_moved(self, sources: Sources | None) -> None:
        if sources is None:
            self._read_all()
            return
        for source in sources:
            kept = [row for row in source.tolist() if row >= 0]
            if len(set(kept)) != len(kept):
                self._read_all()  # One row became two.
                return
            for row in set(range(len(self._labels))).difference(kept):
                self._count(self._labels[row], -1)
            labels = self._labels
            self._labels = [labels[row] if row >= 0 else _NO_LABELS for row in source.tolist()]

    def nodes_changed(self, rows: "array[int]") -> None:
        for row in set(rows):
            self._count(self._labels[row], -1)
            self._labels[row] = self._snapshot.nodes[row].metadata.labels
            self._count(self._labels[row], 1)

    def _read_all(self) -> None:
        self._counts.clear()
        self._labels = [node.metadata.labels for node in self._snapshot.nodes]
        for labels in self._labels:
            self._count(labels, 1)

    def _count(self, labels: Mapping[str, str], change: int) -> None:
        counts = self._counts
        for key in labels:
            count = counts.get(key, 0) + change
            if count:
                counts[key] = count
            else:
                del counts[key]
