"""Which nodes required pod (anti-)affinity excludes (spec 06 §6.2.5 to §6.2.7)."""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final, TypeVar

import numpy as np

from kubestow.api.pod_info import AffinityTerms, PodInfo
from kubestow.arrays import BoolArray, NarrowArray, Rows
from kubestow.framework.reuse import RowCodes, Rule
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.domains import ABSENT, VACANT, ByteArray, DomainColumn
from kubestow.index.topology.what_if import DomainCounts
from kubestow.plugins.inter_pod_affinity.standing import (
    FAR,
    FORBIDDEN,
    NEAR,
    RequiredCounts,
    Standing,
)

K = TypeVar("K")

STATUSES: Final = {
    FAR: Status.unresolvable("node(s) didn't match pod affinity rules"),
    NEAR: Status.unschedulable("node(s) didn't match pod anti-affinity rules"),
    FORBIDDEN: Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
}


class FilterState(Rule):
    """What decides about nodes in an attempt; a simulation changes a copy."""

    __slots__ = (
        "_apart",
        "_forbidden",
        "_forbidding",
        "_is_shared",
        "_near",
        "_pod",
        "_required",
        "_standing",
    )

    def __init__(self, pod: PodInfo, standing: Standing, required: RequiredCounts) -> None:
        self._pod = pod
        self._standing = standing
        self._required = required
        self._near, self._apart = required.near, required.apart
        self._forbidden = required.forbidden
        self._is_shared = True
        # By the terms of pods that were added or removed: `_forbidding_keys`. For all copies.
        self._forbidding: dict[AffinityTerms, Mapping[str, int]] = {}

    def passes_all(self) -> bool:
        """Whether it is known, without a look at the nodes, that every node passes."""
        for by_key in (self._forbidden, self._apart):
            for counts in by_key.values():
                if not counts.is_empty():
                    return False
        return all([counts.is_everywhere() for counts in self._near.values()])

    def codes(self, nodes: Nodes) -> NarrowArray | None:
        """int[node]: the first rule each node breaks; None if no node breaks any."""
        rows = nodes.rows
        # One less than the code, so that a node that passes has the largest number.
        found: list[ByteArray] = []
        # Counts of one key are compared by domain, then read for all rows at once.
        by_domain: dict[DomainColumn, ByteArray] = {}
        for code, by_key in ((FORBIDDEN, self._forbidden), (NEAR, self._apart)):
            for counts in by_key.values():
                if counts.is_empty():
                    continue
                vacant, column = counts.kept_vacant(), counts.column
                if vacant is None:
                    found.append(counts.vacant_at(rows) | np.uint8(code - 1))
                    continue
                marked = vacant | np.uint8(code - 1)
                other = by_domain.get(column)
                by_domain[column] = marked if other is None else np.minimum(marked, other)
        found += [marked.take(column.ids[rows]) for column, marked in by_domain.items()]
        if self._near:
            found.append(~self._is_far(rows) * np.uint8(VACANT) | np.uint8(FAR - 1))
        if not found:
            return None
        # Where several fail, the code of the first one stays.
        codes = found[0] if len(found) == 1 else reduce(np.minimum, found)
        codes += 1
        return codes.view(np.int8)

    def row_codes(self) -> RowCodes | None:
        """The codes of the filter, node by node; None in a simulation."""
        if not self._is_shared:
            return None
        is_first = bool(self._near) and self._may_be_first()
        return self._required.row_codes(self._standing.counts.layout_token, is_first=is_first)

    def is_forbidden(self, nodes: Nodes) -> BoolArray | None:
        """bool[node]: whether terms of other pods keep this one out; None if nowhere."""
        masks = [counts.at(nodes.rows) > 0 for counts in self._forbidden.values()]
        return _any(masks) if masks else None

    def add(self, other: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod on the row's node, in a simulation."""
        if self._is_shared:
            self._copy_counts()
        pod_class, required = other.pod_class, self._standing.required
        amount = required.near.weigh(pod_class) * sign
        if amount:
            for counts in self._near.values():
                counts.add(row, amount)
        for key, measure in required.apart:
            amount = measure.weigh(pod_class) * sign
            if amount:
                self._apart[key].add(row, amount)
        if other.has_required_anti_affinity:
            self._add_forbidden(other, row, sign)

    def clone(self) -> "FilterState":
        clone = FilterState.__new__(FilterState)
        clone._pod, clone._standing, clone._required = self._pod, self._standing, self._required
        clone._near, clone._apart, clone._forbidden = self._near, self._apart, self._forbidden
        clone._is_shared, clone._forbidding = self._is_shared, self._forbidding
        if not self._is_shared:
            clone._copy_counts()
        return clone

    def _copy_counts(self) -> None:
        self._near = _clones(self._near)
        self._apart = _clones(self._apart)
        self._forbidden = _clones(self._forbidden)
        self._is_shared = False

    def _is_far(self, rows: Rows) -> BoolArray:
        """bool[node]: whether some affinity term has no matching pod in the node's domain."""
        near = self._near.values()
        if self._may_be_first():
            # Spec 06 §6.2.6, bootstrap: the node only has to be in a domain of every key.
            return _any(counts.column.ids[rows] == ABSENT for counts in near)
        # A node without the label reads 0, so it is far as well.
        return _any(counts.vacant_at(rows) != 0 for counts in near)

    def _may_be_first(self) -> bool:
        """Whether no pod matches the affinity terms yet, and the pod itself does.

        What counts is that no domain has such a pod, not that no such pod runs: pods on nodes
        without the label do not count.
        """
        is_first = all([counts.is_empty() for counts in self._near.values()])
        return is_first and bool(self._standing.required.near.weigh(self._pod.pod_class))

    def _add_forbidden(self, other: PodInfo, row: int, sign: int) -> None:
        counted = self._forbidding.get(other.terms)
        if counted is None:
            counted = self._forbidding[other.terms] = self._forbidding_keys(other.terms)
        for key, count in counted.items():
            if key not in self._forbidden:
                column = self._standing.counts.column(key)
                self._forbidden[key] = DomainCounts(Amounts(len(column.populations)), column)
            self._forbidden[key].add(row, sign * count)

    def _forbidding_keys(self, terms: AffinityTerms) -> Mapping[str, int]:
        """How many of the anti-affinity terms of another pod select this one, by topology key.

        The terms of running pods have been compared with this one: a pod may have thousands.
        """
        standing, pod_class = self._standing, self._pod.pod_class
        selecting, compared = standing.selecting, standing.counts.terms.owned
        counted: dict[str, int] = {}
        for term in terms.required_anti_affinity:
            is_selecting = term in selecting
            if not is_selecting and term not in compared:
                is_selecting = term.matches(
                    pod_class.namespace, pod_class.labels, standing.namespace_labels
                )
            if is_selecting:
                counted[term.topology_key] = counted.get(term.topology_key, 0) + 1
        return counted


def _any(masks: Iterable[BoolArray]) -> BoolArray:
    return reduce(np.logical_or, masks)


def _clones(counts: dict[K, DomainCounts]) -> dict[K, DomainCounts]:
    return {key: domain_counts.clone() for key, domain_counts in counts.items()}
