"""The NodeVolumeLimits plugin: PreFilter, Filter, and which events help (spec 07 §5)."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

import numpy as np

from kubestow.api.csi_translation import in_tree_volume, inline_handle
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from kubestow.api.volume_claims import uses_claim
from kubestow.arrays import BoolArray, IntArray, IntpArray
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PluginArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, StatusCodes
from kubestow.framework.reuse import PodReads, Reads, Reuse, Rule
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes, SimulatedNode
from kubestow.plugins._shared import bases
from kubestow.plugins.node_volume_limits.attached import AttachedVolumes, NodeVolumes
from kubestow.plugins.node_volume_limits.pod_volumes import (
    ClaimNotFound,
    CsiVolumes,
    VolumeReader,
    may_count,
)
from kubestow.plugins.node_volume_limits.room import (
    AttachmentRoom,
    DriverCounts,
    drivers_of,
    limits_of,
)

TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"

_TOO_MANY: Final = Status.unschedulable(TOO_MANY_VOLUMES)


class Wanted:
    """The volumes of the pod, or the error of reading them.

    In-tree volumes count only on nodes with a CSINode, so there are two answers. Each is read at
    first use: mostly all nodes are of one kind. What can be read with a CSINode can be read without
    one, too.
    """

    __slots__ = ("_added", "_found", "_read", "codes")

    def __init__(self, read: Callable[[bool], CsiVolumes | Status]) -> None:
        self._read = read
        self._found: dict[bool, CsiVolumes | Status] = {}
        self._added: DriverCounts | None = None
        self.codes = StatusCodes()

    def on(self, has_csi_node: bool) -> CsiVolumes | Status:
        found = self._found.get(has_csi_node)
        if found is None:
            found = self._found[has_csi_node] = self._read(has_csi_node)
        return found

    @property
    def added(self) -> DriverCounts:
        """How many volumes of each driver the pod has at most; none if they cannot be read."""
        if self._added is None:
            volumes = self.on(True)
            self._added = {} if isinstance(volumes, Status) else _counted(volumes)
        return self._added


class _LimitsRule(Rule):
    __slots__ = ("_plugin", "_snapshot", "_wanted")

    def __init__(self, plugin: "NodeVolumeLimits", wanted: Wanted, snapshot: Snapshot) -> None:
        self._plugin = plugin
        self._wanted = wanted
        self._snapshot = snapshot

    def passes_all(self) -> bool:
        return self._plugin.fits_everywhere(self._wanted, self._snapshot)

    def ignores_pods(self) -> bool:
        return self._plugin.ignores_pods(self._wanted)


class NodeVolumeLimits:
    name: ClassVar[str] = "NodeVolumeLimits"
    args_type: ClassVar[type[PluginArgs] | None] = None

    def __init__(self, args: None, handle: Handle) -> None:
        self._csi_drivers = handle.objects.csi_drivers
        self._csi_nodes = handle.objects.csi_nodes
        self._reader = VolumeReader(handle.objects)
        self._objects = handle.objects
        self._snapshot = handle.snapshot
        self.reuse = Reuse(
            filter=Reads.PODS,
            pod=PodReads.SPEC,
            basis=bases.volumes,
        )
        self._needs_drivers = handle.feature_gates.enabled("VolumeLimitScaling")

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if not any(map(may_count, pod.pod.spec.volumes)):
            return Status.skip()
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if not pod.pod.spec.volumes:
            return None
        wanted = self._wanted(state, pod)
        if isinstance(nodes, SimulatedNode):
            code = wanted.codes.code_of(self._verdict(wanted, nodes))
            return np.array([code], np.int64) if code else None
        if self.fits_everywhere(wanted, nodes.snapshot):
            return None
        return self._codes(wanted, nodes)

    def filter_rule(self, state: CycleState, pod: PodInfo) -> Rule:
        return _LimitsRule(self, self._wanted(state, pod), self._snapshot)

    def ignores_pods(self, wanted: Wanted) -> bool:
        """Whether the filter reads no pods: no node has a limit, or the pod has no volumes."""
        return not self._room(self._snapshot).has_limits or not wanted.added

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_volumes(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        wanted: Wanted = state.read(self.name)
        return wanted.codes.status_of(code)

    def events(self) -> Registrations:
        return (
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, _after_csi_node_updated),
            on(Resource.POD, Action.DELETE, _after_pod_deleted),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, _after_attachment_deleted),
        )

    # --- the pod's volumes ---

    def _wanted(self, state: CycleState, pod: PodInfo) -> Wanted:
        wanted: Wanted | None = state.get(self.name)
        if wanted is None:
            wanted = Wanted(partial(self._read, pod.pod))
            state.write(self.name, wanted)
        return wanted

    def _read(self, pod: Pod, has_csi_node: bool) -> CsiVolumes | Status:
        try:
            return self._reader.volumes_of(pod, has_csi_node=has_csi_node, is_new=True)
        except ClaimNotFound as error:
            return Status.unresolvable(str(error))
        except PluginError as error:
            return Status.from_error(error)

    # --- all nodes ---

    def _room(self, snapshot: Snapshot) -> AttachmentRoom:
        return snapshot.derived(self._make_room)

    def _make_room(self, snapshot: Snapshot) -> AttachmentRoom:
        return AttachmentRoom(self._objects, snapshot)

    def _attached(self, snapshot: Snapshot) -> AttachedVolumes:
        return snapshot.derived(self._make_attached)

    def _make_attached(self, snapshot: Snapshot) -> AttachedVolumes:
        return AttachedVolumes(self._objects, snapshot)

    def fits_everywhere(self, wanted: Wanted, snapshot: Snapshot) -> bool:
        """Whether every node passes for certain, as far as can be said without reading nodes."""
        volumes = wanted.on(True)
        if isinstance(volumes, Status):
            # Without CSINodes, disks that cannot be translated count nowhere.
            return not len(self._csi_nodes) and not isinstance(wanted.on(False), Status)
        if self._needs_drivers and (
            self._required_drivers(volumes) or self._required_drivers(wanted.on(False))
        ):
            return False
        return not volumes or self._room(snapshot).fits_everywhere(wanted.added)

    def _codes(self, wanted: Wanted, nodes: Nodes) -> IntArray | None:
        """int64[node]; None if every node passes."""
        with_csi_node, without = wanted.on(True), wanted.on(False)
        if isinstance(with_csi_node, Status) and without == with_csi_node:
            return np.full(len(nodes), wanted.codes.code_of(with_csi_node), np.int64)
        codes = np.zeros(len(nodes), np.int64)
        # From the last check to the first: the code of the first failure overwrites the others.
        if with_csi_node and not isinstance(with_csi_node, Status):
            self._check_limits(with_csi_node, wanted, nodes, codes)
        if self._needs_drivers:
            self._check_drivers(wanted, nodes, codes)
        if isinstance(with_csi_node, Status):
            has_csi_node = self._has_csi_node(nodes)
            codes[has_csi_node] = wanted.codes.code_of(with_csi_node)
            if isinstance(without, Status):
                codes[~has_csi_node] = wanted.codes.code_of(without)
        return codes if codes.any() else None

    def _check_limits(
        self, volumes: CsiVolumes, wanted: Wanted, nodes: Nodes, codes: IntArray
    ) -> None:
        positions = self._room(nodes.snapshot).open_positions(wanted.added, nodes.rows)
        if not len(positions):
            return
        rows = np.arange(len(nodes.snapshot))[nodes.rows][positions]
        attached = self._attached(nodes.snapshot)
        attached.refresh(rows)
        codes[positions] = _limit_codes(volumes, wanted, attached, rows)

    def _check_drivers(self, wanted: Wanted, nodes: Nodes, codes: IntArray) -> None:
        has_csi_node = self._has_csi_node(nodes)
        for presence in (True, False):
            for driver in reversed(self._required_drivers(wanted.on(presence))):
                missing: BoolArray = (has_csi_node == presence) & ~self._has_driver(nodes, driver)
                codes[missing] = wanted.codes.code_of(_driver_missing(driver))

    def _has_csi_node(self, nodes: Nodes) -> BoolArray:
        return np.array([self._csi_nodes.get(name) is not None for name in nodes.names], np.bool_)

    def _has_driver(self, nodes: Nodes, driver: str) -> BoolArray:
        """bool[node]: which nodes' CSINodes list the driver."""
        found = map(self._csi_nodes.get, nodes.names)
        return np.array([driver in drivers_of(csi_node) for csi_node in found], np.bool_)

    # --- one node ---

    def _verdict(self, wanted: Wanted, node: SimulatedNode) -> Status | None:
        """Why the volumes do not fit on one node with other pods on it; None if they do."""
        csi_node = self._csi_nodes.get(node.info.name)
        volumes = wanted.on(csi_node is not None)
        if isinstance(volumes, Status):
            return volumes
        if self._needs_drivers:
            for driver in self._required_drivers(volumes):
                if driver not in drivers_of(csi_node):
                    return _driver_missing(driver)
        if not volumes or self._room(node.snapshot).fits_on(node.info, wanted.added):
            return None
        attached = self._attached(node.snapshot)
        attached.refresh(np.array([node.row], np.intp))
        return _limit_verdict(volumes, attached.read_node(node.info))

    def volumes_on(self, pod: Pod, info: NodeInfo) -> tuple[CsiVolumes, NodeVolumes]:
        """The pod's volumes as they would count on a node, and what is attached there; for
        explanations. No volumes if they cannot be read."""
        has_csi_node = self._csi_nodes.get(info.name) is not None
        volumes = self._read(pod, has_csi_node)
        attached = self._attached(self._snapshot)
        return {} if isinstance(volumes, Status) else volumes, attached.read_node(info)

    def _required_drivers(self, volumes: CsiVolumes | Status) -> list[str]:
        """Drivers that a node must have for a pod with these volumes."""
        required: list[str] = []
        if isinstance(volumes, Status):
            return required
        for driver in dict.fromkeys(volumes.values()):
            csi_driver = self._csi_drivers.get(driver)
            if csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing:
                required.append(driver)
        return required


def _limit_codes(
    volumes: CsiVolumes, wanted: Wanted, attached: AttachedVolumes, rows: IntpArray
) -> IntArray:
    """int64[row]: the codes of these rows, which have been read."""
    codes = np.zeros(len(rows), np.int64)
    shared, errors = _shared_counts(volumes, attached), attached.errors()
    place_of = {row: place for place, row in enumerate(rows.tolist())} if shared or errors else {}
    for driver, count in wanted.added.items():
        free = attached.free(driver)[rows]
        too_many = free < count
        for row, counts in shared.items():
            place = place_of.get(row)
            if place is not None:
                added = count - counts[driver]
                too_many[place] = 0 < added > free[place]
        if too_many.any():
            codes[too_many] = wanted.codes.code_of(_TOO_MANY)
    for row, error in errors:
        if row in place_of:
            codes[place_of[row]] = wanted.codes.code_of(Status.from_error(PluginError(error)))
    return codes


def _limit_verdict(volumes: CsiVolumes, node: NodeVolumes) -> Status | None:
    """Why the volumes exceed the limits of one node; None if they do not."""
    if not node.limits:
        return None
    if node.error:
        return Status.from_error(PluginError(node.error))
    added = _counted({name: driver for name, driver in volumes.items() if name not in node.volumes})
    is_too_many = any(count > node.free(driver) for driver, count in added.items())
    return _TOO_MANY if is_too_many else None


def _counted(volumes: CsiVolumes) -> DriverCounts:
    counts: dict[str, int] = {}
    for driver in volumes.values():
        counts[driver] = counts.get(driver, 0) + 1
    return counts


def _shared_counts(volumes: CsiVolumes, attached: AttachedVolumes) -> dict[int, Counter[str]]:
    """Rows of nodes on which pods use some of the volumes already, with the number per driver."""
    shared: dict[int, Counter[str]] = {}
    for volume, driver in volumes.items():
        for row in attached.rows_with(volume):
            shared.setdefault(row, Counter())[driver] += 1
    return shared


def _driver_missing(driver: str) -> Status:
    return Status.unschedulable(f"{driver} CSI driver is not installed on the node")


# --- Hints ------------------------------------------------------------------------------------


def _after_csi_node_updated(pod: Pod, old: CSINode, new: CSINode) -> Hint:
    before = limits_of(old)
    has_grown = any(limit > before.get(driver, 0) for driver, limit in limits_of(new).items())
    return Hint.QUEUE if has_grown else Hint.SKIP


def _after_pod_deleted(pod: Pod, old: Pod, new: None) -> Hint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return Hint.SKIP
    return Hint.QUEUE if any(map(may_count, old.spec.volumes)) else Hint.SKIP


def _after_claim_added(pod: Pod, old: None, new: PersistentVolumeClaim) -> Hint:
    return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def _after_attachment_deleted(pod: Pod, old: VolumeAttachment, new: None) -> Hint:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        in_tree = in_tree_volume(volume)
        if in_tree is None:
            continue
        # Raises if it cannot be translated: an exception counts as QUEUE.
        inline_handle(in_tree)
        if in_tree.plugin.driver == old.spec.attacher:
            return Hint.QUEUE
    return Hint.SKIP
