"""Which label keys, and which images, the nodes of a snapshot have.

A pod may name thousands of either. The array of one takes a pass over all nodes; one that no node
has needs none.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

_NO_NAMES: Final[Iterable[str]] = ()


class PresentNames(Follower):
    """Names that the rows of one snapshot have, with the number of rows."""

    __slots__ = ("_counts", "_names", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self._counts: dict[str, int] = {}
        # By row, what is counted.
        self._names: list[Iterable[str]] = []
        self._read_all()

    def present(self) -> Mapping[str, int]:
        """The names that some node has, as of now."""
        self.catch_up()
        return self._counts

    def names_of(self, row: int) -> Iterable[str]:
        """The names that the row has; the same object is never changed."""
        raise NotImplementedError

    def names_of_all(self) -> list[Iterable[str]]:
        """The names of each row."""
        raise NotImplementedError

    def rows_moved(self, sources: Sources | None) -> None:
        if sources is None:
            self._read_all()
            return
        for source in sources:
            kept = [row for row in source.tolist() if row >= 0]
            if len(set(kept)) != len(kept):
                self._read_all()  # One row became two.
                return
            names = self._names
            for row in set(range(len(names))).difference(kept):
                self._count(names[row], -1)
            self._names = [names[row] if row >= 0 else _NO_NAMES for row in source.tolist()]

    def nodes_changed(self, rows: "array[int]") -> None:
        for row in set(rows):
            self._count(self._names[row], -1)
            self._names[row] = self.names_of(row)
            self._count(self._names[row], 1)

    def _read_all(self) -> None:
        self._names = self.names_of_all()
        self._counts = Counter(chain.from_iterable(self._names))

    def _count(self, names: Iterable[str], change: int) -> None:
        counts = self._counts
        for name in names:
            count = counts.get(name, 0) + change
            if count:
                counts[name] = count
            else:
                del counts[name]


class LabelKeys(PresentNames):
    """The label keys of the nodes: `snapshot.derived(LabelKeys)`."""

    __slots__ = ()

    def names_of(self, row: int) -> Iterable[str]:
        return self._snapshot.nodes[row].metadata.labels

    def names_of_all(self) -> list[Iterable[str]]:
        return [node.metadata.labels for node in self._snapshot.nodes]


class ImageNames(PresentNames):
    """The images on the nodes: `snapshot.derived(ImageNames)`."""

    __slots__ = ()

    def names_of(self, row: int) -> Iterable[str]:
        return self._snapshot.images[row]

    def names_of_all(self) -> list[Iterable[str]]:
        return [*self._snapshot.images]
