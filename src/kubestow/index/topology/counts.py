"""Counts of pods and of their affinity terms per node and domain, as of the snapshot (spec 06
§6.5).

Both topology plugins, and all profiles, read the same counts. They belong to a snapshot and follow
its log of changes: whoever asks first in a cycle brings them up to date, by comparing the rows that
changed with what is on record for them. A cycle pays for the rows that changed since the last one
and for the arrays it reads; no cycle walks over pods.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from weakref import WeakKeyDictionary, ref

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod_info import PodClass
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.index.topology.domains import (
    EVERY_NODE,
    DomainColumn,
    DomainIds,
    Eligibility,
    TopologyKey,
)
from kubestow.index.topology.pod_sets import PodLedger
from kubestow.index.topology.tallies import Measure, Tally
from kubestow.index.topology.term_ledger import TermLedger
from kubestow.index.tracked import Depends

_NO_NODE: Final = Node()


class TopologyCounts:
    """The counts of one snapshot. Get them with `at`, in every step of a cycle that needs them."""

    def __init__(self, snapshot: Snapshot) -> None:
        # Kept weakly, because the counts are kept for as long as the snapshot is.
        self._snapshot = ref(snapshot)
        self._log = snapshot.log
        self._epoch = self._log.epoch
        self._node_mark = self._log.mark(Depends.NODE)
        self._pod_mark = self._log.mark(Depends.PODS)
        # The Node objects as last seen: many updates of a node change neither labels nor taints.
        self._nodes: list[Node] = list(snapshot.nodes)
        self._keys: dict[str, TopologyKey] = {}
        self._pods = PodLedger(_class_counts)
        self._live_pods = PodLedger(_live_class_counts)
        self._terms = TermLedger()
        self._ledgers = (self._pods, self._live_pods, self._terms)

    @staticmethod
    def at(snapshot: Snapshot) -> "TopologyCounts":
        """The counts as of this snapshot's last refresh."""
        counts = _COUNTS.get(snapshot)
        if counts is None:
            counts = _COUNTS[snapshot] = TopologyCounts(snapshot)
        else:
            counts._catch_up(snapshot)
        return counts

    def column(self, key: str, eligibility: Eligibility = EVERY_NODE) -> DomainColumn:
        """The rows' domains of a topology key, as far as rows are eligible."""
        snapshot = self._current()
        topology = self._keys.get(key)
        if topology is None:
            topology = self._keys[key] = TopologyKey(key, snapshot.nodes)
        if eligibility is EVERY_NODE:
            return topology.every_node
        return topology.column(eligibility, snapshot.view())

    def pods(self, measure: Measure[PodClass]) -> Tally[PodClass]:
        """All pods that the measure counts, terminating ones too."""
        self._pods.open(self._infos)
        return self._pods.tally(measure)

    def live_pods(self, measure: Measure[PodClass]) -> Tally[PodClass]:
        """The pods that the measure counts and that are not being deleted."""
        self._live_pods.open(self._infos)
        return self._live_pods.tally(measure)

    @property
    def terms(self) -> TermLedger:
        """The affinity terms that pods own."""
        self._terms.open(self._infos)
        return self._terms

    @property
    def _infos(self) -> Sequence[NodeInfo]:
        return self._current().node_infos

    def _current(self) -> Snapshot:
        snapshot = self._snapshot()
        assert snapshot is not None, "the snapshot is gone, and these counts with it"
        return snapshot

    # --- following the snapshot ---

    def _catch_up(self, snapshot: Snapshot) -> None:
        log = self._log
        if log.epoch != self._epoch:
            self._reorder(snapshot)
        mark = log.mark(Depends.NODE)
        if mark != self._node_mark:
            self._update_nodes(snapshot, log.since(Depends.NODE, self._node_mark))
            self._node_mark = mark
        mark = log.mark(Depends.PODS)
        if mark != self._pod_mark:
            rows = log.since(Depends.PODS, self._pod_mark)
            infos = snapshot.node_infos
            # No log that far back means that any row may differ; comparing finds those that do.
            for row in range(len(infos)) if rows is None else dict.fromkeys(rows):
                for ledger in self._ledgers:
                    ledger.update(row, infos[row])
            self._pod_mark = mark

    def _reorder(self, snapshot: Snapshot) -> None:
        sources = self._log.reorders_since(self._epoch)
        self._epoch = self._log.epoch
        if sources is None:
            self._start_over(snapshot)
            return
        for source in sources:
            for ledger in self._ledgers:
                ledger.reorder(source)
            for topology in self._keys.values():
                topology.reorder(source)
            self._nodes = [self._nodes[row] if row >= 0 else _NO_NODE for row in source.tolist()]

    def _start_over(self, snapshot: Snapshot) -> None:
        """Too many re-orderings were missed to follow them."""
        everywhere_new = np.full(len(snapshot), -1, np.intp)
        for ledger in self._ledgers:
            ledger.reset(snapshot.node_infos)
        for topology in self._keys.values():
            topology.reorder(everywhere_new)
        self._nodes = [_NO_NODE] * len(snapshot)
        self._node_mark = -1

    def _update_nodes(self, snapshot: Snapshot, rows: Iterable[int] | None) -> None:
        changed = [
            row
            for row in (range(len(snapshot)) if rows is None else dict.fromkeys(rows))
            if self._is_changed(row, snapshot.nodes[row])
        ]
        if not changed:
            return
        indices: DomainIds = np.array(changed, np.intp)
        nodes = snapshot.view(indices)
        for topology in self._keys.values():
            topology.update(nodes, indices)

    def _is_changed(self, row: int, node: Node) -> bool:
        """Whether the row's node has other labels, taints or name than on record; records it."""
        old = self._nodes[row]
        self._nodes[row] = node
        return (
            node.metadata.labels != old.metadata.labels
            or node.spec.taints != old.spec.taints
            or node.metadata.name != old.metadata.name
        )


_COUNTS: Final[WeakKeyDictionary[Snapshot, TopologyCounts]] = WeakKeyDictionary()


def _class_counts(info: NodeInfo) -> dict[PodClass, int]:
    return info.class_counts


def _live_class_counts(info: NodeInfo) -> dict[PodClass, int]:
    return info.live_class_counts
