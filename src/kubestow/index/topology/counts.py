"""The counts of one snapshot, as both topology plugins and all profiles read them.

The first reader of a cycle brings them up to date, by comparing the rows that changed with what is
recorded for them.
"""

from collections import OrderedDict
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod_info import PodClass
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import nodes_of
from kubestow.index.present import LabelKeys
from kubestow.index.topology.domains import (
    EVERY_NODE,
    DomainColumn,
    DomainIds,
    Eligibility,
    TopologyKey,
    column_for_once,
)
from kubestow.index.topology.ledger import PodLedger, Tally, TermLedger
from kubestow.index.topology.measures import Measure

_NO_NODE: Final = Node()
_NO_KEY: Final = ""  # no label has this key

# How many topology keys are kept; the least recently used is dropped with all its columns. Any pod
# may name a key, and clusters use few.
KEYS_MAX: Final = 64


class TopologyCounts(Follower):
    """The counts of one snapshot. Get them with `at`, in every step of a cycle that needs them.

    layout_token   another object whenever rows move, or some node has other labels
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self._snapshot = snapshot
        self.layout_token = object()
        # The Node objects as last read: many updates of a node change neither labels nor taints.
        self._nodes: list[Node] = list(snapshot.nodes)
        self._label_keys = snapshot.derived(LabelKeys)
        self._keys: OrderedDict[str, TopologyKey] = OrderedDict()
        self._pods = PodLedger(attrgetter("counts_by_state"))
        self._terms = TermLedger()
        self._ledgers = (self._pods, self._terms)

    @staticmethod
    def at(snapshot: Snapshot) -> "TopologyCounts":
        """The counts as of this snapshot's last refresh."""
        counts = snapshot.derived(TopologyCounts)
        counts.catch_up()
        return counts

    def column(self, key: str, eligibility: Eligibility = EVERY_NODE) -> DomainColumn:
        """The rows' domains of a topology key, as far as rows are eligible."""
        snapshot = self._snapshot
        if eligibility is not EVERY_NODE and eligibility.has_many_keys:
            return column_for_once(key, eligibility, nodes_of(snapshot))
        topology = self._keys.get(key)
        if topology is None and not self.has_key(key):
            # All keys that no node has divide the nodes in the same way: into no domain.
            key = _NO_KEY
            topology = self._keys.get(key)
        if topology is None:
            few_rows = self._label_keys.few_rows(key)
            topology = self._keys[key] = TopologyKey(key, snapshot.nodes, few_rows)
            if len(self._keys) > KEYS_MAX:
                _, forgotten = self._keys.popitem(last=False)
                forgotten.drop()
        else:
            self._keys.move_to_end(key)
        if eligibility is EVERY_NODE:
            return topology.every_node
        return topology.column(eligibility, nodes_of(snapshot))

    def has_key(self, key: str) -> bool:
        """Whether some node has the label."""
        return key in self._label_keys.present()

    def pods(self, measure: Measure[PodClass]) -> Tally[PodClass]:
        """The pods that the measure counts."""
        self._pods.open(self._snapshot)
        return self._pods.tally(measure)

    @property
    def terms(self) -> TermLedger:
        """The affinity terms that pods own."""
        self._terms.open(self._snapshot)
        return self._terms

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self.layout_token = object()
        if sources is None:
            self._read_all()
            return
        for source in sources:
            for ledger in self._ledgers:
                ledger.reorder(source)
            for topology in self._keys.values():
                topology.reorder(source)
            self._nodes = [self._nodes[row] if row >= 0 else _NO_NODE for row in source.tolist()]

    def _read_all(self) -> None:
        row_count = len(self._snapshot)
        all_new = np.full(row_count, -1, np.intp)
        for ledger in self._ledgers:
            ledger.reset(self._snapshot)
        for topology in self._keys.values():
            topology.reorder(all_new)
        self._nodes = [_NO_NODE] * row_count
        self.nodes_changed(range(row_count))

    def nodes_changed(self, rows: Iterable[int]) -> None:
        nodes = self._snapshot.nodes
        changed = [row for row in dict.fromkeys(rows) if self._is_changed(row, nodes[row])]
        if not changed:
            return
        self.layout_token = object()
        indices: DomainIds = np.array(changed, np.intp)
        view = nodes_of(self._snapshot, indices)
        for topology in self._keys.values():
            topology.update(view, indices)

    def pods_changed(self, rows: Iterable[int]) -> None:
        infos = self._snapshot.node_infos
        changed = dict.fromkeys(rows)
        for ledger in self._ledgers:
            if ledger.is_open:
                for row in changed:
                    ledger.update(row, infos[row])

    def _is_changed(self, row: int, node: Node) -> bool:
        """Whether the row's node has other labels, taints or name than recorded; records it."""
        old = self._nodes[row]
        self._nodes[row] = node
        return (
            node.metadata.labels != old.metadata.labels
            or node.spec.taints != old.spec.taints
            or node.metadata.name != old.metadata.name
        )
