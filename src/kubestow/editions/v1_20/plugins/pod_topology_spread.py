"""PodTopologySpread of v1.20 (spec 06 §6.6.6).

Pods are counted on every node of a registered domain, for each pair of key and value once for all
constraints; there are no minimum of domains, no policies and no keys of labels. Sums are truncated.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from kubestow.api.labels import parse_label_selector
from kubestow.api.pod import TopologySpreadConstraint
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import FloatArray, IntArray
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.editions.v1_20.plugins.default_selectors import SelectorsByLabel
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import PreFilterResult
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, Live, PodSet
from kubestow.index.topology.what_if import DomainCounts
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.plugins.pod_topology_spread.constraints import (
    HARD,
    Constraint,
    Constraints,
    Eligibilities,
    topology_keys,
)
from kubestow.plugins.pod_topology_spread.filtering import FilterState, HardConstraint
from kubestow.plugins.pod_topology_spread.normalising import Rounding

_PRE_FILTER: Final = "PreFilterPodTopologySpread"
# The count of the emptiest domain where there is none: every node passes.
_NO_DOMAIN: Final = 2**31 - 1


class Constraint120(Constraint, frozen=True, kw_only=True):
    def measure(self, namespace: str) -> Live:
        """The pods that are counted: those of the namespace, also if the selector matches all."""
        return Live(InAll((PodSet(frozenset((namespace,)), self.selector),)))


class Constraints120(Constraints):
    def __init__(
        self, args: PodTopologySpreadArgs, objects: ClusterObjects, *, merges_label_keys: bool
    ) -> None:
        super().__init__(args, objects, merges_label_keys=False)
        self._selectors = SelectorsByLabel(objects)

    def _own(self, given: TopologySpreadConstraint, labels: object) -> Constraint:
        return Constraint120(
            max_skew=given.max_skew,
            topology_key=given.topology_key,
            selector=parse_label_selector(given.label_selector),
        )


class HardConstraint120(HardConstraint):
    def _lowest(self) -> int:
        return self.counts.lowest() if self.counts.counted.domain_count else _NO_DOMAIN

    def with_counts(self, counts: DomainCounts) -> "HardConstraint120":
        return HardConstraint120(self.constraint, counts, matches_itself=self.matches_itself)


class FilterState120(FilterState):
    """Constraints on one key share their counts, also in a copy."""

    def copied(self) -> Sequence[HardConstraint]:
        copies: dict[int, DomainCounts] = {}
        constraints: list[HardConstraint] = []
        for constraint in self.constraints:
            assert isinstance(constraint, HardConstraint120)
            key = id(constraint.counts)
            if key not in copies:
                copies[key] = constraint.counts.clone()
            constraints.append(constraint.with_counts(copies[key]))
        return constraints


def _truncated(costs: FloatArray) -> IntArray:
    return costs.astype(np.int64)


class PodTopologySpread120(PodTopologySpread):
    constraints_type: ClassVar[type[Constraints]] = Constraints120
    rounding: ClassVar[Rounding] = Rounding(int, _truncated)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        constraints = self.constraints.of(pod.pod, HARD)
        if not constraints:
            return Status.skip()
        counts = TopologyCounts.at(nodes.snapshot)
        state.write(_PRE_FILTER, _filter_state(pod, constraints, counts))
        return None


def _filter_state(
    pod: PodInfo, constraints: Sequence[Constraint], counts: TopologyCounts
) -> FilterState120:
    # Which domains there are is decided by nodes that match the pod's affinity and have all keys.
    eligibilities = Eligibilities(pod, topology_keys(constraints), comparison_operators=False)
    by_key: dict[str, DomainCounts] = {}
    hard: list[HardConstraint] = []
    for constraint in constraints:
        key = constraint.topology_key
        registered = counts.column(key, eligibilities.of(constraint))
        column = counts.column(key)
        sums = counts.pods(constraint.measure(pod.namespace)).sums(column)
        values = np.where(registered.populations > 0, sums.amounts.array(), 0)
        if key in by_key:
            values = by_key[key].amounts.array() + values
            by_key[key].amounts = Amounts.of(values)
        else:
            by_key[key] = DomainCounts(Amounts.of(values), column, registered)
        matches_itself = constraint.selector.matches(pod.pod.metadata.labels)
        hard.append(HardConstraint120(constraint, by_key[key], matches_itself=matches_itself))
    return FilterState120(hard, pod.namespace)
