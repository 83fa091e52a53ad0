"""Which nodes would make the spread of pods too uneven (spec 06 §6.3.5, §6.3.6)."""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import NarrowArray, Rows
from kubestow.framework.reuse import RowCodes, Rule
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import KEYS_MAX, TopologyCounts
from kubestow.index.topology.domains import ABSENT, DomainSums
from kubestow.index.topology.reading import pods
from kubestow.index.topology.what_if import DomainCounts
from kubestow.plugins.pod_topology_spread.constraints import (
    Constraint,
    Eligibilities,
    Pausing,
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
    """One constraint with its counts: matching pods per domain, on the nodes that count.

    allowed   the largest count with which a node passes, as of the last `recount`
    """

    __slots__ = ("allowed", "constraint", "counts", "matches_itself")

    def __init__(
        self, constraint: Constraint, counts: DomainCounts, *, matches_itself: bool
    ) -> None:
        self.constraint = constraint
        self.counts = counts
        self.matches_itself = matches_itself
        self.allowed = 0

    def passes_all(self) -> bool:
        """Whether every node passes, as far as the largest count shows it."""
        counts = self.counts
        return not counts.column.populations.item(ABSENT) and counts.highest() <= self.allowed

    def codes(self, rows: Rows) -> NarrowArray | None:
        """int[node]: the verdicts; None if every node passes."""
        if self.passes_all():
            return None
        values, column = self.counts.amounts.array(), self.counts.column
        ids = column.ids[rows]
        # By domain or by node, whichever are fewer. As bytes, True is UNEVEN.
        if len(values) <= len(ids):
            codes = (values > self.allowed).view(np.int8)
            codes[ABSENT] = UNLABELLED
            return codes.take(ids)
        codes = (values.take(ids) > self.allowed).view(np.int8)
        if column.populations[ABSENT]:
            codes[ids == ABSENT] = UNLABELLED
        return codes

    def basis(self) -> Hashable | None:
        """Equal where the same nodes pass, but for nodes that changed; None in a simulation."""
        sums = self.counts.sums
        if sums is None:
            return None
        if self.counts.column.has_single_rows():
            return sums, self.allowed
        # A pod on one node of a domain changes the codes of the others.
        return sums, (sums.amounts.array() > self.allowed).tobytes()

    def code_of(self, row: int) -> int:
        """The verdict on the row's node."""
        domain = self.counts.column.ids.item(row)
        if domain == ABSENT:
            return UNLABELLED
        return UNEVEN if self.counts.amounts.item(domain) > self.allowed else 0

    def add(self, other: PodInfo, row: int, sign: int) -> None:
        # Spec 06 §6.3.6: unlike the counts, this includes terminating pods and a selector that
        # matches everything; a count may even become negative.
        if self.constraint.selector.matches(other.pod.metadata.labels):
            self.counts.add(row, sign)

    def clone(self) -> "HardConstraint":
        return HardConstraint(
            self.constraint, self.counts.clone(), matches_itself=self.matches_itself
        )

    def recount(self) -> None:
        """Find `allowed` again: counts may have changed."""
        # skew = count + itself - lowest, and must not exceed max_skew.
        self.allowed = self.constraint.max_skew + self._lowest() - self.matches_itself

    def _lowest(self) -> int:
        domain_count = self.counts.counted.domain_count
        # Spec 06 §6.3.5: missing domains count as empty ones; so does having no domain at all.
        if domain_count < self.constraint.min_domains or not domain_count:
            return 0
        return self.counts.lowest()


class FilterState(Rule):
    """The hard constraints of an attempt, in order."""

    __slots__ = ("_is_shared", "_layout_token", "constraints", "namespace")

    def __init__(
        self, constraints: Sequence[HardConstraint], namespace: str, layout_token: object = None
    ) -> None:
        """`layout_token` is that of the counts. A simulation changes a copy of the constraints."""
        self.constraints = constraints
        self.namespace = namespace
        self._layout_token = layout_token
        self._is_shared = True
        for constraint in constraints:
            constraint.recount()

    def passes_all(self) -> bool:
        """Whether it is known, without a look at the nodes, that every node passes."""
        return all([constraint.passes_all() for constraint in self.constraints])

    def codes(self, nodes: Nodes) -> NarrowArray | None:
        """int[node]: the first constraint in order that fails decides; None if none does."""
        codes: NarrowArray | None = None
        for constraint in self.constraints:
            more = constraint.codes(nodes.rows)
            if more is not None:
                codes = more if codes is None else np.where(codes == 0, more, codes)
        return codes

    def row_codes(self) -> RowCodes | None:
        """The codes of the filter, node by node; None in a simulation."""
        bases = [constraint.basis() for constraint in self.constraints]
        return None if None in bases else RowCodes((self._layout_token, *bases), self._code_of)

    def _code_of(self, row: int) -> int:
        for constraint in self.constraints:
            code = constraint.code_of(row)
            if code:
                return code
        return 0

    def add(self, other: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod on the row's node, in a simulation."""
        if other.namespace == self.namespace:
            if self._is_shared:
                self.constraints = self.copied()
                self._is_shared = False
            for constraint in self.constraints:
                constraint.add(other, row, sign)
            for constraint in self.constraints:
                constraint.recount()

    def clone(self) -> "FilterState":
        constraints = self.constraints if self._is_shared else self.copied()
        clone = type(self)(constraints, self.namespace, self._layout_token)
        clone._is_shared = self._is_shared
        return clone

    def copied(self) -> Sequence[HardConstraint]:
        """The constraints with counts that may change."""
        return [each.clone() for each in self.constraints]


class HardConstraints:
    """The hard constraints of pods of one kind, with where their counts are found.

    count   how many there are
    """

    __slots__ = ("_found", "_layout_token", "_prepared", "_read", "count")

    def __init__(
        self, pod: PodInfo, constraints: Sequence[Constraint], *, comparison_operators: bool
    ) -> None:
        eligibilities = Eligibilities(
            pod, topology_keys(constraints), comparison_operators=comparison_operators
        )
        # Pods are counted on eligible nodes only; the node being filtered need not be one.
        self._read = [
            (
                constraint,
                pods(
                    constraint.topology_key,
                    constraint.measure(pod.namespace),
                    eligibilities.of(constraint),
                ),
            )
            for constraint in constraints
        ]
        self.count: Final = len(constraints)
        # Those of the last pod, and what they depend on: mostly the next one has the same.
        self._prepared: list[HardConstraint] = []
        self._found: list[tuple[DomainSums, bool]] = []
        self._layout_token: object = None

    def state(self, pod: PodInfo, counts: TopologyCounts, timer: Pausing) -> FilterState:
        labels = pod.pod.metadata.labels
        are_many = self.count > KEYS_MAX
        found: list[tuple[DomainSums, bool]] = []
        for constraint, reading in self._read:
            if are_many:
                timer.pause()
            reading.refresh(counts)
            found.append((reading.sums, constraint.selector.matches(labels)))
            if not reading.has_key:
                break  # On a key that no node has, it fails on every node.
        if found != self._found or counts.layout_token is not self._layout_token:
            self._found, self._layout_token = found, counts.layout_token
            self._prepared = [
                HardConstraint(
                    constraint,
                    DomainCounts(sums, reading.column, reading.counted),
                    matches_itself=matches_itself,
                )
                for (constraint, reading), (sums, matches_itself) in zip(
                    self._read, found, strict=False
                )
            ]
        return FilterState(self._prepared, pod.namespace, counts.layout_token)
