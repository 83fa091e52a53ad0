"""Disruption budgets, as preemption reads them: which victims would violate one (spec 01 §15).

A budget never forbids preemption here; its victims are only the first to be reprieved. Not here:
choosing the victims (`plugins`), evicting through the API, which does enforce budgets.

Anyone may create budgets, and any number of them may cover a pod: those of a pod are found by its
labels, and victims that many budgets cover are charged all at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.labels import NOTHING, Selector, SelectorError, parse_label_selector
from kubestow.api.meta import LabelSelector
from kubestow.api.pod_info import PodClass, PodInfo
from kubestow.api.selector_index import SelectorIndex
from kubestow.api.workload import PodDisruptionBudget
from kubestow.arrays import BoolArray, IntpArray

# In place of a table's number.
NO_BUDGETS: Final = 0
_NUMBERS: Final = count(NO_BUDGETS + 1)

# Pod classes for which the covering budgets are kept; beyond it, all are looked up again.
COVERED_MAX: Final = 16_384

# Up to this many budgets per victim are charged faster one by one.
_COVERING_FEW: Final = 8
# More than there are pods.
_PLENTY: Final = 2**31 - 1


class BudgetSplit(NamedTuple):
    """Victims in their given order, split by whether evicting them violates a budget."""

    violating: list[PodInfo]
    non_violating: list[PodInfo]


class BudgetTable:
    """All budgets of the cluster, prepared for splitting the victims of many nodes.

    Which budgets cover a pod is found once per pod class. Each split starts from the allowances the
    budgets had when the table was made: nodes are alternatives, they do not share them.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        # No other table has it.
        self.number: Final = next(_NUMBERS)
        self._budgets = [*budgets]
        # Positions of the budgets that cover the pods of a class.
        self._covering: dict[PodClass, IntpArray] = {}
        by_namespace: dict[str, list[tuple[int, Selector]]] = defaultdict(list)
        for position, budget in enumerate(self._budgets):
            selector = _selector_of(budget.spec.selector)
            if not selector.is_nothing:
                by_namespace[budget.metadata.namespace].append((position, selector))
        self._by_namespace = {
            namespace: _NamespaceBudgets(entries) for namespace, entries in by_namespace.items()
        }
        self._allowed = np.array(
            [max(0, min(budget.status.disruptions_allowed, _PLENTY)) for budget in self._budgets],
            np.int32,
        )
        self._disrupting = np.array(
            [bool(budget.status.disrupted_pods) for budget in self._budgets], np.bool_
        )

    def split(self, victims: Sequence[PodInfo]) -> BudgetSplit:
        """Charge the victims to their budgets in the given order."""
        covering = [self._covering_of(victim.pod_class) for victim in victims]
        are_few = sum(map(len, covering)) <= _COVERING_FEW * len(victims)
        violations = (self._one_by_one if are_few else self._together)(victims, covering)
        split = BudgetSplit([], [])
        for victim, violates in zip(victims, violations, strict=True):
            (split.violating if violates else split.non_violating).append(victim)
        return split

    def violating_units(self, units: Sequence[Sequence[PodInfo]]) -> list[bool]:
        """Per unit of pods that are evicted together, whether that violates a budget.

        Unlike in `split` nothing more is charged for a pod after its first violation, nor for a
        unit after its first violating pod (spec 11 §9.2).
        """
        charged: dict[int, int] = defaultdict(int)
        return [any(self._violates(pod, charged) for pod in unit) for unit in units]

    def _violates(self, victim: PodInfo, charged: dict[int, int]) -> bool:
        for position in self._positions(victim):
            charged[position] += 1
            if charged[position] > self._budgets[position].status.disruptions_allowed:
                return True
        return False

    def _one_by_one(
        self, victims: Sequence[PodInfo], covering: Sequence[IntpArray]
    ) -> Iterable[bool]:
        """Whether each victim in turn violates one of the budgets that cover it."""
        charged: dict[int, int] = defaultdict(int)
        for victim, positions in zip(victims, covering, strict=True):
            violates = False
            for position in self._positions(victim) if len(positions) else ():
                charged[position] += 1
                # No break at the first violation: the remaining budgets are charged as well.
                allowed = self._budgets[position].status.disruptions_allowed
                violates |= charged[position] > allowed
            yield violates

    def _together(
        self, victims: Sequence[PodInfo], covering: Sequence[IntpArray]
    ) -> Iterable[bool]:
        """Whether each victim violates a budget, computed for all victims at once."""
        is_used = np.zeros(len(self._budgets), np.bool_)
        for positions in covering:
            is_used[positions] = True
        places = np.cumsum(is_used) - 1
        # bool[victim, budget]
        is_charged = np.zeros((len(victims), int(places[-1]) + 1), np.bool_)
        for charged, positions in zip(is_charged, covering, strict=True):
            charged[places[positions]] = True
        disrupting: list[int] = np.flatnonzero(is_used & self._disrupting).tolist()
        for position in disrupting:
            disrupted = self._budgets[position].status.disrupted_pods
            is_disrupted = np.array([victim.name in disrupted for victim in victims], np.bool_)
            is_charged[is_disrupted, places[position]] = False
        count = np.cumsum(is_charged, axis=0, dtype=np.int32)
        is_over = count > self._allowed[is_used]
        violates: BoolArray = np.logical_or.reduce(is_charged & is_over, axis=1)
        return violates.tolist()

    def _positions(self, victim: PodInfo) -> Iterable[int]:
        """The budgets that the victim is charged to."""
        covering: list[int] = self._covering_of(victim.pod_class).tolist()
        for position in covering:
            # A pod the budget already counts as disrupted is neither charged nor counted.
            if victim.name not in self._budgets[position].status.disrupted_pods:
                yield position

    def _covering_of(self, pod_class: PodClass) -> IntpArray:
        covering = self._covering.get(pod_class)
        if covering is None:
            if len(self._covering) >= COVERED_MAX:
                self._covering.clear()
            # Spec 01 §15: a pod without labels is under no budget, not even one that selects by
            # absence.
            budgets = self._by_namespace.get(pod_class.namespace) if pod_class.labels else None
            covering = _NONE if budgets is None else budgets.covering(pod_class.labels)
            self._covering[pod_class] = covering
        return covering


_NONE: Final[IntpArray] = np.zeros(0, np.intp)


class _NamespaceBudgets:
    """The budgets of one namespace."""

    __slots__ = ("_index", "_positions", "_selectors")

    def __init__(self, entries: Sequence[tuple[int, Selector]]) -> None:
        """`entries` are positions in the table, and selectors."""
        self._positions = np.array([position for position, _ in entries], np.intp)
        self._selectors = [selector for _, selector in entries]
        self._index: SelectorIndex | None = None
        if len(entries) > _COVERING_FEW:
            self._index = SelectorIndex([selector.requirements for selector in self._selectors])

    def covering(self, labels: Mapping[str, str]) -> IntpArray:
        if self._index is not None:
            return self._positions[self._index.matching(labels)]
        is_covering = [selector.matches(labels) for selector in self._selectors]
        return self._positions[is_covering] if any(is_covering) else _NONE


def _selector_of(label_selector: LabelSelector | None) -> Selector:
    """The budget's selector, `NOTHING` where it covers no pod.

    Unlike in the eviction API an empty selector covers nothing here (spec 01 §15).
    """
    try:
        selector = parse_label_selector(label_selector)
    except SelectorError:
        return NOTHING
    return NOTHING if selector.is_empty else selector
