"""The array types used throughout the scheduler."""

from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
# Row numbers, or positions in a list of rows.
IntpArray = npt.NDArray[np.intp]
# Which rows a view shows: a slice gives NumPy views without copying, an array any subset in any
# order.
Rows = slice | IntpArray

# Integers of any width.
NarrowArray = npt.NDArray[np.signedinteger[Any]]

ALL_ROWS = slice(None)
_WIDTHS: Final = [(width, np.iinfo(width).max) for width in (np.int8, np.int16, np.int32)]


def row_numbers(rows: Rows) -> IntpArray:
    """The numbers of these rows; a slice must have both bounds."""
    return np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


def row_count(rows: Rows) -> int:
    """How many rows these are; a slice must have both bounds."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def rows_between(rows: Rows, first: int, end: int) -> Rows:
    """The rows at these positions; a slice must have both bounds."""
    if isinstance(rows, slice):
        return slice(rows.start + first, rows.start + end)
    return rows[first:end]


def rows_at(rows: Rows, positions: IntpArray) -> IntpArray:
    """The numbers of the rows at these positions."""
    if isinstance(rows, slice):
        return positions + rows.start if rows.start else positions
    return rows[positions]


def pick(values: list[T], rows: Rows) -> list[T]:
    """The entries of these rows, in their order."""
    return values[rows] if isinstance(rows, slice) else [values[row] for row in rows.tolist()]


def narrow_type(largest: int) -> type[np.signedinteger[Any]]:
    """The smallest type that holds integers up to this size, of either sign."""
    for width, limit in _WIDTHS:
        if largest <= limit:
            return width
    return np.int64


def narrowed(values: NarrowArray) -> NarrowArray:
    """A copy of the smallest type that holds these integers."""
    return values.astype(narrow_type(_widest(values)))


def put(values: NarrowArray, rows: IntpArray, found: NarrowArray) -> NarrowArray:
    """The array with new integers in these rows: the same one, or a wider one if need be."""
    width = narrow_type(_widest(found))
    if np.dtype(width).itemsize > values.dtype.itemsize:
        values = values.astype(width)
    values[rows] = found
    return values


def largest(values: npt.NDArray[np.integer[Any]]) -> int:
    """The largest number, at least 0. By its position it is found several times faster."""
    found = values.item(values.argmax()) if values.size else 0
    return found if found > 0 else 0


def smallest(values: npt.NDArray[np.integer[Any]]) -> int:
    """The smallest number, at most 0."""
    found = values.item(values.argmin()) if values.size else 0
    return found if found < 0 else 0


def _widest(values: NarrowArray) -> int:
    return max(largest(values), -smallest(values))
