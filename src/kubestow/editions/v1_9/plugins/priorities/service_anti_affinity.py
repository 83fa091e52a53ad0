"""A custom priority of a Policy, argument `serviceAntiAffinity` (spec 05 §18, 06 §6.6.4).

Pods of a service should not be on nodes with the same value of a label.
"""

import numpy as np
import numpy.typing as npt

from kubestow.api.labels import Selector, selector_from_map
from kubestow.api.owners import services_of
from kubestow.arrays import IntArray
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, PodSet


class ServiceAntiAffinity:
    def __init__(self, name: str, *, label: str) -> None:
        self.name = name
        self._label = label

    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        """Upstream returns the scores in random order; here each belongs to its node."""
        ids = nodes.label_ids(self._label)
        selector = _first_service(attempt)
        if selector is None:
            return np.where(ids > 0, MAX_PRIORITY, 0).astype(np.int64)
        pods = PodSet(frozenset((attempt.pod.namespace,)), selector)
        rows = TopologyCounts.at(nodes.snapshot).pods(InAll((pods,))).rows.array()
        total = int(rows.sum()) + _count_on_ghosts(attempt, pods)
        return spread_by_label(rows[nodes.rows], ids.astype(np.intp), total)


def spread_by_label(counts: IntArray, ids: npt.NDArray[np.intp], total: int) -> IntArray:
    """Scores from the counts of the service's pods on the feasible nodes.

    ids      intp[node], the number of each node's label value; 0 for none
    total    pods of the service anywhere
    Returns int64[node] in 0..10.
    """
    if total == 0:
        scores = np.full(len(counts), MAX_PRIORITY, np.int64)
    else:
        with_value = np.bincount(ids, weights=counts).astype(np.int64)[ids]
        scores = (float(MAX_PRIORITY) * ((total - with_value) / float(total))).astype(np.int64)
    return np.where(ids > 0, scores, 0)


def _first_service(attempt: Attempt) -> Selector | None:
    services = attempt.cluster.objects.services.list_namespace(attempt.pod.namespace)
    found = services_of(attempt.pod.pod, services)
    return selector_from_map(found[0].spec.selector) if found else None


def _count_on_ghosts(attempt: Attempt, pods: PodSet) -> int:
    return sum(
        count
        for info in attempt.cluster.ghosts()
        for pod_class, count in info.class_counts.items()
        if pods.has(pod_class)
    )
