"""Very many node selector terms over many nodes: rows are the bits of one integer.

A term holds where all its requirements hold, a selector where one of its terms does. On integers
of one bit per node "and" and "or" take a fraction of a microsecond, so that the work grows with the
requirements and the nodes, not with their product. Which nodes have a value is found once per
value; requirements on labels that no node has hold on all nodes or on none.

A view is made for one evaluation and not kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

import numpy as np

from kubestow.api.labels import Requirement, parse_int64
from kubestow.api.node_selector import NAME_FIELD, CompiledTerm, FieldRequirement
from kubestow.arrays import BoolArray, IdArray, IntArray
from kubestow.index.nodes import Nodes
from kubestow.index.present import LabelKeys
from kubestow.index.tracked import LabelColumns

# Of more labels than this the values are gathered in one pass over all labels of all nodes.
COLUMNS_READ_MAX: Final = 64
# The bits of fewer rows than this are set one by one.
_FEW_ROWS: Final = 16


class TermRows:
    """Which of the nodes match terms; bit 0 is the first node of the view."""

    __slots__ = ("_columns", "_nodes", "_positions", "_present", "everything")

    def __init__(self, nodes: Nodes, terms: Iterable[CompiledTerm]) -> None:
        """`terms` are all that will be asked for."""
        self._nodes = nodes
        self._present: Mapping[str, int] = nodes.snapshot.derived(LabelKeys).present()
        self._positions: dict[int, int] | None = None
        self.everything: Final = (1 << len(nodes)) - 1
        keys = {
            requirement.key
            for requirement in chain.from_iterable(term.labels for term in terms)
            if requirement.key in self._present
        }
        self._columns = (
            self._gathered(keys)
            if len(keys) > COLUMNS_READ_MAX
            else {key: self._read(key) for key in keys}
        )

    def matching(self, term: CompiledTerm) -> int:
        """The nodes that satisfy every requirement of the term."""
        columns = self._columns
        found = self.everything
        for requirement in term.labels:
            column = columns.get(requirement.key)
            if column is not None:
                found &= column.matching(requirement)
            elif not requirement.matches_value(None):
                return 0
            if not found:
                return 0
        return found & self._named(term.fields) if term.fields else found

    def _named(self, fields: Iterable[FieldRequirement]) -> int:
        found = self.everything
        for field in fields:
            if field.key != NAME_FIELD:
                # Any other field reads as empty on every node.
                if not field.matches_name(""):
                    return 0
                continue
            row = self._nodes.snapshot.row_of(field.value)
            position = None if row is None else self._position(row)
            named = 0 if position is None else 1 << position
            found &= named if field.operator == "In" else self.everything ^ named
        return found

    def _position(self, row: int) -> int | None:
        if self._positions is None:
            rows = self._nodes.rows
            if isinstance(rows, slice):
                listed = range(*rows.indices(len(self._nodes.snapshot)))
            else:
                listed = rows.tolist()
            self._positions = {row: position for position, row in enumerate(listed)}
        return self._positions.get(row)

    # --- columns ---

    def _read(self, key: str) -> "_Column":
        column = self._nodes.snapshot.derived(LabelColumns).column(key)
        values = column.values
        rows = _Positions(column.ids[self._nodes.rows], len(values))
        return _Column(self.everything, values, rows)

    def _gathered(self, keys: set[str]) -> dict[str, "_Column"]:
        values: dict[str, list[str | None]] = {key: [None] for key in keys}
        numbers: dict[str, dict[str, int]] = {key: {} for key in keys}
        rows: dict[str, list[list[int]]] = {key: [[]] for key in keys}
        for position, node in enumerate(self._nodes.node_objects()):
            labels = node.metadata.labels
            named = keys if len(keys) < len(labels) else labels
            for key in named:
                value = labels.get(key)
                if value is None or key not in keys:
                    continue
                number = numbers[key].get(value)
                if number is None:
                    number = numbers[key][value] = len(values[key])
                    values[key].append(value)
                    rows[key].append([])
                rows[key][number].append(position)
        return {key: _Column(self.everything, values[key], rows[key]) for key in keys}


class _Column:
    """The nodes by the value of one label. Number 0 stands for a missing label."""

    __slots__ = ("_bits", "_everything", "_numbers", "_ranked", "_ranks", "_rows", "_values")

    def __init__(
        self, everything: int, values: list[str | None], rows: "list[list[int]] | _Positions"
    ) -> None:
        """`rows` are the positions of each value. A list has none for 0: all that are left."""
        self._everything = everything
        self._values = values
        self._numbers = {value: number for number, value in enumerate(values)}
        self._rows = rows
        self._bits: dict[int, int] = {}
        if not isinstance(rows, _Positions):
            self._bits[0] = everything ^ _bits_at([*chain.from_iterable(rows)], everything)
        # The values that are integers, in order, with the nodes that have these or less.
        self._ranks: list[int] | None = None
        self._ranked: list[int] = [0]

    def matching(self, requirement: Requirement) -> int:
        match requirement.operator:
            case "In":
                return self._any_of(requirement.values)
            case "NotIn":
                return self._everything ^ self._any_of(requirement.values)
            case "Exists":
                return self._everything ^ self._of(0)
            case "DoesNotExist":
                return self._of(0)
            case "Gt":
                ranks = self._sorted_integers()
                return self._ranked[-1] ^ self._ranked[bisect_right(ranks, requirement.threshold)]
            case "Lt":
                ranks = self._sorted_integers()
                return self._ranked[bisect_left(ranks, requirement.threshold)]

    def _any_of(self, values: frozenset[str]) -> int:
        numbers = self._numbers
        found = 0
        if len(values) > len(numbers):
            for number, value in enumerate(self._values):
                if value in values:
                    found |= self._of(number)
            return found
        for value in values:
            number = numbers.get(value)
            if number is not None:
                found |= self._of(number)
        return found

    def _of(self, number: int) -> int:
        found = self._bits.get(number)
        if found is None:
            found = self._bits[number] = _bits_at(self._rows[number], self._everything)
        return found

    def _sorted_integers(self) -> list[int]:
        if self._ranks is None:
            pairs = sorted(
                (integer, number)
                for number, value in enumerate(self._values)
                if value is not None and (integer := parse_int64(value)) is not None
            )
            self._ranks = [integer for integer, _ in pairs]
            for _, number in pairs:
                self._ranked.append(self._ranked[-1] | self._of(number))
        return self._ranks


class WeightedRows:
    """Sums of weights per node, added for many nodes at once.

    `_planes[k]` has bit k of the sum of each node, so adding is a carry through a few integers.
    """

    __slots__ = ("_minus", "_plus")

    def __init__(self) -> None:
        self._plus: list[int] = []
        self._minus: list[int] = []

    def add(self, rows: int, weight: int) -> None:
        planes = self._plus if weight > 0 else self._minus
        left, place = abs(weight), 0
        while left:
            if left & 1:
                _add_at(planes, place, rows)
            left >>= 1
            place += 1

    def sums(self, count: int) -> IntArray:
        """int64[node] of the first nodes."""
        return _sums(self._plus, count) - _sums(self._minus, count)


def as_mask(bits: int, count: int) -> BoolArray:
    """bool[node]: the lowest bits."""
    packed = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


class _Positions:
    """The positions of each number in an array, found by sorting it once."""

    __slots__ = ("_order", "_starts")

    def __init__(self, ids: IdArray, count: int) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._starts: list[int] = np.searchsorted(ids[self._order], np.arange(count + 1)).tolist()

    def __getitem__(self, number: int) -> list[int]:
        return self._order[self._starts[number] : self._starts[number + 1]].tolist()


def _bits_at(positions: list[int], everything: int) -> int:
    if len(positions) < _FEW_ROWS:
        found = 0
        for position in positions:
            found |= 1 << position
        return found
    mask = np.zeros(everything.bit_length(), np.bool_)
    mask[positions] = True
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def _add_at(planes: list[int], place: int, rows: int) -> None:
    while rows:
        while len(planes) <= place:
            planes.append(0)
        planes[place], rows = planes[place] ^ rows, planes[place] & rows
        place += 1


def _sums(planes: list[int], count: int) -> IntArray:
    total = np.zeros(count, np.int64)
    for place, plane in enumerate(planes):
        total += as_mask(plane, count).astype(np.int64) << place
    return total
