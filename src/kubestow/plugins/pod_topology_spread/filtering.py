"""Which nodes would make the spread of pods too uneven (spec 06 §6.3.5, §6.3.6)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, Rows
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT
from kubestow.index.topology.what_if import DomainCounts
from kubestow.plugins.pod_topology_spread.constraints import (
    Constraint,
    Eligibilities,
    topology_keys,
)

UNEVEN: Final = 1
UNLABELLED: Final = 2
STATUSES: Final = {
    UNEVEN: Status.unschedulable("node(s) didn't match pod topology spread constraints"),
    UNLABELLED: Status.unresolvable(
        "node(s) didn't match pod topology spread constraints (missing required label)"
    ),
}


class HardConstraint:
    """One constraint with its counts: matching pods per domain, on the nodes that count."""

    __slots__ = ("constraint", "counts", "matches_itself")

    def __init__(
        self, constraint: Constraint, counts: DomainCounts, *, matches_itself: bool
    ) -> None:
        self.constraint = constraint
        self.counts = counts
        self.matches_itself = matches_itself

    def codes(self, rows: Rows) -> IntArray | None:
        """int64[node]: the verdicts; None if every node passes."""
        constraint = self.constraint
        # skew = count + itself - lowest, and must not exceed max_skew.
        highest = constraint.max_skew + self._lowest() - self.matches_itself
        uneven = self.counts.at(rows) > highest
        column = self.counts.column
        if column.populations[ABSENT]:
            return np.where(column.ids[rows] == ABSENT, UNLABELLED, uneven * UNEVEN)
        return uneven.astype(np.int64) if uneven.any() else None

    def add(self, other: PodInfo, row: int, sign: int) -> None:
        # Spec 06 §6.3.6: unlike the counts, this includes terminating pods and a selector that
        # matches everything; a count may even become negative.
        if self.constraint.selector.matches(other.pod.metadata.labels):
            self.counts.add(row, sign)

    def clone(self) -> "HardConstraint":
        return HardConstraint(
            self.constraint, self.counts.clone(), matches_itself=self.matches_itself
        )

    def _lowest(self) -> int:
        counted = self.counts.counted
        # Spec 06 §6.3.5: missing domains count as empty ones; so does having no domain at all.
        if counted.domain_count < self.constraint.min_domains or not counted.domain_count:
            return 0
        return counted.lowest(self.counts.values)


class FilterState:
    """The hard constraints of an attempt, in order."""

    __slots__ = ("constraints", "namespace")

    def __init__(self, constraints: Iterable[HardConstraint], namespace: str) -> None:
        self.constraints = tuple(constraints)
        self.namespace = namespace

    def codes(self, nodes: Nodes) -> IntArray | None:
        """int64[node]: the first constraint in order that fails decides; None if none does."""
        codes: IntArray | None = None
        for constraint in self.constraints:
            more = constraint.codes(nodes.rows)
            if more is not None:
                codes = more if codes is None else np.where(codes == 0, more, codes)
        return codes

    def add(self, other: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod on the row's node, in a simulation."""
        if other.namespace == self.namespace:
            for constraint in self.constraints:
                constraint.add(other, row, sign)

    def clone(self) -> "FilterState":
        return FilterState((each.clone() for each in self.constraints), self.namespace)


def filter_state(
    pod: PodInfo,
    constraints: Sequence[Constraint],
    counts: TopologyCounts,
    *,
    comparison_operators: bool,
) -> FilterState:
    eligibilities = Eligibilities(
        pod, topology_keys(constraints), comparison_operators=comparison_operators
    )
    return FilterState(
        (
            _hard_constraint(pod, constraint, eligibilities, counts)
            for constraint in _decisive(constraints, counts)
        ),
        pod.namespace,
    )


def _decisive(constraints: Sequence[Constraint], counts: TopologyCounts) -> Iterator[Constraint]:
    """The constraints up to the first on a key that no node has: it fails on every node."""
    for constraint in constraints:
        yield constraint
        if not counts.has_key(constraint.topology_key):
            return


def _hard_constraint(
    pod: PodInfo, constraint: Constraint, eligibilities: Eligibilities, counts: TopologyCounts
) -> HardConstraint:
    key = constraint.topology_key
    # Pods are counted on eligible nodes only; the node being filtered need not be one.
    counted = counts.column(key, eligibilities.of(constraint))
    sums = counts.live_pods(constraint.measure(pod.namespace)).sums(counted)
    return HardConstraint(
        constraint,
        DomainCounts(sums.values, counts.column(key), counted),
        matches_itself=constraint.selector.matches(pod.pod.metadata.labels),
    )
