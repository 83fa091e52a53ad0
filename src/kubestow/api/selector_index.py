"""Which of very many selectors match some labels, without a comparison with each.

A selector matches if all of its requirements hold. Each requirement reads one label, so how many of
a selector's hold follows from the labels there are, by one look-up per label:

    missing     NotIn and DoesNotExist hold
    present     Exists holds, DoesNotExist does not; Gt and Lt by the number
    its value   In holds, or NotIn does not

Most labels have a value that no requirement names, so many objects read the same (`Reading`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from kubestow.api.labels import Requirement, parse_int64
from kubestow.arrays import ALL_ROWS, BoolArray, IdArray, IntArray, IntpArray

# What the requirements read of some labels: equal readings match the same selectors.
Reading = tuple[object, ...]


class SelectorIndex:
    """Lists of requirements, by their position."""

    __slots__ = ("_arrays", "_counts", "_keys", "_missing")

    def __init__(self, selectors: Iterable[Sequence[Requirement]] = ()) -> None:
        self._keys: dict[str, _Key] = {}
        # How many requirements a selector has, and how many hold without any label.
        self._counts: list[int] = []
        self._missing: list[int] = []
        self._arrays: tuple[IdArray, IdArray] | None = None
        for requirements in selectors:
            self.add(requirements)

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, requirements: Sequence[Requirement]) -> int:
        """Add a selector and return its position. Earlier readings are no longer valid."""
        position = len(self._counts)
        self._counts.append(len(requirements))
        self._missing.append(sum(each.operator in _HOLD_IF_MISSING for each in requirements))
        self._arrays = None
        for requirement in requirements:
            key = self._keys.get(requirement.key)
            if key is None:
                key = self._keys[requirement.key] = _Key()
            key.add(position, requirement)
        return position

    def reading(self, labels: Mapping[str, str]) -> Reading:
        keys = self._keys
        found: list[object] = []
        # Whichever are fewer: a pod may have very many labels, and so may selectors.
        if len(labels) <= len(keys):
            for name, value in labels.items():
                key = keys.get(name)
                if key is not None:
                    key.read(value, found)
        else:
            for name, key in keys.items():
                value = labels.get(name)
                if value is not None:
                    key.read(value, found)
        return tuple(found)

    def matches_reading(self, reading: Reading) -> BoolArray:
        """bool[selector]: whether it matches labels that read so."""
        if self._arrays is None:
            self._arrays = np.array(self._counts, np.int32), np.array(self._missing, np.int32)
        counts, missing = self._arrays
        holding = missing.copy()
        for each in reading:
            assert isinstance(each, _Changes | _NumberRead)
            each.apply(holding)
        return holding == counts

    def matches(self, labels: Mapping[str, str]) -> BoolArray:
        """bool[selector]: whether it matches."""
        return self.matches_reading(self.reading(labels))

    def matching(self, labels: Mapping[str, str]) -> IntpArray:
        """The positions of the selectors that match, in ascending order."""
        return np.flatnonzero(self.matches(labels))


_HOLD_IF_MISSING: Final = ("NotIn", "DoesNotExist")


class _Key:
    """The requirements on one label."""

    __slots__ = ("_by_value", "_numbers", "_present")

    def __init__(self) -> None:
        self._present: _Changes | None = None
        self._by_value: dict[str, _Changes] = {}
        self._numbers: _Numbers | None = None

    def add(self, position: int, requirement: Requirement) -> None:
        match requirement.operator:
            case "In":
                self._add_values(position, requirement, 1)
            case "NotIn":
                self._add_values(position, requirement, -1)
            case "Exists":
                self._add_present(position, 1)
            case "DoesNotExist":
                self._add_present(position, -1)
            case "Gt" | "Lt":
                if self._numbers is None:
                    self._numbers = _Numbers()
                self._numbers.add(position, requirement)

    def read(self, value: str, found: list[object]) -> None:
        """Add what changes with this value."""
        if self._present is not None:
            found.append(self._present)
        changes = self._by_value.get(value)
        if changes is not None:
            found.append(changes)
        if self._numbers is not None:
            number = parse_int64(value)
            if number is not None:
                found.append(_NumberRead(self._numbers, number))

    def _add_present(self, position: int, change: int) -> None:
        if self._present is None:
            self._present = _Changes()
        self._present.add(position, change)

    def _add_values(self, position: int, requirement: Requirement, change: int) -> None:
        for value in requirement.values:
            changes = self._by_value.get(value)
            if changes is None:
                changes = self._by_value[value] = _Changes()
            changes.add(position, change)


class _Changes:
    """What a label changes in the counts of some selectors."""

    __slots__ = ("_arrays", "_by_position")

    def __init__(self) -> None:
        self._by_position: dict[int, int] = {}
        self._arrays: tuple[int, IntpArray | slice, IdArray] | None = None

    def add(self, position: int, change: int) -> None:
        self._by_position[position] = self._by_position.get(position, 0) + change
        self._arrays = None

    def apply(self, holding: IdArray) -> None:
        changes = self._by_position
        if len(changes) <= _FEW:
            for position, change in changes.items():
                holding[position] += change
            return
        arrays = self._arrays
        if arrays is None or arrays[0] != len(holding):
            arrays = self._arrays = self._as_arrays(len(holding))
        _, positions, amounts = arrays
        holding[positions] += amounts

    def _as_arrays(self, size: int) -> tuple[int, IntpArray | slice, IdArray]:
        changes = self._by_position
        positions = np.fromiter(changes, np.intp, len(changes))
        amounts = np.fromiter(changes.values(), np.int32, len(changes))
        if len(changes) * _DENSE_SHARE < size:
            return size, positions, amounts
        dense = np.zeros(size, np.int32)
        dense[positions] = amounts
        return size, ALL_ROWS, dense


class _Numbers:
    """The requirements Gt and Lt on one label."""

    __slots__ = ("_arrays", "_entries")

    def __init__(self) -> None:
        # Positions, thresholds, and whether a number has to be greater.
        self._entries: tuple[list[int], list[int], list[bool]] = [], [], []
        self._arrays: tuple[IntpArray, IntArray, BoolArray] | None = None

    def add(self, position: int, requirement: Requirement) -> None:
        positions, thresholds, are_lower = self._entries
        positions.append(position)
        thresholds.append(requirement.threshold)
        are_lower.append(requirement.operator == "Gt")
        self._arrays = None

    def apply(self, number: int, holding: IdArray) -> None:
        if self._arrays is None:
            positions, thresholds, are_lower = self._entries
            self._arrays = (
                np.array(positions, np.intp),
                np.array(thresholds, np.int64),
                np.array(are_lower, np.bool_),
            )
        at, threshold, is_lower = self._arrays
        holds = np.where(is_lower, number > threshold, number < threshold)
        # A selector may have several.
        np.add.at(holding, at[holds], 1)


class _NumberRead:
    """A label whose value is a number."""

    __slots__ = ("_number", "_numbers")

    def __init__(self, numbers: _Numbers, number: int) -> None:
        self._numbers = numbers
        self._number = number

    def apply(self, holding: IdArray) -> None:
        self._numbers.apply(self._number, holding)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _NumberRead)
            and self._numbers is other._numbers
            and self._number == other._number
        )

    def __hash__(self) -> int:
        return hash((id(self._numbers), self._number))


# Where the changes are at least this part of all counts, all are changed.
_DENSE_SHARE: Final = 4
# Up to this many counts are changed faster one by one.
_FEW: Final = 8
