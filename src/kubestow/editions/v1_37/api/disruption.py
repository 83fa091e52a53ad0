"""How v1.37 charges victims to disruption budgets (spec 12 §9.1)."""

from collections.abc import Sequence

from kubestow.api.disruption import BudgetSplit, BudgetTable
from kubestow.api.pod_info import PodInfo


class BudgetTableV137(BudgetTable):
    """Nothing more is charged for a pod after the first budget that it violates."""

    def split(self, victims: Sequence[PodInfo]) -> BudgetSplit:
        split = BudgetSplit([], [])
        violates = self.violating_units([(victim,) for victim in victims])
        for victim, is_violating in zip(victims, violates, strict=True):
            (split.violating if is_violating else split.non_violating).append(victim)
        return split
