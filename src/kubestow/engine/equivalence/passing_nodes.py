"""Which nodes pass all filters, kept from pod to pod.

Where the verdicts of one pod hold for the next but for the nodes that changed, the search in
visiting order is a step in a sorted list of rows, however many nodes are rejected on the way.

Making the list costs all nodes, a search without it the nodes that are looked at. So it is made
once the searches that it would have saved have cost as much (as in `records`).
"""

from array import array
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final, Protocol

import numpy as np

from kubestow.arrays import ALL_ROWS, IntpArray, Rows, smallest
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.runner import Verdicts
from kubestow.index.follow import Follower, Sources

# Up to this many changed rows, one by one is faster than all together.
_ROWS_FEW: Final = 32

# What a search without a list pays however few nodes it looks at, in rows of a list.
_SEARCH_OVERHEAD_ROWS: Final = 5_000

# For how many bases of verdicts lists are kept; the least recently used is dropped. As zones fill
# up in turn the same few come again and again.
BASES_MAX: Final = 8


class RowVerdicts(Protocol):
    """Where the verdicts come from: the attempt that needs the list."""

    def verdicts(self, rows: Rows) -> Verdicts: ...

    def first_failure(self, row: int) -> tuple[int, int]:
        """The index of the first filter to reject the row's node, or PASSED, and its code."""
        ...


class PassingNodes(Follower):
    """The rows that pass, for attempts whose verdicts have the same basis (`framework.reuse`).

    is_usable   at least one passes, and no filter failed on a node: a search ends at that node
    """

    # The position of the first row that the last search left.
    _next = 0

    def __init__(self, snapshot: Snapshot, source: RowVerdicts) -> None:
        super().__init__(snapshot.log, Depends.PODS)
        self._source = source
        self._read_all()
        self.is_usable = self._count > 0 and not self._has_errors
        del self._source

    def refresh(self, source: RowVerdicts) -> None:
        """Bring the list up to date with the verdicts of this attempt."""
        self._source = source
        try:
            self.catch_up()
            self.is_usable = self._count > 0 and not self._has_errors
        finally:
            # The source refers to the list: records that it refers to would not be freed at once.
            del self._source

    def take(self, first: int, wanted: int) -> tuple[slice | IntpArray, int]:
        """The first `wanted` rows that pass, from row `first` on and round, and how many rows are
        looked at for it: up to the next one that passes."""
        rows, items, count, position = self._rows, self._items, self._count, self._next
        # Mostly the search goes on where the last one ended.
        if position >= count or items[position] != first:
            position = int(rows[:count].searchsorted(first))
        end = self._next = position + wanted
        if end < count:
            start = items[position]
            if items[end - 1] - start == wanted - 1:
                return slice(start, start + wanted), items[end] - first
            # A copy, since the list changes in place.
            return rows[position:end].copy(), items[end] - first
        if wanted >= count:
            return np.concatenate((rows[position:count], rows[:position])), len(rows)
        end = self._next = end - count
        found = np.concatenate((rows[position:count], rows[:end]))
        return found, items[end] + len(rows) - first

    def rejected_counts(self, first: int, evaluated: int, found: int) -> Mapping[int, int]:
        """How many of these rows each filter rejects, by its index; `found` of them pass."""
        counts, failed_by = self._counts, self._failed_by
        if evaluated == len(failed_by):
            return counts
        left, beyond = evaluated - found, max(first + evaluated - len(failed_by), 0)
        rejected: dict[int, int] = {}
        *others, last = counts or (PASSED,)
        for index in others:
            count = np.count_nonzero(failed_by[first : first + evaluated] == index)
            if beyond:
                count += np.count_nonzero(failed_by[:beyond] == index)
            rejected[index] = int(count)
            left -= int(count)
        rejected[last] = left
        return rejected

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self._read_all()

    def pods_changed(self, rows: "array[int]") -> None:
        if len(rows) <= _ROWS_FEW:
            for row in rows:
                self._enter(row)
            return
        changed = np.array(rows, np.intp)
        found = self._source.verdicts(changed)
        if (found.failed_by != self._failed_by[changed]).any():
            self._failed_by[changed] = found.failed_by
            self._list(found)

    def _read_all(self) -> None:
        found = self._source.verdicts(ALL_ROWS)
        self._failed_by = found.failed_by.copy()
        self._has_errors = False
        self._list(found)

    def _list(self, found: Verdicts) -> None:
        self._has_errors |= smallest(found.codes) < 0
        failed_by = self._failed_by
        passing = np.flatnonzero(failed_by == PASSED)
        self._rows = np.zeros(len(failed_by), np.intp)
        # The same as plain numbers.
        self._items = self._rows.data
        self._rows[: len(passing)] = passing
        self._count = len(passing)
        counts: list[int] = np.bincount(failed_by[failed_by >= 0]).tolist()
        self._counts = {index: count for index, count in enumerate(counts) if count}

    def _enter(self, row: int) -> None:
        after, code = self._source.first_failure(row)
        before = self._failed_by.item(row)
        if before == after:
            return
        self._failed_by[row] = after
        self._has_errors |= code < 0
        self._tally(before, -1)
        self._tally(after, 1)
        rows, count = self._rows, self._count
        if before == PASSED:
            position = int(rows[:count].searchsorted(row))
            rows[position : count - 1] = rows[position + 1 : count]
            self._count -= 1
            self._next -= position < self._next
        elif after == PASSED:
            position = int(rows[:count].searchsorted(row))
            rows[position + 1 : count + 1] = rows[position:count]
            rows[position] = row
            self._count += 1
            self._next += position <= self._next

    def _tally(self, index: int, change: int) -> None:
        if index != PASSED:
            count = self._counts.get(index, 0) + change
            if count:
                self._counts[index] = count
            else:
                del self._counts[index]


class PassingBook:
    """The lists of pods with the same frame and record, or with none, by the basis of verdicts."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._last: _Entry | None = None

    def searched(self, evaluated_count: int) -> None:
        """The last search had no list, and looked at this many nodes."""
        if self._last is not None:
            self._last.paid_rows += evaluated_count + _SEARCH_OVERHEAD_ROWS

    def forget(self) -> None:
        """Verdicts are others, also on rows that have not changed: make lists again."""
        for entry in self._entries.values():
            entry.nodes = None

    def find(
        self,
        basis: Hashable,
        snapshot: Snapshot,
        source: RowVerdicts,
        state: Hashable = None,
    ) -> PassingNodes | None:
        """The list, up to date; None if it does not pay yet, or must not be used.

        `state` is another one whenever verdicts may have changed; None if that is not known.
        """
        entry = self._last
        if entry is None or entry.basis != basis:
            entry = self._last = self._entry(basis)
        nodes = entry.nodes
        if nodes is not None:
            if state is not None and state == entry.state:
                return nodes if nodes.is_usable else None
            nodes.refresh(source)
        elif entry.paid_rows >= len(snapshot):
            nodes = entry.nodes = PassingNodes(snapshot, source)
        entry.state = state
        return nodes if nodes is not None and nodes.is_usable else None

    def _entry(self, basis: Hashable) -> "_Entry":
        entry = self._entries.get(basis)
        if entry is None:
            entry = self._entries[basis] = _Entry(basis)
            if len(self._entries) > BASES_MAX:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(basis)
        return entry


class _Entry:
    """A list, or what was paid for searches without it; of verdicts in that state, if known."""

    __slots__ = ("basis", "nodes", "paid_rows", "state")

    def __init__(self, basis: Hashable) -> None:
        self.basis = basis
        self.nodes: PassingNodes | None = None
        self.paid_rows = 0
        self.state: Hashable = None
