"""Arrays over the rows of a snapshot that are brought up to date only when they are read.

A label key, a selector, a host port or an image matters to some pods only. Its array is made at the
first read; later reads compute only the changed rows again, by the same function.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from itertools import islice
from typing import Any, Final, Generic, TypeVar
from weakref import WeakMethod

import numpy as np
import numpy.typing as npt

from kubestow.api.labels import Requirement, parse_int64
from kubestow.arrays import ALL_ROWS, BoolArray, IdArray, IntArray, Rows, pick
from kubestow.cache.change_log import ChangeLog, Depends
from kubestow.cache.numbering import Numbers, numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

A = TypeVar("A", bound=np.generic)

# How many arrays are kept for selectors, ports and images, the most recently used ones.
TRACKED_MAX: Final = 2048
# How many of those whose key alone may take megabytes: an attempt reads a few of them often.
LARGE_TRACKED_MAX: Final = 8

# How many label keys have a column, the most recently used ones. Any pod may name a key.
LABEL_COLUMNS_MAX: Final = 512


class Tracked(Follower, Generic[A]):
    """One such array. `compute(rows)` returns the current values of these rows in a new array.

    The last axis is the row; there may be others before it.
    """

    __slots__ = ("_compute", "_values")

    def __init__(
        self, log: ChangeLog, depends: Depends, compute: Callable[[Rows], npt.NDArray[A]]
    ) -> None:
        super().__init__(log, depends)
        self._compute = compute
        self._values = compute(ALL_ROWS)

    def values(self) -> npt.NDArray[A]:
        """The array over all rows, up to date. Read-only for the caller."""
        self.catch_up()
        return self._values

    def recompute(self, rows: Rows) -> None:
        """Compute these rows again, in place: for changes of what `compute` reads elsewhere."""
        self._values[..., rows] = self._compute(rows)

    def rows_moved(self, sources: Sources | None) -> None:
        for source in sources or ():
            if self._values.shape[-1] == 0:
                sources = None  # There is no value to gather for the new rows.
                break
            self._values = self._values[..., source]
        if sources is None:
            self._values = self._compute(ALL_ROWS)

    def nodes_changed(self, rows: "array[int]") -> None:
        if self._depends is Depends.NODE:
            self._compute_again(rows)

    def pods_changed(self, rows: "array[int]") -> None:
        self._compute_again(rows)

    def _compute_again(self, rows: "array[int]") -> None:
        distinct = dict.fromkeys(rows)  # A row is listed once per change.
        if are_most(distinct, self._values.shape[-1]):
            self._values = self._compute(ALL_ROWS)
        else:
            self.recompute(np.array([*distinct], np.intp))


def by_owner(method: Callable[[Rows], npt.NDArray[A]]) -> Callable[[Rows], npt.NDArray[A]]:
    """`compute` for an array that the object of this method owns.

    The array does not refer to its owner: two objects that refer to each other are freed by the
    garbage collector alone, which rarely looks at objects that have lived for long.
    """
    reference = WeakMethod(method)

    def compute(rows: Rows) -> npt.NDArray[A]:
        owned_by = reference()
        assert owned_by is not None, "an array outlived its owner"
        return owned_by(rows)

    return compute


def are_most(rows: Sized, row_count: int) -> bool:
    """Whether enough rows changed that computing all of them is faster."""
    return len(rows) * 2 > row_count


class TrackedArrays:
    """The arrays of one snapshot by key: `snapshot.derived(TrackedArrays)`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._log = snapshot.log
        self._arrays: OrderedDict[Hashable, Tracked[Any]] = OrderedDict()
        self._large: OrderedDict[Hashable, Tracked[Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._arrays) + len(self._large)

    def values(
        self,
        key: Hashable,
        depends: Depends,
        compute: Callable[[Rows], npt.NDArray[Any]],
        *,
        is_large: bool = False,
    ) -> npt.NDArray[Any]:
        """The array under this key over all rows, made by `compute`, up to date."""
        arrays = self._large if is_large else self._arrays
        tracked = arrays.get(key)
        if tracked is None:
            tracked = arrays[key] = Tracked[Any](self._log, depends, compute)
            if len(arrays) > (LARGE_TRACKED_MAX if is_large else TRACKED_MAX):
                arrays.popitem(last=False)
        else:
            arrays.move_to_end(key)
        return tracked.values()


class LabelColumn:
    """The values of one label key: a small number per row, 0 where the label is absent."""

    def __init__(self, snapshot: Snapshot, key: str) -> None:
        self._key = key
        self._snapshot = snapshot
        self._numbers = Numbers[str | None]({None: 0})
        self.values: list[str | None] = [None]
        # For each value: whether it is a number, and which. Made when a requirement compares it.
        self._numeric: tuple[BoolArray, IntArray] | None = None
        self._ids = Tracked[np.int32](snapshot.log, Depends.NODE, by_owner(self._compute))

    @property
    def ids(self) -> IdArray:
        """int32[row], index into `values`."""
        return self._ids.values()

    def catch_up(self) -> None:
        self._ids.catch_up()

    def id_of(self, value: str) -> int | None:
        return self._numbers.get(value)

    def matching(self, requirement: Requirement) -> BoolArray:
        """bool[value]: which of the `values` satisfy the requirement on this label."""
        mask = np.zeros(len(self.values), np.bool_)
        match requirement.operator:
            case "In":
                mask[self._ids_of(requirement.values)] = True
            case "NotIn":
                mask[:] = True
                mask[self._ids_of(requirement.values)] = False
            case "Exists":
                mask[1:] = True
            case "DoesNotExist":
                mask[0] = True
            case "Gt":
                is_number, numbers = self._as_numbers()
                mask = is_number & (numbers > requirement.threshold)
            case "Lt":
                is_number, numbers = self._as_numbers()
                mask = is_number & (numbers < requirement.threshold)
        return mask

    def _ids_of(self, values: frozenset[str]) -> list[int]:
        """The numbers of those values that some node has."""
        if len(values) > len(self.values):
            return [number for number, value in enumerate(self.values) if value in values]
        numbers = self._numbers
        return [numbers[value] for value in values if value in numbers]

    def _as_numbers(self) -> "tuple[BoolArray, IntArray]":
        numeric = self._numeric
        if numeric is None or len(numeric[0]) != len(self.values):
            found = [None if value is None else parse_int64(value) for value in self.values]
            numeric = self._numeric = (
                np.array([number is not None for number in found], np.bool_),
                np.array([number or 0 for number in found], np.int64),
            )
        return numeric

    def _compute(self, rows: Rows) -> IdArray:
        key = self._key
        found = [node.metadata.labels.get(key) for node in pick(self._snapshot.nodes, rows)]
        numbers = self._numbers
        ids: IdArray = np.fromiter(map(numbers.__getitem__, found), np.int32, len(found))
        # The values that were new have got the next numbers, in order.
        new_count = len(numbers) - len(self.values)
        self.values.extend(reversed(list(islice(reversed(numbers), new_count))))
        return ids


class LabelColumns:
    """The label columns of one snapshot by key: `snapshot.derived(LabelColumns)`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._columns: OrderedDict[str, LabelColumn] = OrderedDict()

    def __len__(self) -> int:
        return len(self._columns)

    def column(self, key: str) -> LabelColumn:
        """The column of a label key, up to date."""
        column = self._columns.get(key)
        if column is not None:
            # Before the check: it may add values, and a reader's ids must fit its values.
            column.catch_up()
            # In autoscaled clusters hostnames keep changing.
            if len(column.values) <= numbered_max(len(self._snapshot)):
                self._columns.move_to_end(key)
                return column
        column = self._columns[key] = LabelColumn(self._snapshot, key)
        self._columns.move_to_end(key)
        if len(self._columns) > LABEL_COLUMNS_MAX:
            self._columns.popitem(last=False)
        return column
