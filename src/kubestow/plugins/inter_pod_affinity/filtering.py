"""Which nodes required pod (anti-)affinity excludes (spec 06 §6.2.5 to §6.2.7)."""

from collections.abc import Iterable, Mapping
from functools import partial, reduce
from typing import Final, TypeVar

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, NarrowArray, Rows
from kubestow.framework.reuse import RowCodes
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT, VACANT, ByteArray, DomainColumn
from kubestow.index.topology.reading import Reading
from kubestow.index.topology.what_if import DomainCounts
from kubestow.plugins.inter_pod_affinity.terms import RequiredTerms

K = TypeVar("K")

FAR: Final = 1
NEAR: Final = 2
FORBIDDEN: Final = 3
STATUSES: Final = {
    FAR: Status.unresolvable("node(s) didn't match pod affinity rules"),
    NEAR: Status.unschedulable("node(s) didn't match pod anti-affinity rules"),
    FORBIDDEN: Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
}


class FilterState:
    """The three counts of an attempt, per topology key.

    near       pods that match all affinity terms of the incoming pod, by column of their keys
    apart      matches of its anti-affinity terms, by key
    forbidden  anti-affinity terms of other pods that select it, by key; without keys that have none
    """

    __slots__ = ("_apart", "_counts", "_forbidden", "_namespace_labels", "_near", "_pod", "_terms")

    def __init__(
        self,
        pod: PodInfo,
        *,
        terms: RequiredTerms,
        forbidding: Iterable[Reading],
        namespace_labels: Mapping[str, str],
        counts: TopologyCounts,
    ) -> None:
        """The readings must be fresh."""
        self._pod = pod
        self._terms = terms
        self._namespace_labels = namespace_labels
        self._counts = counts
        # Keys that no node has share their column.
        self._near: dict[DomainColumn, DomainCounts] = {}
        self._apart: dict[str, DomainCounts] = {}
        self._forbidden: dict[str, DomainCounts] = {}
        for each in terms.near_readings:
            self._near[each.column] = DomainCounts(each.sums, each.column)
        for each in terms.apart_readings:
            self._apart[each.key] = DomainCounts(each.sums, each.column)
        for each in forbidding:
            self._forbidden[each.key] = DomainCounts(each.sums, each.column)

    def passes_all(self) -> bool:
        """Whether it is known, without a look at the nodes, that every node passes."""
        if self._forbidden:
            return False
        return all([counts.is_empty() for counts in self._apart.values()]) and all(
            [counts.is_everywhere() for counts in self._near.values()]
        )

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
        """The same codes node by node; None in a simulation."""
        is_first = bool(self._near) and self._may_be_first()
        basis: list[object] = [self._counts.edition, is_first]
        for code, found in ((FAR, self._near), (NEAR, self._apart), (FORBIDDEN, self._forbidden)):
            basis.append(code)
            for counts in found.values():
                if counts.sums is None:
                    return None
                basis.append(counts.sums)
                # Where nodes share a domain, a pod on one changes the codes of others.
                if not counts.column.has_single_rows():
                    basis.append(counts.sums.vacant().tobytes())
        return RowCodes(tuple(basis), partial(self._code_of, is_first=is_first))

    def _code_of(self, row: int, *, is_first: bool) -> int:
        """The first rule that the row's node breaks, in the order of the codes."""
        for counts in self._near.values():
            is_far = counts.column.ids.item(row) == ABSENT if is_first else counts.in_row(row) <= 0
            if is_far:
                return FAR
        for code, by_key in ((NEAR, self._apart), (FORBIDDEN, self._forbidden)):
            for counts in by_key.values():
                if counts.in_row(row) > 0:
                    return code
        return 0

    def is_forbidden(self, nodes: Nodes) -> BoolArray | None:
        """bool[node]: whether terms of other pods keep this one out; None if nowhere."""
        masks = [counts.at(nodes.rows) > 0 for counts in self._forbidden.values()]
        return _any(masks) if masks else None

    def add(self, other: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod on the row's node, in a simulation."""
        pod_class = other.pod_class
        amount = self._terms.near.weigh(pod_class) * sign
        if amount:
            for counts in self._near.values():
                counts.add(row, amount)
        for key, measure in self._terms.apart:
            amount = measure.weigh(pod_class) * sign
            if amount:
                self._apart[key].add(row, amount)
        if other.has_required_anti_affinity:
            self._add_forbidden(other, row, sign)

    def clone(self) -> "FilterState":
        copy = FilterState.__new__(FilterState)
        copy._pod = self._pod
        copy._terms = self._terms
        copy._namespace_labels = self._namespace_labels
        copy._counts = self._counts
        copy._near = _clones(self._near)
        copy._apart = _clones(self._apart)
        copy._forbidden = _clones(self._forbidden)
        return copy

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
        return is_first and bool(self._terms.near.weigh(self._pod.pod_class))

    def _add_forbidden(self, other: PodInfo, row: int, sign: int) -> None:
        pod_class = self._pod.pod_class
        for term in other.required_anti_affinity_terms:
            if not term.matches(pod_class.namespace, pod_class.labels, self._namespace_labels):
                continue
            key = term.topology_key
            if key not in self._forbidden:
                column = self._counts.column(key)
                self._forbidden[key] = DomainCounts(np.zeros_like(column.populations), column)
            self._forbidden[key].add(row, sign)


def filter_state(
    pod: PodInfo,
    *,
    terms: RequiredTerms,
    forbidding: Iterable[Reading],
    namespace_labels: Mapping[str, str],
    counts: TopologyCounts,
) -> FilterState | None:
    """None if no node can be excluded: neither by the pod's terms nor by those of others."""
    found: list[Reading] = []
    for reading in forbidding:
        reading.refresh(counts)
        if reading.sums.total:
            found.append(reading)
    if not found and not terms.near_readings and not terms.apart_readings:
        return None
    for reading in (*terms.near_readings, *terms.apart_readings):
        reading.refresh(counts)
    return FilterState(
        pod, terms=terms, forbidding=found, namespace_labels=namespace_labels, counts=counts
    )


def _any(masks: Iterable[BoolArray]) -> BoolArray:
    return reduce(np.logical_or, masks)


def _clones(counts: dict[K, DomainCounts]) -> dict[K, DomainCounts]:
    return {key: domain_counts.clone() for key, domain_counts in counts.items()}
