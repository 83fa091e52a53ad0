"""Sets of pods, and very many of them at once.

A pod may have thousands of affinity terms, and each class of pods is compared with all of them.
Most selectors read one label: what all of these come to for a pod follows from the values of its
labels, by one look-up per label key. The others are found by the pod's labels as well
(`api.selector_index`).
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from kubestow.api.labels import Requirement, Selector
from kubestow.api.pod_info import PodClass
from kubestow.api.selector_index import Reading, SelectorIndex
from kubestow.arrays import BoolArray


class PodSet(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The pods of these namespaces (None: of any) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector

    def has(self, pod_class: PodClass) -> bool:
        return (
            self.namespaces is None or pod_class.namespace in self.namespaces
        ) and self.selector.matches(pod_class.labels)


class WeightTable:
    """The weights of very many sets, to be summed over those that a pod is in."""

    __slots__ = ("_by_namespaces", "_others")

    def __init__(self, entries: Iterable[tuple[PodSet, int]]) -> None:
        self._by_namespaces: dict[frozenset[str] | None, dict[str, _ValueWeights]] = {}
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
    """The weights of sets of any form. The namespace of a pod is looked up as a label is."""

    __slots__ = ("_are_equal", "_index", "_known", "_weights")

    def __init__(self, entries: Iterable[tuple[PodSet, int]]) -> None:
        usable = [(pods, weight) for pods, weight in entries if not pods.selector.is_nothing]
        self._index = SelectorIndex([_requirements(pods) for pods, _ in usable])
        self._weights = np.array([weight for _, weight in usable], np.int64)
        # Of required terms all are.
        self._are_equal = len({weight for _, weight in usable}) == 1
        self._known: dict[Reading, int] = {}

    def weigh(self, pod_class: PodClass) -> int:
        reading = self._index.reading({**pod_class.labels, _NAMESPACE: pod_class.namespace})
        weight = self._known.get(reading)
        if weight is None:
            if len(self._known) >= READINGS_MAX:
                self._known.clear()
            weight = self._known[reading] = self._sum(self._index.matches_reading(reading))
        return weight

    def _sum(self, matches: BoolArray) -> int:
        if self._are_equal:
            return int(np.count_nonzero(matches)) * int(self._weights[0])
        return int(self._weights[matches].sum())


def _requirements(pods: PodSet) -> tuple[Requirement, ...]:
    requirements = pods.selector.requirements
    if pods.namespaces is None:
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
