"""How many more volumes fit on each node for certain, without reading which volumes are there.

A node has at most as many volumes as its pods name claims and VolumeAttachments name it. Mostly
that is far below the limits, so that neither claims nor volumes of running pods have to be read.
Only nodes on which this leaves the answer open are read (`attached`).

Invariants: `_limits` and `_attachments` are by node name and have no empty entries; arrays are by
row and only of drivers that some node limits.
"""

from array import array
from collections.abc import Mapping
from typing import Final

import numpy as np

from kubestow.api.storage import CSINode, VolumeAttachment
from kubestow.arrays import IntArray, IntpArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

UNLIMITED: Final = 2**62  # free attachments of a node without a limit

# Driver → number of volumes.
DriverCounts = Mapping[str, int]


class AttachmentRoom(Follower):
    def __init__(self, objects: ClusterObjects, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self._snapshot = snapshot
        self._limits: dict[str, DriverCounts] = {}
        self._attachments: dict[str, int] = {}
        # How many nodes limit a driver.
        self._limiting: dict[str, int] = {}
        # Nodes whose limits or attachments changed since the last reading.
        self._stale: set[str] = set()
        self._rooms: dict[str, _DriverRoom] = {}
        self._unclear: set[int] = set()
        for csi_node in objects.csi_nodes.list():
            self._set_limits(csi_node.metadata.name, limits_of(csi_node))
        for attachment in objects.volume_attachments.list():
            self._count_attachment(attachment, 1)
        self.rows_moved(None)
        objects.csi_nodes.subscribe(self._after_csi_node)
        objects.volume_attachments.subscribe(self._after_attachment)

    # --- all nodes ---

    @property
    def has_limits(self) -> bool:
        """Whether any node limits how many volumes can be attached to it."""
        return bool(self._limits)

    def fits_everywhere(self, added: DriverCounts) -> bool:
        """Whether this many volumes of each driver fit on every node for certain."""
        self._bring_up_to_date()
        if self._unclear:
            return False
        for driver, count in added.items():
            if driver in self._limiting and not self._room_of(driver).is_enough(count):
                return False
        return True

    def open_positions(self, added: DriverCounts, rows: Rows) -> IntpArray:
        """Where in `rows` the nodes are that may have too little room; they have to be read."""
        self._bring_up_to_date()
        is_open = np.zeros(len(self._snapshot), np.bool_)
        is_open[list(self._unclear)] = True
        for driver, count in added.items():
            if driver in self._limiting:
                is_open |= self._room_of(driver).values < count
        return np.flatnonzero(is_open[rows])

    # --- one node ---

    def fits_on(self, info: NodeInfo, added: DriverCounts) -> bool:
        """Whether one node has room with these pods on it, which may be simulated."""
        limits = self._limits.get(info.name)
        if limits is None:
            return True
        used = self._used(info)
        return not info.unclaimed_volumes and all(
            count <= limits.get(driver, UNLIMITED) - used for driver, count in added.items()
        )

    def _used(self, info: NodeInfo) -> int:
        """At most this many volumes are attached."""
        return len(info.pvc_ref_counts) + self._attachments.get(info.name, 0)

    def _room(self, info: NodeInfo, driver: str) -> int:
        limits = self._limits.get(info.name)
        limit = None if limits is None else limits.get(driver)
        return UNLIMITED if limit is None else limit - self._used(info)

    # --- following the snapshot ---

    def rows_moved(self, sources: Sources | None) -> None:
        self._rooms.clear()
        self._unclear = {
            row for row, info in enumerate(self._snapshot.node_infos) if self._is_unclear(info)
        }

    def pods_changed(self, rows: "array[int]") -> None:
        infos = self._snapshot.node_infos
        for row in rows:
            info = infos[row]
            if self._is_unclear(info):
                self._unclear.add(row)
            elif self._unclear:
                self._unclear.discard(row)
            for driver, room in self._rooms.items():
                room.write(row, self._room(info, driver))

    def _is_unclear(self, info: NodeInfo) -> bool:
        """Whether its volumes may be unreadable: those without a named claim can be."""
        return bool(info.unclaimed_volumes) and info.name in self._limits

    def _bring_up_to_date(self) -> None:
        self.catch_up()
        if self._stale:
            rows = [row for name in self._stale for row in self._snapshot.rows_of(name)]
            self._stale.clear()
            self.pods_changed(array("q", rows))

    def _room_of(self, driver: str) -> "_DriverRoom":
        room = self._rooms.get(driver)
        if room is None:
            values = [self._room(info, driver) for info in self._snapshot.node_infos]
            room = self._rooms[driver] = _DriverRoom(np.array(values, np.int64))
        return room

    # --- events ---

    def _after_csi_node(self, old: CSINode | None, new: CSINode | None) -> None:
        changed = new if new is not None else old
        assert changed is not None
        self._set_limits(changed.metadata.name, {} if new is None else limits_of(new))
        self._mark_stale(changed.metadata.name)

    def _set_limits(self, name: str, limits: DriverCounts) -> None:
        for driver in self._limits.pop(name, {}):
            self._limiting[driver] -= 1
            if not self._limiting[driver]:
                del self._limiting[driver]
                self._rooms.pop(driver, None)
        if limits:
            self._limits[name] = limits
            for driver in limits:
                self._limiting[driver] = self._limiting.get(driver, 0) + 1

    def _after_attachment(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if old is not None:
            self._count_attachment(old, -1)
            self._mark_stale(old.spec.node_name)
        if new is not None:
            self._count_attachment(new, 1)
            self._mark_stale(new.spec.node_name)

    def _count_attachment(self, attachment: VolumeAttachment, sign: int) -> None:
        name = attachment.spec.node_name
        count = self._attachments.pop(name, 0) + sign
        if count:
            self._attachments[name] = count

    def _mark_stale(self, name: str) -> None:
        # A node without a row is read when it gets one.
        if self._snapshot.row_of(name) is not None:
            self._stale.add(name)


class _DriverRoom:
    """int64[row]: at least this many more volumes of one driver fit, and a bound of the least."""

    __slots__ = ("_least", "values")

    def __init__(self, values: IntArray) -> None:
        self.values = values
        self._least = 0

    def write(self, row: int, value: int) -> None:
        self.values[row] = value
        self._least = min(self._least, value)

    def is_enough(self, count: int) -> bool:
        """Whether this many fit on every node."""
        if count > self._least:
            self._least = int(self.values.min(initial=UNLIMITED))
        return count <= self._least


def limits_of(csi_node: CSINode) -> dict[str, int]:
    """Driver → how many volumes it can attach; drivers without a limit are left out."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def drivers_of(csi_node: CSINode | None) -> frozenset[str]:
    if csi_node is None:
        return frozenset()
    return frozenset(driver.name for driver in csi_node.spec.drivers)
