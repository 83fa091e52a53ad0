"""Which nodes of a snapshot have an image, and its numbers there.

Nodes have many images and pods name many of them. Looking for each name on every node would take a
pass over all nodes per name; here one pass serves all names. Nodes that change later are few, and
are looked at one by one until the pass is repeated.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.arrays import FloatArray, IdArray, IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.images import ImageState
from kubestow.cache.numbering import Numbers
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

# Beyond this many changed nodes, or a sixteenth of them, all nodes are read again.
CHANGED_MAX: Final = 64
# Up to this many rows, one by one is faster than all nodes.
_ROWS_FEW: Final = 8


# What an image counts, by its size and by how many nodes had it.
Scale = Callable[[FloatArray, FloatArray], IntArray]


class ImageColumn(NamedTuple):
    """One image on some nodes. Its numbers may differ between nodes (spec 05 §10).

    ids           int32[node], index into the numbers; 0, which stands for none, where it is absent
    sizes         float64[id], in bytes
    node_counts   float64[id], how many nodes had the image
    """

    ids: IdArray
    sizes: FloatArray
    node_counts: FloatArray


class ImageRows(Follower):
    """Get it with `snapshot.derived(ImageRows)`.

    _rows, _states   int32[entry], a row and the number of an image's state that it had when read
    _changed         the rows that have changed since, with their images by name
    _names           the images that some node has, or had since all were read
    """

    __slots__ = (
        "_changed",
        "_known",
        "_names",
        "_numbers_of",
        "_rows",
        "_snapshot",
        "_states",
    )

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self._names: frozenset[str] = frozenset()
        self._read_all()

    def names(self) -> frozenset[str]:
        """The images that some node has, and perhaps some that none has any more. The same object
        as long as they are the same."""
        log = self._log
        # Read for every pod: nothing is called while there is nothing to read.
        if self._node_end != log.node_end or self._epoch != log.epoch:
            self.catch_up()
        return self._names

    def column(self, image: str, rows: Rows) -> ImageColumn | None:
        """The image on these rows; None if no node has it."""
        self.catch_up()
        changed = self._changed
        numbers = self._numbers_of.get(image)
        if numbers is None:
            if not any(image in images for images in changed.values()):
                return None
            numbers = []
        if not isinstance(rows, slice) and len(rows) <= _ROWS_FEW:
            return self._few(image, rows.tolist())
        states = [self._known[number] for number in numbers]
        ids = self._laid_out(numbers)
        for row, images in changed.items():
            ids[row] = 0
            if image in images:
                states.append(images[image])
                ids[row] = len(states)
        return _column(ids[rows], states)

    def sums(self, counts: Mapping[str, int], scale: Scale, rows: Rows) -> IntArray:
        """int64[node]: the scaled sizes of the images that each node has, times their counts.

        For very many images: one pass over all that nodes have, not one for each.
        """
        self.catch_up()
        weights = np.zeros(len(self._known), np.int64)
        named = [
            (number, count)
            for image, count in counts.items()
            for number in self._numbers_of.get(image, ())
        ]
        states = [self._known[number] for number, _ in named]
        if named:
            multiples = np.array([count for _, count in named], np.int64)
            weights[[number for number, _ in named]] = multiples * _scaled(states, scale)
        sums = np.zeros(len(self._snapshot), np.int64)
        np.add.at(sums, self._rows, weights[self._states])
        for row, images in self._changed.items():
            states = [images[image] for image in images if image in counts]
            multiples = np.array([counts[state.name] for state in states], np.int64)
            sums[row] = (multiples * _scaled(states, scale)).sum()
        return sums[rows]

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
        tables = self._snapshot.images
        few = max(CHANGED_MAX, len(tables) // 16)
        if len(rows) > few:
            self._read_all()
            return
        for row in rows:
            images = self._changed[row] = {state.name: state for state in tables[row]}
            if not images.keys() <= self._names:
                self._names |= images.keys()
        if len(self._changed) > few:
            self._read_all()

    def _move(self, moved: npt.NDArray[np.int32]) -> None:
        """Row r is now row `moved[r]`; it is gone if that is negative or beyond the end."""
        within = self._rows < len(moved)
        rows, states = moved[self._rows[within]], self._states[within]
        self._rows, self._states = rows[rows >= 0], states[rows >= 0]
        targets = (
            (int(moved[row]), images) for row, images in self._changed.items() if row < len(moved)
        )
        self._changed = {row: images for row, images in targets if row >= 0}

    def _read_all(self) -> None:
        tables = self._snapshot.images
        counts = np.fromiter(map(len, tables), np.int64, len(tables))
        self._rows: IdArray = np.repeat(np.arange(len(tables), dtype=np.int32), counts)
        numbers = Numbers[ImageState]()
        states = map(numbers.__getitem__, chain.from_iterable(tables))
        self._states: IdArray = np.fromiter(states, np.int32, len(self._rows))
        self._known: list[ImageState] = list(numbers)
        self._numbers_of: dict[str, list[int]] = {}
        for state, number in numbers.items():
            self._numbers_of.setdefault(state.name, []).append(number)
        self._changed: dict[int, dict[str, ImageState]] = {}
        if self._numbers_of.keys() != self._names:
            self._names = frozenset(self._numbers_of)

    def _few(self, image: str, rows: list[int]) -> ImageColumn:
        """The column of a few rows, as where nodes changed: they are looked at one by one."""
        ids: IdArray = np.zeros(len(rows), np.int32)
        states: list[ImageState] = []
        for place, row in enumerate(rows):
            for state in self._snapshot.images[row]:
                if state.name == image:
                    states.append(state)
                    ids[place] = len(states)
        return _column(ids, states)

    def _laid_out(self, numbers: list[int]) -> IdArray:
        """int32[row]: 1 + the position of the row's state among these, as it was read; else 0."""
        ids: IdArray = np.zeros(len(self._snapshot), np.int32)
        if len(numbers) == 1:
            ids[self._rows[self._states == numbers[0]]] = 1
        elif numbers:
            positions: IdArray = np.zeros(len(self._known), np.int32)
            positions[numbers] = np.arange(1, len(numbers) + 1)
            found = positions[self._states]
            entries = found.nonzero()[0]
            ids[self._rows[entries]] = found[entries]
        return ids


def _scaled(states: Sequence[ImageState], scale: Scale) -> IntArray:
    sizes = np.array([state.size for state in states], np.float64)
    return scale(sizes, np.array([state.node_count for state in states], np.float64))


def _column(ids: IdArray, states: list[ImageState]) -> ImageColumn:
    sizes = np.array([0, *(state.size for state in states)], np.float64)
    node_counts = np.array([0, *(state.node_count for state in states)], np.float64)
    return ImageColumn(ids, sizes, node_counts)
