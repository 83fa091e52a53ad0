"""Which nodes of a snapshot have an image.

Nodes have many images and pods name many of them. Looking for each name on every node would take a
pass over all nodes per name; here one pass serves all names. Nodes that change later are few, and
are looked at one by one until the pass is repeated.
"""

from array import array
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IdArray
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

# Beyond this many changed nodes, or a sixteenth of them, all nodes are read again.
CHANGED_MAX: Final = 64


class ImageRows(Follower):
    """Get it with `snapshot.derived(ImageRows)`.

    _rows, _images   int32[entry], a row and the number of an image that it had when it was read
    _changed         the rows that have changed since
    """

    __slots__ = ("_changed", "_images", "_numbers", "_rows", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self._read_all()

    def may_have(self, image: str) -> bool:
        """Whether some node has the image; possibly one that had it."""
        self.catch_up()
        tables = self._snapshot.images
        return image in self._numbers or any(image in tables[row] for row in self._changed)

    def rows_with(self, image: str) -> list[int]:
        """The rows that have the image now, in no particular order."""
        self.catch_up()
        number, changed = self._numbers.get(image), self._changed
        found: list[int] = [] if number is None else self._rows[self._images == number].tolist()
        if changed:
            tables = self._snapshot.images
            found = [row for row in found if row not in changed]
            found += [row for row in changed if image in tables[row]]
        return found

    def rows_moved(self, sources: Sources | None) -> None:
        for source in sources or ():
            kept = np.flatnonzero(source >= 0)
            old = source[kept]
            moved: npt.NDArray[np.int32] = np.full(int(old.max(initial=-1)) + 1, -1, np.int32)
            moved[old] = kept
            if np.count_nonzero(moved >= 0) != len(kept):
                sources = None  # One row became two.
                break
            self._move(moved)
        if sources is None:
            self._read_all()

    def nodes_changed(self, rows: "array[int]") -> None:
        self._changed.update(rows)
        if len(self._changed) > max(CHANGED_MAX, len(self._snapshot) // 16):
            self._read_all()

    def _move(self, moved: npt.NDArray[np.int32]) -> None:
        """Row r is now row `moved[r]`; it is gone if that is negative or beyond the end."""
        within = self._rows < len(moved)
        rows, images = moved[self._rows[within]], self._images[within]
        self._rows, self._images = rows[rows >= 0], images[rows >= 0]
        targets = (int(moved[row]) for row in self._changed if row < len(moved))
        self._changed = {row for row in targets if row >= 0}

    def _read_all(self) -> None:
        tables = self._snapshot.images
        names = list(chain.from_iterable(tables))
        self._numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        counts = np.fromiter(map(len, tables), np.int64, len(tables))
        self._rows: IdArray = np.repeat(np.arange(len(tables), dtype=np.int32), counts)
        self._images: IdArray = np.fromiter(
            map(self._numbers.__getitem__, names), np.int32, len(names)
        )
        self._changed: set[int] = set()
