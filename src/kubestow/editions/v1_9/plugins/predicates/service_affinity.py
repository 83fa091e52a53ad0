"""A custom predicate of a Policy, argument `serviceAffinity` (spec 05 §17.2, 06 §6.6.4).

The pods of a service go to nodes with the same values of some labels as the node of its first pod.
"""

from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from kubestow.api.labels import equality, selector_from_map
from kubestow.api.owners import services_of
from kubestow.arrays import BoolArray
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.node_match import labels_match
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, PodSet

_ELSEWHERE: Final = code_of("CheckServiceAffinity")


class ServiceAffinity:
    reads: ClassVar[Reads] = Reads.CLUSTER | Reads.SERVICES

    def __init__(self, name: str, *, labels: Iterable[str]) -> None:
        self.name = name
        self._labels = tuple(labels)

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        selected = attempt.pod.pod.spec.node_selector or {}
        wanted = {label: selected[label] for label in self._labels if label in selected}
        if len(wanted) < len(set(self._labels)) and _has_service(attempt):
            node_labels = _labels_of_first_peer(attempt, nodes.snapshot)
            if isinstance(node_labels, str):
                return Verdicts(np.full(len(nodes), -1, np.int64), (node_labels,))
            for label in self._labels:
                if label in node_labels:
                    wanted.setdefault(label, node_labels[label])
        if not wanted:
            return ALL_FIT
        mask: BoolArray = labels_match(
            nodes, tuple(equality(key, value) for key, value in sorted(wanted.items()))
        )
        return Verdicts(failing_where(~mask, _ELSEWHERE))


def _has_service(attempt: Attempt) -> bool:
    services = attempt.cluster.objects.services.list_namespace(attempt.pod.namespace)
    return bool(services_of(attempt.pod.pod, services))


def _labels_of_first_peer(attempt: Attempt, snapshot: Snapshot) -> dict[str, str] | str:
    """Labels of the node of the first pod that has all labels of this one; none without such a pod.

    Upstream takes any such pod, here it is the first in visiting order. A text is an error: the
    pod's node is gone.
    """
    pod = attempt.pod
    peers = PodSet(frozenset((pod.namespace,)), selector_from_map(pod.pod.metadata.labels))
    rows = np.flatnonzero(TopologyCounts.at(snapshot).pods(InAll((peers,))).rows.array())
    if len(rows):
        return snapshot.nodes[int(rows[0])].metadata.labels
    for info in attempt.cluster.ghosts():
        if any(map(peers.has, info.class_counts)):
            return f'node "{info.name}" not found'
    return {}
