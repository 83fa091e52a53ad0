"""What is attached to each node: the volumes of its pods and those of VolumeAttachments.

Reading the volumes of a node costs more than the decision itself. So only nodes are read that may
have too little room (`room`), and again only when their pods changed, or an object that was read
for them: claims, volumes, classes, their CSINodes, their VolumeAttachments. What the plugin
compares is kept as one array per driver.

Invariants: a node without limits has no volumes here, because they are not compared; entries are by
node name, arrays by row. Not here: what a pod's volumes are (`pod_volumes`), verdicts (`plugin`).
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import CSINode, VolumeAttachment
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.index.follow import Follower, Sources
from kubestow.index.held import NodesByItem
from kubestow.plugins.node_volume_limits.pod_volumes import (
    CsiVolumes,
    ObjectKey,
    VolumeReader,
    may_count,
)
from kubestow.plugins.node_volume_limits.room import UNLIMITED, limits_of


class PodVolumes(NamedTuple):
    """What was read for one pod; valid while the pod and the objects read are the same."""

    pod: Pod
    volumes: CsiVolumes
    read: frozenset[ObjectKey]


class NodeVolumes(NamedTuple):
    """What is attached to one node.

    `volumes` are those of its pods; `counts`, per driver, also has those of VolumeAttachments
    alone. `error` is why the pods' volumes could not be read; empty if they could.
    """

    csi_node: CSINode | None
    limits: Mapping[str, int]
    volumes: CsiVolumes
    counts: Mapping[str, int]
    by_pod: Mapping[str, PodVolumes]
    read: frozenset[ObjectKey]
    error: str = ""

    def free(self, driver: str) -> int:
        """How many more volumes of the driver can be attached; below 0 if there are too many."""
        limit = self.limits.get(driver)
        return UNLIMITED if limit is None else limit - self.counts.get(driver, 0)


_NOTHING: Final = NodeVolumes(None, {}, {}, {}, {}, frozenset())


class AttachedVolumes(Follower):
    def __init__(self, objects: ClusterObjects, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self._snapshot = snapshot
        self._objects = objects
        self._reader = VolumeReader(objects)
        self._nodes: dict[str, NodeVolumes] = {}
        self._holders = NodesByItem[str, str]()
        self._readers = NodesByItem[ObjectKey, None]()
        self._errors: dict[str, str] = {}
        # Rows that have to be read before they are used, and nodes of which that was noted by name.
        self._is_unread: BoolArray = np.ones(len(snapshot), np.bool_)
        self._stale: set[str] = set()
        self._free: dict[str, IntArray] = {}
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        for attachment in objects.volume_attachments.list():
            self._after_attachment(None, attachment)
        objects.persistent_volume_claims.subscribe(self._after_change)
        objects.persistent_volumes.subscribe(self._after_change)
        objects.storage_classes.subscribe(self._after_change)
        objects.csi_nodes.subscribe(self._after_csi_node)
        objects.volume_attachments.subscribe(self._after_attachment)

    # --- all nodes ---

    def refresh(self, rows: IntpArray) -> None:
        """Read these rows, as far as they changed since they were read: their pods, or objects
        that were read for them."""
        self.catch_up()
        for name in self._stale:
            self._nodes.pop(name, None)
            self._is_unread[list(self._snapshot.rows_of(name))] = True
        self._stale.clear()
        names, infos = self._snapshot.names, self._snapshot.node_infos
        unread: list[int] = rows[self._is_unread[rows]].tolist()
        for row in unread:
            self._store(names[row], self.read_node(infos[row]))
            self._write_row(row)
            self._is_unread[row] = False

    def rows_moved(self, sources: Sources | None) -> None:
        self._forget_vanished()
        self._free.clear()
        if sources is None:
            self._is_unread = np.ones(len(self._snapshot), np.bool_)
            return
        for source in sources:
            before, kept = self._is_unread, source >= 0
            self._is_unread = np.ones(len(source), np.bool_)
            self._is_unread[kept] = before[source[kept]]

    def pods_changed(self, rows: "array[int]") -> None:
        for row in rows:
            self._is_unread[row] = True

    # Rows that were not read have values with which they pass.

    def free(self, driver: str) -> IntArray:
        """int64[row]: how many more volumes of the driver each node can attach. Read-only."""
        free = self._free.get(driver)
        if free is None:
            free = self._free[driver] = np.full(len(self._snapshot), UNLIMITED, np.int64)
            for name, node in self._nodes.items():
                free[list(self._snapshot.rows_of(name))] = node.free(driver)
        return free

    def rows_with(self, volume: str) -> list[int]:
        """Rows of the nodes with limits on which some pod has the volume."""
        rows = map(self._snapshot.row_of, self._holders.nodes_with(volume))
        return [row for row in rows if row is not None]

    def errors(self) -> list[tuple[int, str]]:
        """Rows of the nodes whose pods' volumes could not be read, with the reason."""
        found = ((self._snapshot.row_of(name), error) for name, error in self._errors.items())
        return [(row, error) for row, error in found if row is not None]

    # --- one node ---

    def read_node(self, info: NodeInfo) -> NodeVolumes:
        """What is attached to one node with these pods on it, which may be simulated."""
        csi_node = self._objects.csi_nodes.get(info.name)
        if csi_node is None:
            return _NOTHING
        known = self._nodes.get(info.name, _NOTHING)
        limits = known.limits if known.csi_node is csi_node else limits_of(csi_node)
        if not limits:
            return _NOTHING._replace(csi_node=csi_node)
        read = set[ObjectKey]()
        try:
            by_pod = self._read_pods(info.pods, known.by_pod, read)
        except PluginError as error:
            return _NOTHING._replace(
                csi_node=csi_node, limits=limits, read=frozenset(read), error=str(error)
            )
        volumes: CsiVolumes = {}
        for pod_volumes in by_pod.values():
            volumes |= pod_volumes.volumes
            read |= pod_volumes.read
        return NodeVolumes(
            csi_node=csi_node,
            limits=limits,
            volumes=volumes,
            counts=self._counts(info.name, volumes, read),
            by_pod=by_pod,
            read=frozenset(read),
        )

    def _read_pods(
        self, pods: Iterable[PodInfo], known: Mapping[str, PodVolumes], read: set[ObjectKey]
    ) -> dict[str, PodVolumes]:
        """The volumes of each pod; on failure `read` has what the failure depends on."""
        by_pod: dict[str, PodVolumes] = {}
        for pod_info in pods:
            pod = pod_info.pod
            if not any(map(may_count, pod.spec.volumes)):
                continue
            found = known.get(pod_info.uid)
            if found is None or found.pod is not pod:
                volumes = self._reader.volumes_of(pod, has_csi_node=True, is_new=False, read=read)
                found = PodVolumes(pod, volumes, frozenset(read))
                read.clear()
            by_pod[pod_info.uid] = found
        return by_pod

    def _counts(self, node_name: str, volumes: CsiVolumes, read: set[ObjectKey]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for driver in volumes.values():
            counts[driver] = counts.get(driver, 0) + 1
        for attacher in self._attached_only(node_name, volumes, read).values():
            counts[attacher] = counts.get(attacher, 0) + 1
        return counts

    def _attached_only(
        self, node_name: str, volumes: CsiVolumes, read: set[ObjectKey]
    ) -> CsiVolumes:
        """Volumes that a VolumeAttachment names for the node and no pod there uses."""
        found: CsiVolumes = {}
        for attachment in self._attachments.get(node_name, {}).values():
            attacher = attachment.spec.attacher
            volume_name = attachment.spec.source.persistent_volume_name
            if not attacher or volume_name is None:
                continue
            read.add(ObjectKey("PersistentVolume", "", volume_name))
            volume = self._objects.persistent_volumes.get(volume_name)
            # Spec 07 §5.2: in-tree volumes are not translated here.
            if volume is None or volume.spec.csi is None:
                continue
            name = f"{attacher}/{volume.spec.csi.volume_handle}"
            if name not in volumes:
                found[name] = attacher
        return found

    # --- keeping ---

    def _store(self, name: str, node: NodeVolumes) -> None:
        self._nodes[name] = node
        self._holders.put(name, node.volumes)
        self._readers.put(name, dict.fromkeys(node.read))
        if node.error:
            self._errors[name] = node.error
        else:
            self._errors.pop(name, None)

    def _forget_vanished(self) -> None:
        names = set(self._snapshot.names)
        self._nodes = {name: node for name, node in self._nodes.items() if name in names}
        self._errors = {name: error for name, error in self._errors.items() if name in names}
        self._holders.keep_only(names)
        self._readers.keep_only(names)

    def _write_row(self, row: int) -> None:
        node = self._nodes[self._snapshot.names[row]]
        for driver, free in self._free.items():
            free[row] = node.free(driver)

    # --- events ---

    def _after_change(self, old: ApiObject | None, new: ApiObject | None) -> None:
        changed = new if new is not None else old
        assert changed is not None
        meta = changed.metadata
        key = ObjectKey(type(changed).__name__, meta.namespace, meta.name)
        self._stale.update(self._readers.nodes_with(key))

    def _mark_stale(self, name: str) -> None:
        # A node without an entry is read at first use.
        if name in self._nodes:
            self._stale.add(name)

    def _after_csi_node(self, old: CSINode | None, new: CSINode | None) -> None:
        for csi_node in (old, new):
            if csi_node is not None:
                self._mark_stale(csi_node.metadata.name)

    def _after_attachment(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if old is not None:
            on_node = self._attachments[old.spec.node_name]
            del on_node[old.metadata.name]
            if not on_node:
                del self._attachments[old.spec.node_name]
            self._mark_stale(old.spec.node_name)
        if new is not None:
            on_node = self._attachments.setdefault(new.spec.node_name, {})
            on_node[new.metadata.name] = new
            self._mark_stale(new.spec.node_name)
