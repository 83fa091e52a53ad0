"""Scores nodes by preferred terms, of the incoming pod and of running pods (spec 06 §6.2.8)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.owned_terms import OwnedTerm
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT, DomainColumn
from kubestow.plugins.inter_pod_affinity.existing import ExistingTerms, Pulling
from kubestow.plugins.inter_pod_affinity.terms import TopologyPreference


class DomainScores(NamedTuple):
    """The score of each domain: values[domain], 0 for no domain."""

    column: DomainColumn
    values: IntArray


def domain_scores(
    preferred: Iterable[TopologyPreference], pulling: Iterable[Pulling], counts: TopologyCounts
) -> list[DomainScores]:
    """Scores of the domains per key, to be summed; empty if no term matches any pod.

    Matches whose weights add up to 0 do not make it empty (spec 06 §6.2.8, step 5).
    """
    scores: list[DomainScores] = []
    for hits, pull in chain([each.readings for each in preferred], pulling):
        hits.refresh(counts)
        if hits.sums.total:
            pull.refresh(counts)
            scores.append(DomainScores(pull.column, pull.sums.amounts.array()))
    return scores


def hidden_scores(
    existing: ExistingTerms,
    pod: PodInfo,
    namespace_labels: Mapping[str, str],
    counts: TopologyCounts,
    hidden: Mapping[int, Mapping[OwnedTerm, int]],
) -> list[DomainScores]:
    """Scores by terms of pods on trial that are on none of the nodes with terms.

    Upstream looks at all nodes, and so at these terms, only for pods with preferred terms.
    """
    by_key: dict[str, DomainScores] = {}
    namespace, labels = pod.namespace, pod.pod_class.labels
    for row, terms in hidden.items():
        for owned, count in terms.items():
            term = owned.term
            is_selected = term.matches(namespace, labels, namespace_labels)
            if not is_selected or not existing.hits.of(owned):
                continue
            column = counts.column(term.topology_key)
            domain = int(column.ids[row])
            if domain == ABSENT:
                continue
            found = by_key.get(term.topology_key)
            if found is None:
                found = DomainScores(column, np.zeros_like(column.populations))
                by_key[term.topology_key] = found
            found.values[domain] += existing.pull.of(owned) * count
    return list(by_key.values())


def raw_scores(scores: Sequence[DomainScores], nodes: Nodes) -> IntArray:
    """int64[node]: the sum of the scores of each node's domains; may be negative."""
    rows = nodes.rows
    column, values = scores[0]
    ids = column.ids[rows]
    raw = values.take(ids)
    for other, values in scores[1:]:
        raw += values.take(ids if other is column else other.ids[rows])
    return raw


def normalised(raw: IntArray) -> IntArray:
    """Scale the scores of all feasible nodes to 0..100; where they are all equal, to 0."""
    if len(raw) == 0:
        return raw
    lowest, highest = raw.item(raw.argmin()), raw.item(raw.argmax())
    if lowest == highest:
        return np.zeros_like(raw)
    above = raw - lowest if lowest else raw
    if highest - lowest >= len(raw):
        return _scaled(above, highest - lowest)
    # Many nodes have few distinct scores: then each is computed once and looked up.
    return _scaled(np.arange(highest - lowest + 1), highest - lowest).take(above)


def _scaled(above: IntArray, most: int) -> IntArray:
    # Spec 06 §6.2.8: divide first, then multiply, in doubles. 29 of 100 gives 28.
    return (float(MAX_NODE_SCORE) * (above / float(most))).astype(np.int64)
