"""Scores nodes by preferred terms, of the incoming pod and of running pods (spec 06 §6.2.8)."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.owned_terms import OwnedTerm, TermKind
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT, DomainColumn, DomainSums
from kubestow.index.topology.measures import Exposure, Pull
from kubestow.plugins.inter_pod_affinity.terms import TopologyPreference

# Required anti-affinity never scores: where it matters the node is not feasible.
_SCORING_KINDS: Final[tuple[TermKind, ...]] = (
    "RequiredAffinity",
    "PreferredAffinity",
    "PreferredAntiAffinity",
)


class DomainScores(NamedTuple):
    """The score of each domain: values[domain], 0 for no domain."""

    column: DomainColumn
    values: IntArray


class ExistingTerms:
    """The weights of running pods' terms for other pods; the weight is the plugin's argument."""

    def __init__(self, hard_pod_affinity_weight: int) -> None:
        self._pull = Pull(
            required_affinity=hard_pod_affinity_weight,
            preferred_affinity=1,
            preferred_anti_affinity=-1,
            is_weighted=True,
        )
        self._hits = Pull(
            required_affinity=int(hard_pod_affinity_weight > 0),
            preferred_affinity=1,
            preferred_anti_affinity=1,
        )

    def sums(
        self, pod: PodInfo, namespace_labels: Mapping[str, str], counts: TopologyCounts
    ) -> Iterable[tuple[DomainColumn, DomainSums]]:
        """Per topology key with matching terms: the key's domains, and the sum of the weights."""
        terms = counts.terms
        selecting = terms.selecting(pod.pod_class, namespace_labels)
        if not selecting:
            return
        for key in terms.topology_keys(*_SCORING_KINDS):
            if not counts.has_key(key):
                continue
            hits = terms.tally(Exposure(selecting, key, self._hits))
            if not hits.weights:
                continue
            column = counts.column(key)
            if hits.sums(column).total:
                yield column, terms.tally(Exposure(selecting, key, self._pull)).sums(column)

    def hidden_scores(
        self,
        pod: PodInfo,
        namespace_labels: Mapping[str, str],
        counts: TopologyCounts,
        hidden: Mapping[int, Mapping[OwnedTerm, int]],
    ) -> list[DomainScores]:
        """The same for terms of pods on trial that are on none of the nodes with terms.

        Upstream looks at all nodes, and so at these terms, only for pods with preferred terms.
        """
        by_key: dict[str, DomainScores] = {}
        namespace, labels = pod.namespace, pod.pod_class.labels
        for row, terms in hidden.items():
            for owned, count in terms.items():
                term = owned.term
                is_selected = term.matches(namespace, labels, namespace_labels)
                if not is_selected or not self._hits.of(owned):
                    continue
                column = counts.column(term.topology_key)
                domain = int(column.ids[row])
                if domain == ABSENT:
                    continue
                found = by_key.get(term.topology_key)
                if found is None:
                    found = DomainScores(column, np.zeros_like(column.populations))
                    by_key[term.topology_key] = found
                found.values[domain] += self._pull.of(owned) * count
        return list(by_key.values())


def domain_scores(
    pod: PodInfo,
    *,
    preferred: tuple[TopologyPreference, ...],
    existing: ExistingTerms,
    namespace_labels: Mapping[str, str],
    counts: TopologyCounts,
) -> list[DomainScores]:
    """Scores of the domains per key, to be summed; empty if no term matches any pod.

    Matches whose weights add up to 0 do not make it empty (spec 06 §6.2.8, step 5).
    """
    scores: list[DomainScores] = []
    for key, pull, hits in preferred:
        if not counts.has_key(key):
            continue  # No node is in a domain of it.
        column = counts.column(key)
        if counts.pods(hits).sums(column).total:
            scores.append(DomainScores(column, counts.pods(pull).sums(column).values))
    for column, sums in existing.sums(pod, namespace_labels, counts):
        scores.append(DomainScores(column, sums.values))
    return scores


def raw_scores(scores: list[DomainScores], nodes: Nodes) -> IntArray:
    """int64[node]: the sum of the scores of each node's domains; may be negative."""
    raw = np.zeros(len(nodes), np.int64)
    for column, values in scores:
        raw += values.take(column.ids[nodes.rows])
    return raw


def normalised(raw: IntArray) -> IntArray:
    """Scale the scores of all feasible nodes to 0..100; where they are all equal, to 0."""
    if len(raw) == 0:
        return raw
    lowest, highest = int(raw.min()), int(raw.max())
    if lowest == highest:
        return np.zeros_like(raw)
    # Spec 06 §6.2.8: divide first, then multiply, in doubles. 29 of 100 gives 28.
    shares = (raw - lowest) / float(highest - lowest)
    return (float(MAX_NODE_SCORE) * shares).astype(np.int64)
