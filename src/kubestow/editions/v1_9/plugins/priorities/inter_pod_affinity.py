"""InterPodAffinityPriority: preferred affinity of the pod and of running pods (spec 06 §6.6.2)."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from kubestow.api.pod_info import WeightedTerm
from kubestow.arrays import IntArray
from kubestow.cache.owned_terms import TermKind
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import DomainColumn
from kubestow.index.topology.measures import Exposure, InAll, PodSet, Pull

# Required anti-affinity never scores: where it matters the node is not feasible.
_SCORING_KINDS: Final[tuple[TermKind, ...]] = (
    "RequiredAffinity",
    "PreferredAffinity",
    "PreferredAntiAffinity",
)
_NO_LABELS: Final[Mapping[str, str]] = {}


class InterPodAffinityPriority:
    """`hard_weight`: the weight of a running pod's required affinity for the pods it selects."""

    def __init__(self, name: str = "InterPodAffinityPriority", *, hard_weight: int = 1) -> None:
        self.name = name
        self._pull = Pull(
            required_affinity=hard_weight,
            preferred_affinity=1,
            preferred_anti_affinity=-1,
            is_weighted=True,
        )

    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        raw = np.zeros(len(nodes), np.int64)
        counts = TopologyCounts.at(nodes.snapshot)
        for column, values in (*_wanted(attempt, counts), *self._exposed(attempt, counts)):
            raw += values.take(column.ids[nodes.rows])
        return scaled(raw)

    def _exposed(
        self, attempt: Attempt, counts: TopologyCounts
    ) -> Iterator[tuple[DomainColumn, IntArray]]:
        """The weights of running pods' terms that select this one, by domain."""
        terms = counts.terms
        selecting = terms.selecting(attempt.pod.pod_class, _NO_LABELS)
        for key in terms.topology_keys(*_SCORING_KINDS):
            tally = terms.tally(Exposure(selecting, key, self._pull))
            if tally.weights:
                column = counts.column(key)
                yield column, tally.sums(column).amounts.array()


def _wanted(attempt: Attempt, counts: TopologyCounts) -> Iterator[tuple[DomainColumn, IntArray]]:
    """The weights of the pod's own preferred terms, by domain."""
    pod = attempt.pod
    entries: list[tuple[WeightedTerm, int]] = [
        *((entry, entry.weight) for entry in pod.preferred_affinity_terms),
        *((entry, -entry.weight) for entry in pod.preferred_anti_affinity_terms),
    ]
    for entry, weight in entries:
        term = entry.term
        column = counts.column(term.topology_key)
        pods = counts.pods(InAll((PodSet(term.namespaces, term.selector),)))
        yield column, weight * pods.sums(column).amounts.array()


def scaled(raw: IntArray) -> IntArray:
    """Scale sums of weights to 0..10; the range always includes zero (spec 06 §6.6.2)."""
    highest, lowest = int(raw.max(initial=0)), int(raw.min(initial=0))
    if highest == lowest:
        return np.zeros_like(raw)
    # Divide first, then multiply, in doubles; truncate at the end.
    return (float(MAX_PRIORITY) * ((raw - lowest) / float(highest - lowest))).astype(np.int64)
