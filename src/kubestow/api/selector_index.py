"""Which of very many selectors match some labels, without a comparison with each.

A selector matches if all of its requirements hold. Each requirement reads one label, so how many of
a selector's hold follows from the labels there are, by one look-up per label:

    missing     NotIn and DoesNotExist hold
    present     Exists holds, DoesNotExist does not
    its value   In holds, or NotIn does not
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from kubestow.api.labels import Requirement
from kubestow.arrays import ALL_ROWS, BoolArray, IdArray, IntpArray


class SelectorIndex:
    """Lists of requirements, by their position. All are label selectors: without Gt and Lt."""

    __slots__ = ("_counts", "_keys", "_missing")

    def __init__(self, selectors: Iterable[Sequence[Requirement]]) -> None:
        self._keys: dict[str, _Key] = {}
        counts: list[int] = []
        missing: list[int] = []
        for number, requirements in enumerate(selectors):
            counts.append(len(requirements))
            missing.append(sum(each.operator in _HOLD_IF_MISSING for each in requirements))
            for requirement in requirements:
                key = self._keys.get(requirement.key)
                if key is None:
                    key = self._keys[requirement.key] = _Key()
                key.add(number, requirement)
        # How many requirements a selector has, and how many hold without any label.
        self._counts: IdArray = np.array(counts, np.int32)
        self._missing: IdArray = np.array(missing, np.int32)

    def matching(self, labels: Mapping[str, str]) -> IntpArray:
        """The positions of the selectors that match, in ascending order."""
        return np.flatnonzero(self.matches(labels))

    def matches(self, labels: Mapping[str, str]) -> BoolArray:
        """bool[selector]: whether it matches."""
        holding = self._missing.copy()
        # Whichever are fewer: a pod may have very many labels, and so may selectors.
        if len(labels) <= len(self._keys):
            for name, value in labels.items():
                key = self._keys.get(name)
                if key is not None:
                    key.count(value, holding)
        else:
            for name, key in self._keys.items():
                value = labels.get(name)
                if value is not None:
                    key.count(value, holding)
        return holding == self._counts


_HOLD_IF_MISSING: Final = ("NotIn", "DoesNotExist")


class _Key:
    """The requirements on one label."""

    __slots__ = ("_by_value", "_present")

    def __init__(self) -> None:
        self._present = _Changes()
        self._by_value: dict[str, _Changes] = {}

    def add(self, number: int, requirement: Requirement) -> None:
        match requirement.operator:
            case "In":
                self._add_values(number, requirement, 1)
            case "NotIn":
                self._add_values(number, requirement, -1)
            case "Exists":
                self._present.add(number, 1)
            case "DoesNotExist":
                self._present.add(number, -1)
            case "Gt" | "Lt":
                raise AssertionError(f"not an operator of label selectors: {requirement}")

    def count(self, value: str, holding: IdArray) -> None:
        """Count the requirements that hold for this value, and no longer those that do not."""
        self._present.apply(holding)
        changes = self._by_value.get(value)
        if changes is not None:
            changes.apply(holding)

    def _add_values(self, number: int, requirement: Requirement, change: int) -> None:
        for value in requirement.values:
            changes = self._by_value.get(value)
            if changes is None:
                changes = self._by_value[value] = _Changes()
            changes.add(number, change)


class _Changes:
    """What a label changes in the counts of some selectors."""

    __slots__ = ("_arrays", "_by_number")

    def __init__(self) -> None:
        self._by_number: dict[int, int] = {}
        self._arrays: tuple[IntpArray | slice, IdArray] | None = None

    def add(self, number: int, change: int) -> None:
        self._by_number[number] = self._by_number.get(number, 0) + change

    def apply(self, holding: IdArray) -> None:
        changes = self._by_number
        if len(changes) <= _FEW:
            for number, change in changes.items():
                holding[number] += change
            return
        if self._arrays is None:
            self._arrays = self._as_arrays(len(holding))
        numbers, amounts = self._arrays
        holding[numbers] += amounts

    def _as_arrays(self, size: int) -> tuple[IntpArray | slice, IdArray]:
        changes = self._by_number
        numbers = np.fromiter(changes, np.intp, len(changes))
        amounts = np.fromiter(changes.values(), np.int32, len(changes))
        if len(changes) * _DENSE_SHARE < size:
            return numbers, amounts
        dense = np.zeros(size, np.int32)
        dense[numbers] = amounts
        return ALL_ROWS, dense


# Where the changes are at least this part of all numbers, all are changed.
_DENSE_SHARE: Final = 4
# Up to this many numbers are changed faster one by one.
_FEW: Final = 8
