"""The array types used throughout the scheduler."""

from typing import TypeVar

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

ALL_ROWS = slice(None)


def row_numbers(rows: Rows) -> IntpArray:
    """The numbers of these rows; a slice must have both bounds."""
    return np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


def pick(values: list[T], rows: Rows) -> list[T]:
    """The entries of these rows, in their order."""
    return values[rows] if isinstance(rows, slice) else [values[row] for row in rows.tolist()]
