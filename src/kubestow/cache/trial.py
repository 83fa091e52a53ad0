"""Pods put on nodes of the snapshot, or taken off, for a trial that is undone afterwards.

A group is tried on one snapshot: each member sees those placed before it, and the live cache none
of them (spec 11 §7.3). The first change of a row replaces the snapshot's reference to the live
entry by a copy; `undo` puts all references back, so nothing has to be computed backwards.

Not kept up to date during a trial, as upstream: which nodes have pods with affinity, and which
claims are used. So the terms of a pod on trial count only on rows that had such pods before;
`hidden_terms` has those that do not.
"""

from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.owned_terms import owned_terms
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import CacheError


class SnapshotTrial:
    """Changes of one snapshot. One trial at a time; `undo` ends it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._live: dict[int, NodeInfo] = {}

    def add(self, pod: PodInfo) -> None:
        """Put the pod on the node it names."""
        for row in self._rows(pod):
            info = self._changeable(row)
            info.add_pod(pod)
            if pod.has_affinity:
                self._hide(row, info, pod, 1)
            self._snapshot.show(row, info)

    def remove(self, pod: PodInfo) -> None:
        """Take the pod off its node."""
        for row in self._rows(pod):
            info = self._changeable(row)
            info.remove_pod(pod.pod)
            if pod.has_affinity:
                self._hide(row, info, pod, -1)
            self._snapshot.show(row, info)

    def undo(self) -> None:
        """Make the snapshot show what it showed before."""
        for row, info in self._live.items():
            self._snapshot.show(row, info)
        self._live.clear()
        self._snapshot.hidden_terms.clear()
        self._snapshot.trim_log()

    def _rows(self, pod: PodInfo) -> list[int]:
        name = pod.pod.spec.node_name
        rows = list(self._snapshot.rows_of(name))
        if not rows:
            raise CacheError(f'nodeinfo not found for node name "{name}"')
        return rows

    def _changeable(self, row: int) -> NodeInfo:
        info = self._snapshot.node_infos[row]
        if row in self._live:
            return info
        self._live[row] = info
        return info.clone()

    def _hide(self, row: int, info: NodeInfo, pod: PodInfo, sign: int) -> None:
        """Leave out terms that no rule reads, because the node is not among those with terms."""
        columns = self._snapshot.columns
        is_listed, is_apart = columns.has_affinity[row], columns.has_required_anti_affinity[row]
        hidden = self._snapshot.hidden_terms.setdefault(row, {})
        for term in owned_terms(pod):
            if is_apart if term.kind == "RequiredAntiAffinity" else is_listed:
                continue
            info.term_counts.pop(term, None)
            count = hidden.get(term, 0) + sign
            if count > 0:
                hidden[term] = count
            else:
                hidden.pop(term, None)
        if not hidden:
            del self._snapshot.hidden_terms[row]
