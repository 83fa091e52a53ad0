"""Verdicts of predicates, kept for pods of the same controller (spec 04 §19.1).

The verdict of a predicate on one pod of a controller is reused for the next pod, until an event may
have changed it (`equivalence_rules`). In v1.9 the feature gate for this,
EnableEquivalenceClassCache, was off. Priorities and errors are never cached.

Invariant: kept verdicts are in the row order of the snapshot's epoch that the cache last followed;
every public method brings the cache up to date first.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from kubestow.api.decode import enc_hook
from kubestow.api.meta import OwnerReference
from kubestow.api.owners import controller_of
from kubestow.api.pod_info import PodInfo
from kubestow.cache.change_log import Depends
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_9.engine.equivalence_rules import Drop
from kubestow.editions.v1_9.plugins.contract import Attempt, Predicate, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import FITS
from kubestow.index.follow import Follower, Sources
from kubestow.index.nodes import Nodes

# How many classes are kept per predicate; the least recently used is dropped.
CLASSES_MAX: Final = 1024

_ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook)


class EquivalenceClass(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Pods that share verdicts: of one controller, with the same claims.

    `shape` and `volumes` are empty where the controller alone is trusted.
    """

    controller: OwnerReference
    claim_uids: frozenset[str]
    shape: Hashable = None
    volumes: bytes = b""


class EquivalenceStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How many verdicts on single nodes were reused, and how many computed."""

    hits: int
    misses: int


class EquivalenceCache(Follower):
    """Call `check` instead of the predicate, and `drop` with what each event makes stale."""

    def __init__(self, snapshot: Snapshot, objects: ClusterObjects) -> None:
        super().__init__(snapshot.log, Depends.NODE)
        self._snapshot = snapshot
        self._objects = objects
        self._pages: dict[str, _Page] = {}
        self._hits = 0
        self._misses = 0

    def check(self, predicate: Predicate, attempt: Attempt, nodes: Nodes) -> Verdicts:
        """The predicate's verdicts on all nodes of the snapshot."""
        pod_class = self._class_of(attempt.pod)
        if pod_class is None:
            return predicate.check(attempt, nodes)
        self.catch_up()
        page = self._pages.get(predicate.name)
        if page is None:
            page = self._pages[predicate.name] = _Page(predicate.reads)
        kept = page.verdicts_of(pod_class, len(nodes))
        missing = np.flatnonzero(~kept.is_known)
        self._hits += len(nodes) - len(missing)
        self._misses += len(missing)
        if len(missing) == 0:
            return Verdicts(kept.codes.copy())
        return kept.fill(missing, predicate.check(attempt, nodes.subset(missing)))

    def drop(self, drops: Iterable[Drop]) -> None:
        """Drop what an event made stale: `cache.drop(pod_changed(old, new))`."""
        self.catch_up()
        for drop in drops:
            row = None if drop.node_name is None else self._snapshot.row_of(drop.node_name)
            if row is None and drop.node_name is not None:
                continue  # There are no verdicts on that node.
            for page in self._pages.values():
                if drop.concerns(page.reads):
                    page.forget(row)

    def statistics(self) -> EquivalenceStatistics:
        return EquivalenceStatistics(hits=self._hits, misses=self._misses)

    def _class_of(self, pod: PodInfo) -> EquivalenceClass | None:
        """The pod's class; None if it has no controller or one of its claims is not there."""
        controller = controller_of(pod.pod)
        if controller is None:
            return None
        uids: set[str] = set()
        for volume in pod.pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                claim = self._objects.persistent_volume_claims.get(pod.namespace, name)
                if claim is None:
                    return None
                uids.add(claim.metadata.uid)
        return EquivalenceClass(
            controller, frozenset(uids), pod.full_shape, _ENCODER.encode(pod.pod.spec.volumes)
        )

    def rows_moved(self, sources: Sources | None) -> None:
        if sources is None:
            self._pages.clear()
            return
        for page in self._pages.values():
            page.reorder(sources)


class _Page:
    """The verdicts of one predicate, by class."""

    __slots__ = ("_kept", "reads")

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self._kept: OrderedDict[EquivalenceClass, _Kept] = OrderedDict()

    def verdicts_of(self, pod_class: EquivalenceClass, node_count: int) -> "_Kept":
        kept = self._kept.get(pod_class)
        if kept is None:
            kept = self._kept[pod_class] = _Kept(node_count)
            if len(self._kept) > CLASSES_MAX:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(pod_class)
        return kept

    def forget(self, row: int | None) -> None:
        """Drop the verdicts on one node, or with None on all."""
        if row is None:
            self._kept.clear()
            return
        for kept in self._kept.values():
            kept.is_known[row] = False

    def reorder(self, sources: Iterable[npt.NDArray[np.intp]]) -> None:
        for kept in self._kept.values():
            for source in sources:
                kept.reorder(source)


class _Kept:
    """Verdicts of one predicate on the pods of one class.

    codes      int64[row], as in `Verdicts`, without errors
    is_known   bool[row]
    """

    __slots__ = ("codes", "is_known")

    def __init__(self, row_count: int) -> None:
        self.codes = np.zeros(row_count, np.int64)
        self.is_known = np.zeros(row_count, np.bool_)

    def fill(self, rows: npt.NDArray[np.intp], found: Verdicts) -> Verdicts:
        """Keep the verdicts on these rows without the errors; returns the verdicts on all rows."""
        codes = np.zeros(len(rows), np.int64) if found.codes is None else found.codes
        complete = self.codes.copy()
        complete[rows] = codes
        is_kept = codes >= FITS
        self.codes[rows[is_kept]] = codes[is_kept]
        self.is_known[rows[is_kept]] = True
        return Verdicts(complete, found.errors)

    def reorder(self, source: npt.NDArray[np.intp]) -> None:
        """Row i is now what was row `source[i]`, and new where that is -1."""
        if len(self.codes) == 0:
            self.codes = np.zeros(len(source), np.int64)
            self.is_known = np.zeros(len(source), np.bool_)
        else:
            self.codes = self.codes[source]
            self.is_known = self.is_known[source] & (source >= 0)
