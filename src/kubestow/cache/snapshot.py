"""The state of the cluster that one scheduling cycle decides on (spec 03 §6).

The live cache changes with every event; a decision needs fixed data. `Snapshot.refresh` copies only
the rows whose generation changed: the cost of a cycle depends on the changes, not on the cluster.

A scheduling cycle is a plain function, so nothing changes the cache while it computes. Therefore
only the numbers are copied into arrays; `node_infos` refers to the live entries, whose pod lists
are read during the cycle and never kept beyond it. In a cycle that waits for extenders the snapshot
is held (`held`): an entry that changes meanwhile is copied first.

Invariants: row number = position in the visiting order; all arrays share it and are read-only
outside. Not here: who may change the cache (`cache`), what a column means (`columns`), views on
some of the rows and what is derived from them (`index`).
"""

import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from kubestow.api.node import Node
from kubestow.cache.cache import Cache
from kubestow.cache.change_log import ChangeLog
from kubestow.cache.columns import Columns
from kubestow.cache.images import ImageState
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.owned_terms import OwnedTerm
from kubestow.cache.priorities import NO_PODS
from kubestow.errors import CacheError

log = logging.getLogger(__name__)

FrozenImages = tuple[ImageState, ...]
T = TypeVar("T")
_NO_IMAGES: Final[FrozenImages] = ()
_NO_CLAIMS: Final[frozenset[str]] = frozenset()


class Snapshot:
    """All nodes of the cluster as rows, as of the last refresh."""

    def __init__(self) -> None:
        self.generation = 0
        self.columns = Columns()
        self.log = ChangeLog()
        # Replaced when rows are reordered, never changed in place: frozen decisions refer to it.
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.node_infos: list[NodeInfo] = []
        self.images: list[FrozenImages] = []
        self.used_pvcs: dict[str, int] = {}
        # No pod on a node has a lower priority.
        self.lowest_priority = -NO_PODS  # until a refresh says more
        # Row → terms of pods on trial that no rule about listed nodes reads (`trial`).
        self.hidden_terms: dict[int, dict[OwnedTerm, int]] = {}
        self._row_of: dict[str, int] = {}
        self._infos: dict[str, NodeInfo] = {}
        self._image_versions: list[int] = []
        self._claims: list[frozenset[str]] = []
        self._derived: dict[Callable[[Snapshot], Any], Any] = {}
        self._trim_at = 0  # where the log ends when it may be too long

    # --- reading ---

    def __len__(self) -> int:
        return len(self.names)

    def row_of(self, name: str) -> int | None:
        return self._row_of.get(name)

    def get(self, name: str) -> NodeInfo:
        row = self._row_of.get(name)
        if row is None:
            raise CacheError(f'nodeinfo not found for node name "{name}"')
        return self.node_infos[row]

    def rows_of(self, name: str) -> Iterable[int]:
        """The rows of a node: mostly one."""
        row = self._row_of.get(name)
        if row is None:
            return ()
        if len(self._row_of) == len(self.names):
            return (row,)
        # Spec 03 §4.1: a node added twice under different zones is in the list twice.
        return (row for row, listed in enumerate(self.names) if listed == name)

    def is_pvc_used(self, key: str) -> bool:
        return key in self.used_pvcs

    def derived(self, make: "Callable[[Snapshot], T]") -> T:
        """What `make` derives from this snapshot, made at first use and kept with it."""
        found = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
        return found

    # --- while a cycle waits ---

    @contextmanager
    def held(self, cache: Cache) -> Generator[None, None, None]:
        """The entries stay as they are now, also if the cache changes."""
        cache.before_change = self._keep
        try:
            yield
        finally:
            cache.before_change = None

    def _keep(self, info: NodeInfo) -> None:
        for row in self.rows_of(info.name):
            if self.node_infos[row] is info:
                # The next refresh puts the live entry back: its generation is about to grow.
                self.node_infos[row] = info.clone()

    def trim_log(self) -> None:
        """Drop a log of changes that is longer than reading everything again."""
        self._trim_at = self.log.pod_end + self.log.trim(4 * len(self.names) + 1024)

    # --- trials ---

    def show(self, row: int, info: NodeInfo) -> None:
        """Show this entry in a row: a copy with pods on trial, or the live entry again."""
        self.node_infos[row] = info
        self.columns.write_sums(row, info)
        self.log.note_pods(row)
        self._note_priorities(info)

    def show_whole(self, row: int, info: NodeInfo) -> None:
        """Show this entry in a row, with which pods have affinity and which claims are used."""
        self.node_infos[row] = info
        self.columns.write_pods(row, info)
        if info.pvc_ref_counts or self._claims[row]:
            self._note_claims(row, info)
        self.log.note_pods(row)
        self._note_priorities(info)

    def _note_priorities(self, info: NodeInfo) -> None:
        for pod in info.pods:
            self.lowest_priority = min(self.lowest_priority, pod.priority)

    # --- refreshing ---

    def refresh(self, cache: Cache) -> None:
        """Make the snapshot show the cache as it is now.

        Raises CacheError when the node tree and the cache contradict each other; the snapshot has
        then been rebuilt from both, and the next refresh may succeed.
        """
        seen = self.generation
        self.lowest_priority = cache.priorities.lowest
        changed, is_list_stale = self._collect_changes(cache)
        tree = cache.node_tree
        if len(self._infos) > tree.node_count:
            self._drop_vanished(cache)
            is_list_stale = True
        if is_list_stale:
            self._rebuild(cache, changed)
        else:
            self._write_changed(changed, cache, seen)
        if len(self.names) != tree.node_count:
            text = (
                "snapshot state is not consistent, "
                f"length of NodeInfoList={len(self.names)} not equal to "
                f"length of nodes in tree={tree.node_count} , "
                f"length of NodeInfoMap={len(self._infos)}, "
                f"length of nodes in cache={cache.node_count()}, trying to recover"
            )
            self._rebuild(cache, [])
            raise CacheError(text)
        # Here without a call: it is rarely longer.
        if self.log.pod_end > self._trim_at:
            self.trim_log()

    def _collect_changes(self, cache: Cache) -> tuple[list[NodeInfo], bool]:
        """Entries changed since the last refresh, and whether one of them is new."""
        changed: list[NodeInfo] = []
        has_new = False
        infos, seen, newest = self._infos, self.generation, -1
        for info in reversed(cache.nodes.values()):
            generation = info.generation
            if generation > newest:
                newest = generation
            if generation <= seen:
                break
            if info.node is None:
                continue
            name = info.name
            if name not in infos:
                has_new = True
            infos[name] = info
            changed.append(info)
        if newest >= 0:
            # May decrease, when the entry that changed last is deleted; harmless.
            self.generation = newest
        return changed, has_new

    def _write_changed(self, changed: list[NodeInfo], cache: Cache, seen: int) -> None:
        if len(self._row_of) == len(self.names):
            # As `rows_of`, without a call: all nodes have one row.
            row_of = self._row_of
            for info in changed:
                row = row_of.get(info.name)
                if row is not None:
                    self._write(row, info, cache, seen)
            return
        for info in changed:
            for row in self.rows_of(info.name):
                self._write(row, info, cache, seen)

    def _drop_vanished(self, cache: Cache) -> None:
        surplus = len(self._infos) - cache.node_tree.node_count
        vanished = (
            name
            for name in self._infos
            if name not in cache.nodes or cache.nodes[name].node is None
        )
        for name in list(islice(vanished, surplus)):
            del self._infos[name]

    def _rebuild(self, cache: Cache, changed: list[NodeInfo]) -> None:
        """Put the rows in the order of the node tree; rows that did not change are only moved."""
        names = [name for name in cache.node_tree.list() if self._can_show(name)]
        source = np.array([self._row_of.get(name, -1) for name in names], np.intp)
        old_count = len(self.names)
        self.columns.reorder(source)
        self.log.reorder(source, old_count)
        self.names = names
        self.node_infos = [self._infos[name] for name in names]
        self.nodes = _gather(self.nodes, source, _NO_NODE)
        self.images = _gather(self.images, source, _NO_IMAGES)
        self._image_versions = _gather(self._image_versions, source, -1)
        self._claims = _gather(self._claims, source, _NO_CLAIMS)
        self._row_of = {name: row for row, name in enumerate(names)}
        self._recount_claims()
        fresh = {info.name for info in changed}
        for row, name in enumerate(names):
            if source[row] < 0 or name in fresh:
                self._write(row, self.node_infos[row], cache)

    def _can_show(self, name: str) -> bool:
        """Whether a node of the tree gets a row.

        A node that was removed under another zone than it was added is still in the tree. It keeps
        its row if it has one, and gets no new one.
        """
        info = self._infos.get(name)
        return info is not None and (info.node is not None or name in self._row_of)

    def _recount_claims(self) -> None:
        self.used_pvcs.clear()
        for claims in self._claims:
            for claim in claims:
                self.used_pvcs[claim] = self.used_pvcs.get(claim, 0) + 1

    def _write(self, row: int, info: NodeInfo, cache: Cache, seen: int = -1) -> None:
        """Copy one entry into its row, which shows what it counted in the generation `seen`."""
        is_other_node, is_counted = False, info.counted_generation > seen
        self.node_infos[row] = info
        node = info.node
        if node is not None and node is not self.nodes[row]:
            self.nodes[row] = node
            self.columns.write_node(row, info, node)
            # The node has a new table of images, even if no record of the cluster changed.
            self._image_versions[row] = -1
            is_other_node = True
        image_version = cache.image_states.version
        if self._image_versions[row] != image_version:
            self._image_versions[row] = image_version
            if self._freeze_images(row, info):
                is_other_node = True
        if is_counted:
            self.columns.write_pods(row, info)
            if info.pvc_ref_counts or self._claims[row]:
                self._note_claims(row, info)
        if is_other_node:
            self.log.note_node(row)
        elif is_counted:
            self.log.note_pods(row)
        else:
            self.log.note_statuses(row)

    def _freeze_images(self, row: int, info: NodeInfo) -> bool:
        """Copy sizes and node counts as of now; return whether they differ from the last copy.

        Other nodes that gain or lose an image later do not change this row: scores must use the
        number of nodes as of this copy (spec 01 §10, the bit-exactness trap).
        """
        frozen = tuple([record.state() for record in info.images])
        if frozen == self.images[row]:
            return False
        self.images[row] = frozen
        return True

    def _note_claims(self, row: int, info: NodeInfo) -> None:
        before, after = self._claims[row], info.pvc_ref_counts
        added = [claim for claim in after if claim not in before]
        for claim in added:
            self.used_pvcs[claim] = self.used_pvcs.get(claim, 0) + 1
        if len(before) + len(added) != len(after):
            for claim in before:
                if claim not in after:
                    self.used_pvcs[claim] -= 1
                    if not self.used_pvcs[claim]:
                        del self.used_pvcs[claim]
        elif not added:
            return
        self._claims[row] = frozenset(after)


_NO_NODE: Final = Node()


def _gather(values: list[T], source: npt.NDArray[np.intp], missing: T) -> list[T]:
    return [values[row] if row >= 0 else missing for row in source.tolist()]
