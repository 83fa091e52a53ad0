"""Which nodes required pod (anti-)affinity excludes (spec 06 §6.2.5 to §6.2.7)."""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final, TypeVar

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, Rows
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT, DomainColumn
from kubestow.index.topology.measures import Exposure, Pull
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
_FORBIDS: Final = Pull(required_anti_affinity=1)


class FilterState:
    """The three counts of an attempt, per topology key.

    near       pods that match all affinity terms of the incoming pod, by column of their keys
    apart      matches of its anti-affinity terms, by key; without keys that no node has
    forbidden  anti-affinity terms of other pods that select it
    """

    __slots__ = ("_apart", "_counts", "_forbidden", "_namespace_labels", "_near", "_pod", "_terms")

    def __init__(
        self,
        pod: PodInfo,
        *,
        terms: RequiredTerms,
        namespace_labels: Mapping[str, str],
        counts: TopologyCounts,
    ) -> None:
        self._pod = pod
        self._terms = terms
        self._namespace_labels = namespace_labels
        self._counts = counts
        self._near = _near_counts(terms, counts)
        self._apart = _apart_counts(terms, counts)
        self._forbidden = _forbidden_counts(pod, namespace_labels, counts)

    @property
    def is_idle(self) -> bool:
        """Whether no node can be excluded: neither by the pod's terms nor by those of others."""
        return not self._near and not self._terms.apart and not self._forbidden

    def codes(self, nodes: Nodes) -> IntArray | None:
        """int64[node]: the first rule each node breaks; None if no node breaks any."""
        rows = nodes.rows
        codes: IntArray | None = None
        # From the last check to the first: where several fail, the code of the first one stays.
        for counts in self._forbidden.values():
            codes = _marked(codes, counts.at(rows) > 0, FORBIDDEN)
        for counts in self._apart.values():
            codes = _marked(codes, counts.at(rows) > 0, NEAR)
        if self._near:
            codes = _marked(codes, self._is_far(rows), FAR)
        return codes

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
            counts = self._apart.get(key)
            amount = 0 if counts is None else measure.weigh(pod_class) * sign
            if counts is not None and amount:
                counts.add(row, amount)
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
        return _any(counts.at(rows) <= 0 for counts in near)

    def _may_be_first(self) -> bool:
        """Whether no pod matches the affinity terms yet, and the pod itself does.

        What counts is that no domain has such a pod, not that no such pod runs: pods on nodes
        without the label do not count.
        """
        has_some = any(counts.values.any() for counts in self._near.values())
        return not has_some and bool(self._terms.near.weigh(self._pod.pod_class))

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


def _near_counts(terms: RequiredTerms, counts: TopologyCounts) -> dict[DomainColumn, DomainCounts]:
    if not terms.near_keys:
        return {}
    tally = counts.pods(terms.near)
    # Keys that no node has share their column.
    columns = dict.fromkeys(map(counts.column, terms.near_keys))
    return {column: DomainCounts(tally.sums(column).values, column) for column in columns}


def _apart_counts(terms: RequiredTerms, counts: TopologyCounts) -> dict[str, DomainCounts]:
    apart: dict[str, DomainCounts] = {}
    for key, measure in terms.apart:
        if not counts.has_key(key):
            continue  # No node is in a domain of it.
        column = counts.column(key)
        apart[key] = DomainCounts(counts.pods(measure).sums(column).values, column)
    return apart


def _forbidden_counts(
    pod: PodInfo, namespace_labels: Mapping[str, str], counts: TopologyCounts
) -> dict[str, DomainCounts]:
    forbidden: dict[str, DomainCounts] = {}
    terms = counts.terms
    selecting = terms.selecting(pod.pod_class, namespace_labels)
    if not selecting:
        return forbidden
    for key in terms.topology_keys("RequiredAntiAffinity"):
        if not counts.has_key(key):
            continue
        tally = terms.tally(Exposure(selecting, key, _FORBIDS))
        if tally.weights:
            column = counts.column(key)
            sums = tally.sums(column)
            if sums.total:
                forbidden[key] = DomainCounts(sums.values, column)
    return forbidden


def _marked(codes: IntArray | None, failed: BoolArray, code: int) -> IntArray | None:
    """The codes, with this one where the check failed; None as long as no node fails."""
    if not np.count_nonzero(failed):
        return codes
    return failed * np.int64(code) if codes is None else np.where(failed, code, codes)


def _any(masks: Iterable[BoolArray]) -> BoolArray:
    return reduce(np.logical_or, masks)


def _clones(counts: dict[K, DomainCounts]) -> dict[K, DomainCounts]:
    return {key: domain_counts.clone() for key, domain_counts in counts.items()}
