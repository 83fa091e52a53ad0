"""ServiceAffinity: pods of a service on nodes with equal labels, or with different ones.

Only a Policy enables it (spec 06 §6.6.4, 09 §13.4). Upstream takes the first of a service's pods in
the order of its snapshot, and so does this.
"""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.labels import Selector, equality, selector_from_map
from kubestow.api.owners import services_of
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PluginArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.status import Status
from kubestow.index.node_match import labels_match
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, Live, PodSet

_ELSEWHERE: Final = Status.unschedulable("node(s) didn't match service affinity")
_PRE_SCORE: Final = "PreScoreServiceAffinity"


class ServiceAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class ServiceAffinity120:
    name: ClassVar[str] = "ServiceAffinity"
    args_type: ClassVar[type[ServiceAffinityArgs]] = ServiceAffinityArgs

    def __init__(self, args: ServiceAffinityArgs, handle: Handle) -> None:
        self._labels = args.affinity_labels
        self._spread_by = args.anti_affinity_labels_preference
        self._services = handle.objects.services

    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL),
        ]

    # --- filtering ---

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        selected = pod.pod.spec.node_selector or {}
        wanted = {label: selected[label] for label in self._labels if label in selected}
        if len(wanted) < len(self._labels) and self._selector(pod) is not None:
            found = _labels_of_first_peer(pod, nodes.snapshot)
            for label in self._labels:
                if label in found:
                    wanted.setdefault(label, found[label])
        if not wanted:
            return None
        required = tuple(equality(key, value) for key, value in sorted(wanted.items()))
        return (~labels_match(nodes, required)).astype(np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _ELSEWHERE

    # --- scoring ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        state.write(_PRE_SCORE, nodes)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        selector = self._selector(pod)
        if selector is None or selector.is_empty:
            return 0
        pods = Live(InAll((PodSet(frozenset((pod.namespace,)), selector),)))
        return TopologyCounts.at(nodes.snapshot).pods(pods).rows.array()[nodes.rows]

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        """Add up, over the labels, the share of the service's pods on nodes with another value."""
        nodes: Nodes = state.read(_PRE_SCORE)
        total, sums = int(scores.sum()), np.zeros(len(scores))
        for label in self._spread_by:
            ids = nodes.label_ids(label).astype(np.intp)
            shares = np.full(len(scores), float(MAX_NODE_SCORE))
            if total:
                with_value = np.bincount(ids, weights=scores)[ids]
                shares = float(MAX_NODE_SCORE) * ((total - with_value) / float(total))
            sums += np.where(ids > 0, shares / float(len(self._spread_by)), 0.0)
        return sums.astype(np.int64)

    def _selector(self, pod: PodInfo) -> Selector | None:
        """The selector of the first service that selects the pod."""
        found = services_of(pod.pod, self._services.list_namespace(pod.namespace))
        return selector_from_map(found[0].spec.selector) if found else None


def _labels_of_first_peer(pod: PodInfo, snapshot: Snapshot) -> dict[str, str]:
    """Labels of the node of the first pod that has all labels of this one; none without one."""
    peers = PodSet(frozenset((pod.namespace,)), selector_from_map(pod.pod.metadata.labels))
    rows = np.flatnonzero(TopologyCounts.at(snapshot).pods(InAll((peers,))).rows.array())
    return dict(snapshot.nodes[int(rows[0])].metadata.labels) if len(rows) else {}
