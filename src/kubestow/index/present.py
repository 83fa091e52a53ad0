"""Which label keys the nodes of a snapshot have.

A pod may name thousands. The column of one takes a pass over all nodes; one that no node has needs
none.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

_NO_KEYS: Final[Mapping[str, str]] = {}
# A key that at most this many nodes have is rare.
_FEW_ROWS: Final = 16


class LabelKeys(Follower):
    """The label keys with the number of rows that have each: `snapshot.derived(LabelKeys)`."""

    __slots__ = ("_counts", "_keys", "_rare", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self._counts: dict[str, int] = {}
        # By row, what is counted.
        self._keys: list[Mapping[str, str]] = []
        # The rows of rare keys, found in one pass over all labels when one is read.
        self._rare: dict[str, list[int]] | None = None
        self._read_all()

    def present(self) -> Mapping[str, int]:
        """The keys that some node has, as of now."""
        self.catch_up()
        return self._counts

    def few_rows(self, key: str) -> list[int] | None:
        """The rows that have a rare key; None if it is not rare.

        A pod may name thousands of keys that one node has.
        """
        self.catch_up()
        if self._counts.get(key, 0) > _FEW_ROWS:
            return None
        rare = self._rare
        if rare is None:
            rare = self._rare = {}
            for row, keys in enumerate(self._keys):
                for each in keys:
                    if self._counts[each] <= _FEW_ROWS:
                        rare.setdefault(each, []).append(row)
        return rare.get(key, [])

    def rows_moved(self, sources: Sources | None) -> None:
        self._rare = None
        if sources is None:
            self._read_all()
            return
        for source in sources:
            kept = [row for row in source.tolist() if row >= 0]
            if len(set(kept)) != len(kept):
                self._read_all()  # One row became two.
                return
            keys = self._keys
            for row in set(range(len(keys))).difference(kept):
                self._count(keys[row], -1)
            self._keys = [keys[row] if row >= 0 else _NO_KEYS for row in source.tolist()]

    def nodes_changed(self, rows: "array[int]") -> None:
        for row in set(rows):
            old, new = self._keys[row], self._snapshot.nodes[row].metadata.labels
            if old.keys() != new.keys():
                self._rare = None
                self._count(old, -1)
                self._count(new, 1)
            self._keys[row] = new

    def _read_all(self) -> None:
        self._rare = None
        self._keys = [node.metadata.labels for node in self._snapshot.nodes]
        self._counts = Counter(chain.from_iterable(self._keys))

    def _count(self, keys: Iterable[str], change: int) -> None:
        counts = self._counts
        for key in keys:
            count = counts.get(key, 0) + change
            if count:
                counts[key] = count
            else:
                del counts[key]
