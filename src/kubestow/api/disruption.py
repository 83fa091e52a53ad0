"""Disruption budgets, as preemption reads them: which victims would violate one (spec 01 §15).

A budget never forbids preemption here; its victims are only the first to be reprieved. Not here:
choosing the victims (`plugins`), evicting through the API, which does enforce budgets.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple

from kubestow.api.labels import NOTHING, Selector, SelectorError, parse_label_selector
from kubestow.api.meta import LabelSelector
from kubestow.api.pod_info import PodClass, PodInfo
from kubestow.api.workload import PodDisruptionBudget

# In place of a table's number.
NO_BUDGETS: Final = 0
_NUMBERS: Final = count(NO_BUDGETS + 1)

# Pod classes for which the covering budgets are kept; beyond it, all are looked up again.
COVERED_MAX: Final = 16_384


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
        self._budgets: dict[str, list[_Budget]] = defaultdict(list)
        self._covering: dict[PodClass, tuple[_Budget, ...]] = {}
        for number, budget in enumerate(budgets):
            selector = _selector_of(budget.spec.selector)
            if not selector.is_nothing:
                entry = _Budget(number, selector, budget)
                self._budgets[budget.metadata.namespace].append(entry)

    def split(self, victims: Sequence[PodInfo]) -> BudgetSplit:
        """Charge the victims to their budgets in the given order."""
        split = BudgetSplit([], [])
        charged: dict[int, int] = defaultdict(int)
        for victim in victims:
            violates = False
            for number, _, budget in self._budgets_of(victim.pod_class):
                # A pod the budget already counts as disrupted is neither charged nor counted.
                if victim.name in budget.status.disrupted_pods:
                    continue
                charged[number] += 1
                # No break at the first violation: the remaining budgets are charged as well.
                violates |= charged[number] > budget.status.disruptions_allowed
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
        for number, _, budget in self._budgets_of(victim.pod_class):
            if victim.name in budget.status.disrupted_pods:
                continue
            charged[number] += 1
            if charged[number] > budget.status.disruptions_allowed:
                return True
        return False

    def _budgets_of(self, pod_class: PodClass) -> "tuple[_Budget, ...]":
        covering = self._covering.get(pod_class)
        if covering is None:
            if len(self._covering) >= COVERED_MAX:
                self._covering.clear()
            covering = self._covering[pod_class] = self._find(pod_class)
        return covering

    def _find(self, pod_class: PodClass) -> "tuple[_Budget, ...]":
        # Spec 01 §15: a pod without labels is under no budget, even one that selects by absence.
        if not pod_class.labels:
            return ()
        return tuple(
            entry
            for entry in self._budgets.get(pod_class.namespace, ())
            if entry.selector.matches(pod_class.labels)
        )


class _Budget(NamedTuple):
    number: int
    selector: Selector
    budget: PodDisruptionBudget


def _selector_of(label_selector: LabelSelector | None) -> Selector:
    """The budget's selector, `NOTHING` where it covers no pod.

    Unlike in the eviction API an empty selector covers nothing here (spec 01 §15).
    """
    try:
        selector = parse_label_selector(label_selector)
    except SelectorError:
        return NOTHING
    return NOTHING if selector.is_empty else selector
