"""Amounts of every resource on every node, one array per resource.

Every node has cpu, memory and ephemeral storage, so these are in one dense block. There may be
thousands of other resources, each on a few nodes: for these only non-zero amounts are kept, and an
array is built when it is first read. The most recently read arrays are kept up to date.
"""

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.api.resources import Resources
from kubestow.arrays import IntArray

BASIC_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
# How many arrays of other resources are kept.
LAID_OUT_MAX: Final = 64
_NONE: Final[Mapping[int, int]] = MappingProxyType({})


class ResourceIndex:
    """Which column a resource has. Scalars get theirs at first use."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {name: i for i, name in enumerate(BASIC_RESOURCES)}
        self.names: list[str] = list(BASIC_RESOURCES)

    def __len__(self) -> int:
        return len(self._columns)

    def column(self, name: str) -> int | None:
        return self._columns.get(name)

    def ensure(self, name: str) -> int:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self.names)
            self.names.append(name)
        return column


class ResourceColumns:
    """Amounts by resource and row; `self[column]` is int64[row], read-only for the caller."""

    def __init__(self, resources: ResourceIndex, basic: IntArray) -> None:
        """`basic` is int64[3, row], where the basic resources are kept."""
        self._resources = resources
        self._basic = basic
        # Non-zero amounts: column → row → amount; `columns_of_row` has the columns of a row.
        self._scattered: dict[int, dict[int, int]] = {}
        self.columns_of_row: dict[int, tuple[int, ...]] = {}
        self._laid_out: OrderedDict[int, IntArray] = OrderedDict()

    def __getitem__(self, column: int) -> IntArray:
        if column < len(BASIC_RESOURCES):
            return self._basic[column]
        array = self._laid_out.get(column)
        if array is None:
            array = self._lay_out(column)
        else:
            self._laid_out.move_to_end(column)
        return array

    def scattered(self, column: int) -> Mapping[int, int]:
        """The non-zero amounts of a resource other than the basic ones, by row."""
        return self._scattered.get(column, _NONE)

    def write(self, row: int, amounts: Resources) -> None:
        """Copy all amounts of one node."""
        self._basic[0, row] = amounts.milli_cpu
        self._basic[1, row] = amounts.memory
        self._basic[2, row] = amounts.ephemeral_storage
        if amounts.scalar or row in self.columns_of_row:
            self.write_scalars(row, amounts.scalar)

    def write_scalars(self, row: int, amounts: dict[str, int]) -> None:
        """Copy the amounts of one node other than the basic ones."""
        for column in self.columns_of_row.pop(row, ()):
            del self._scattered[column][row]
            if column in self._laid_out:
                self._laid_out[column][row] = 0
        # A node keeps an entry of 0 for every resource that a pod on it once had (spec 01 §5).
        columns = {self._resources.ensure(name): held for name, held in amounts.items() if held}
        if not columns:
            return
        self.columns_of_row[row] = tuple(columns)
        for column, amount in columns.items():
            self._scattered.setdefault(column, {})[row] = amount
            if column in self._laid_out:
                self._laid_out[column][row] = amount

    def reorder(self, source: npt.NDArray[np.intp], basic: IntArray) -> None:
        """As `Columns.reorder`; `basic` is in the new order already."""
        self._basic = basic
        before = self.columns_of_row
        rows: list[int] = source.tolist()
        self.columns_of_row = {
            row: before[old] for row, old in enumerate(rows) if old >= 0 and old in before
        }
        scattered: dict[int, dict[int, int]] = {}
        for row, columns in self.columns_of_row.items():
            for column in columns:
                amount = self._scattered[column][rows[row]]
                scattered.setdefault(column, {})[row] = amount
        self._scattered = scattered
        self._laid_out.clear()

    def renumber(self, resources: ResourceIndex) -> None:
        """Switch to another index, which gets the resources that some node has."""
        names = self._resources.names
        numbers = {
            column: resources.ensure(names[column])
            for column, amounts in self._scattered.items()
            if amounts
        }
        self._resources = resources
        self._scattered = {number: self._scattered[column] for column, number in numbers.items()}
        self.columns_of_row = {
            row: tuple([numbers[column] for column in columns])
            for row, columns in self.columns_of_row.items()
        }
        self._laid_out.clear()

    def _lay_out(self, column: int) -> IntArray:
        array: IntArray = np.zeros_like(self._basic[0])
        amounts = self._scattered.get(column)
        if amounts:
            array[np.fromiter(amounts, np.intp, len(amounts))] = np.fromiter(
                amounts.values(), np.int64, len(amounts)
            )
        self._laid_out[column] = array
        if len(self._laid_out) > LAID_OUT_MAX:
            self._laid_out.popitem(last=False)
        return array
