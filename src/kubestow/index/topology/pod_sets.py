"""Sets of pods, and very many of them at once.

A pod may have thousands of affinity terms, and each class of pods is compared with all of them.
Most selectors read one label: what all of these come to for a pod follows from the values of its
labels, by one look-up per label key. The others are found by the pod's labels as well
(`api.selector_index`).

A term may also select namespaces by label, each term nearly all of thousands: a set of more than a
few namespaces is an integer with one bit for each (`NamespaceSet`).
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from kubestow.api.labels import Requirement, Selector
from kubestow.api.pod_info import PodClass
from kubestow.api.selector_index import Reading, SelectorIndex
from kubestow.arrays import BoolArray

# Sets of more namespaces are integers.
NAMESPACES_LISTED: Final = 16


class NamespaceNumbers:
    """Gives each namespace a number, the bit it has in a `NamespaceSet`."""

    __slots__ = ("_names", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str) -> int:
        """The number of the namespace, which it gets now if it is new."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def find(self, name: str) -> int | None:
        return self._numbers.get(name)

    def mask(self, numbers: Iterable[int]) -> int:
        bits = bytearray(len(self._names) // 8 + 1)
        for number in numbers:
            bits[number >> 3] |= 1 << (number & 7)
        return int.from_bytes(bits, "little")

    def names(self, mask: int) -> "Namespaces":
        """The namespaces whose bits are set; equal sets are equal in either form."""
        if mask.bit_count() > NAMESPACES_LISTED:
            return NamespaceSet(self, mask)
        names: list[str] = []
        while mask:
            number = mask.bit_length() - 1
            names.append(self._names[number])
            mask ^= 1 << number
        return frozenset(names)


class NamespaceSet:
    """Many namespaces. Comparable with those of the same numbers."""

    __slots__ = ("_hash", "mask", "numbers")

    def __init__(self, numbers: NamespaceNumbers, mask: int) -> None:
        self.numbers: Final = numbers
        self.mask: Final = mask
        self._hash = hash(mask)

    def __contains__(self, name: object) -> bool:
        number = self.numbers.find(name) if isinstance(name, str) else None
        return number is not None and self.mask >> number & 1 == 1

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NamespaceSet)
            and self.numbers is other.numbers
            and self.mask == other.mask
        )

    def __hash__(self) -> int:
        return self._hash


Namespaces = frozenset[str] | NamespaceSet


class PodSet(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The pods of these namespaces (None: of any) that the selector matches."""

    namespaces: Namespaces | None
    selector: Selector

    def has(self, pod_class: PodClass) -> bool:
        return (
            self.namespaces is None or pod_class.namespace in self.namespaces
        ) and self.selector.matches(pod_class.labels)


class WeightTable:
    """The weights of very many sets, to be summed over those that a pod is in."""

    __slots__ = ("_by_namespaces", "_others")

    def __init__(self, entries: Iterable[tuple[PodSet, int]]) -> None:
        self._by_namespaces: dict[Namespaces | None, dict[str, _ValueWeights]] = {}
        others: list[tuple[PodSet, int]] = []
        for pods, weight in entries:
            requirements = pods.selector.requirements
            # Namespaces are looked up where sets share them.
            is_shared = len(self._by_namespaces) < _NAMESPACES_FEW
            is_shared = is_shared or pods.namespaces in self._by_namespaces
            if len(requirements) != 1 or pods.selector.is_nothing or not is_shared:
                others.append((pods, weight))
                continue
            by_key = self._by_namespaces.setdefault(pods.namespaces, {})
            by_key.setdefault(requirements[0].key, _ValueWeights()).add(requirements[0], weight)
        self._others = _WeightIndex(others) if others else None

    def weigh(self, pod_class: PodClass) -> int:
        total = 0 if self._others is None else self._others.weigh(pod_class)
        for namespaces, by_key in self._by_namespaces.items():
            if namespaces is None or pod_class.namespace in namespaces:
                total += _sum(by_key, pod_class.labels)
        return total


# For how many kinds of pods the weight is kept, per table; beyond it, all are weighed again.
READINGS_MAX: Final = 1024
# For how many lists of namespaces the sets are kept apart.
_NAMESPACES_FEW: Final = 16
# Not a label: no label key is empty.
_NAMESPACE: Final = ""


class _WeightIndex:
    """The weights of sets of any form. The namespace of a pod is looked up as a label is, unless
    a set has many."""

    __slots__ = ("_are_equal", "_bits", "_index", "_known", "_weights")

    def __init__(self, entries: Iterable[tuple[PodSet, int]]) -> None:
        usable = [(pods, weight) for pods, weight in entries if not pods.selector.is_nothing]
        self._index = SelectorIndex([_requirements(pods) for pods, _ in usable])
        self._weights = np.array([weight for _, weight in usable], np.int64)
        # Of required terms all are.
        self._are_equal = len({weight for _, weight in usable}) == 1
        # Of each kind of pods; with its namespace, if that is not part of the reading.
        self._known: dict[tuple[Reading, str], int] = {}
        many = {
            position: pods.namespaces
            for position, (pods, _) in enumerate(usable)
            if isinstance(pods.namespaces, NamespaceSet)
        }
        self._bits = _NamespaceBits(many) if many else None

    def weigh(self, pod_class: PodClass) -> int:
        namespace = pod_class.namespace
        reading = self._index.reading({**pod_class.labels, _NAMESPACE: namespace})
        key = reading, "" if self._bits is None else namespace
        weight = self._known.get(key)
        if weight is None:
            if len(self._known) >= READINGS_MAX:
                self._known.clear()
            matches = self._index.matches_reading(reading)
            if self._bits is not None:
                self._bits.restrict(matches, namespace)
            weight = self._known[key] = self._sum(matches)
        return weight

    def _sum(self, matches: BoolArray) -> int:
        if self._are_equal:
            return int(np.count_nonzero(matches)) * int(self._weights[0])
        return int(self._weights[matches].sum())


class _NamespaceBits:
    """Sets of many namespaces below each other, so that one namespace is a column of bits."""

    __slots__ = ("_bits", "_numbers", "_positions")

    def __init__(self, sets: Mapping[int, NamespaceSet]) -> None:
        """The sets by their position; one resolver has made all of them."""
        (self._numbers,) = {each.numbers for each in sets.values()}
        width = max(each.mask.bit_length() for each in sets.values()) // 8 + 1
        rows = b"".join(each.mask.to_bytes(width, "little") for each in sets.values())
        self._bits = np.frombuffer(rows, np.uint8).reshape(len(sets), width)
        self._positions = np.fromiter(sets, np.intp, len(sets))

    def restrict(self, matches: BoolArray, namespace: str) -> None:
        """Leave out the sets that the namespace is not in."""
        number = self._numbers.find(namespace)
        if number is None or number >> 3 >= self._bits.shape[1]:
            matches[self._positions] = False
        else:
            matches[self._positions] &= (self._bits[:, number >> 3] >> (number & 7) & 1) == 1


def _requirements(pods: PodSet) -> tuple[Requirement, ...]:
    requirements = pods.selector.requirements
    if pods.namespaces is None or isinstance(pods.namespaces, NamespaceSet):
        return requirements
    return (*requirements, Requirement(_NAMESPACE, "In", pods.namespaces))


class _ValueWeights:
    """The weights of requirements on one label, by its value."""

    __slots__ = ("_absent", "_by_value", "_present")

    def __init__(self) -> None:
        self._absent = self._present = 0
        self._by_value: dict[str, int] = {}  # in addition to `_present`

    def add(self, requirement: Requirement, weight: int) -> None:
        match requirement.operator:
            case "In":
                self._add_values(requirement, weight)
            case "NotIn":
                self._absent += weight
                self._present += weight
                self._add_values(requirement, -weight)
            case "Exists":
                self._present += weight
            case "DoesNotExist":
                self._absent += weight
            case "Gt" | "Lt":
                raise AssertionError(f"not an operator of pod selectors: {requirement}")

    def of(self, value: str | None) -> int:
        if value is None:
            return self._absent
        return self._present + self._by_value.get(value, 0)

    def _add_values(self, requirement: Requirement, weight: int) -> None:
        for value in requirement.values:
            self._by_value[value] = self._by_value.get(value, 0) + weight


def _sum(by_key: Mapping[str, _ValueWeights], labels: Mapping[str, str]) -> int:
    return sum(weights.of(labels.get(key)) for key, weights in by_key.items())
