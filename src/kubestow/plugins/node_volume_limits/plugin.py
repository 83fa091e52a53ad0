"""The NodeVolumeLimits plugin: PreFilter, Filter, and which events help (spec 07 §5)."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar, Final

import numpy as np

from kubestow.api.csi_translation import in_tree_volume, inline_handle
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from kubestow.api.volume_claims import uses_claim
from kubestow.arrays import BoolArray, IntArray, Rows
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PluginArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes, SimulatedNode
from kubestow.plugins.node_volume_limits.attached import AttachedVolumes, NodeVolumes, limits_of
from kubestow.plugins.node_volume_limits.pod_volumes import (
    ClaimNotFound,
    CsiVolumes,
    VolumeReader,
    may_count,
)

TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"

_TOO_MANY: Final = Status.unschedulable(TOO_MANY_VOLUMES)


class Wanted:
    """The volumes of the pod, or the error of reading them.

    In-tree volumes count only on nodes with a CSINode, so there are two answers. Each is read at
    first use: mostly all nodes are of one kind.
    """

    __slots__ = ("_found", "_read", "codes")

    def __init__(self, read: Callable[[bool], CsiVolumes | Status]) -> None:
        self._read = read
        self._found: dict[bool, CsiVolumes | Status] = {}
        self.codes = StatusCodes()

    def on(self, has_csi_node: bool) -> CsiVolumes | Status:
        found = self._found.get(has_csi_node)
        if found is None:
            found = self._found[has_csi_node] = self._read(has_csi_node)
        return found


class NodeVolumeLimits:
    name: ClassVar[str] = "NodeVolumeLimits"
    args_type: ClassVar[type[PluginArgs] | None] = None

    def __init__(self, args: None, handle: Handle) -> None:
        self._csi_drivers = handle.objects.csi_drivers
        self._reader = VolumeReader(handle.objects)
        self._objects = handle.objects
        self._snapshot = handle.snapshot
        self.reuse = Reuse(
            filter=Reads.PODS,
            pod=PodReads.SPEC,
            unless=PodInfo.mounts_storage,
            ignores_pods=self._ignores_pods,
        )
        self._needs_drivers = handle.feature_gates.enabled("VolumeLimitScaling")

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if not any(map(may_count, pod.pod.spec.volumes)):
            return Status.skip()
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if not pod.pod.spec.volumes:
            return None
        wanted, attached = self._wanted(state, pod), self._attached(nodes.snapshot)
        if self._passes_everywhere(wanted, attached):
            return None
        attached.refresh(nodes.rows)
        if isinstance(nodes, SimulatedNode):
            verdict = self._verdict(wanted, attached.read_node(nodes.info))
            return np.array([wanted.codes.code_of(verdict)], np.int64)
        return self._codes(wanted, attached, nodes)

    def _ignores_pods(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether the filter reads no pods: no node has a limit, or the pod has no volumes."""
        if not self._attached(self._snapshot).has_limits:
            return True
        volumes = self._wanted(state, pod).on(True)
        return isinstance(volumes, Status) or not volumes

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

    def _attached(self, snapshot: Snapshot) -> AttachedVolumes:
        return snapshot.derived(self._make_attached)

    def _make_attached(self, snapshot: Snapshot) -> AttachedVolumes:
        return AttachedVolumes(self._objects, snapshot)

    def _passes_everywhere(self, wanted: Wanted, attached: AttachedVolumes) -> bool:
        """Whether every node passes: the pod can be read, and no node has a limit."""
        return not (
            attached.has_limits
            or self._needs_drivers
            or isinstance(wanted.on(False), Status)
            or (attached.has_csi_nodes and isinstance(wanted.on(True), Status))
        )

    def _codes(self, wanted: Wanted, attached: AttachedVolumes, nodes: Nodes) -> IntArray | None:
        """int64[node]; None if every node passes."""
        volumes = wanted.on(True)
        if isinstance(volumes, Status) and wanted.on(False) == volumes:
            return np.full(len(nodes), wanted.codes.code_of(volumes), np.int64)
        codes = np.zeros(len(nodes), np.int64)
        # From the last check to the first: the code of the first failure overwrites the others.
        if volumes and not isinstance(volumes, Status):
            _check_limits(volumes, attached, wanted.codes, codes, nodes)
        has_csi_node = attached.has_csi_node()[nodes.rows]
        if self._needs_drivers:
            self._check_drivers(wanted, attached, codes, nodes.rows)
        if isinstance(volumes, Status):
            codes[has_csi_node] = wanted.codes.code_of(volumes)
        failure = None if has_csi_node.all() else wanted.on(False)
        if isinstance(failure, Status):
            codes[~has_csi_node] = wanted.codes.code_of(failure)
        return codes if codes.any() else None

    def _check_drivers(
        self, wanted: Wanted, attached: AttachedVolumes, codes: IntArray, rows: Rows
    ) -> None:
        has_csi_node = attached.has_csi_node()[rows]
        for presence in (True, False):
            volumes = wanted.on(presence)
            if isinstance(volumes, Status):
                continue
            for driver in reversed(self._required_drivers(volumes)):
                missing: BoolArray = (has_csi_node == presence) & ~attached.has_driver(driver)[rows]
                codes[missing] = wanted.codes.code_of(_driver_missing(driver))

    # --- one node ---

    def _verdict(self, wanted: Wanted, node: NodeVolumes) -> Status | None:
        """The same for one node with other pods on it."""
        volumes = wanted.on(node.has_csi_node)
        if isinstance(volumes, Status):
            return volumes
        if self._needs_drivers:
            for driver in self._required_drivers(volumes):
                if driver not in node.drivers:
                    return _driver_missing(driver)
        if not volumes or not node.limits:
            return None
        if node.error:
            return Status.from_error(PluginError(node.error))
        added = Counter(driver for volume, driver in volumes.items() if volume not in node.volumes)
        is_too_many = any(count > node.free(driver) for driver, count in added.items())
        return _TOO_MANY if is_too_many else None

    def _required_drivers(self, volumes: CsiVolumes) -> list[str]:
        """Drivers that a node must have for a pod with these volumes."""
        required: list[str] = []
        for driver in dict.fromkeys(volumes.values()):
            csi_driver = self._csi_drivers.get(driver)
            if csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing:
                required.append(driver)
        return required


def _check_limits(
    volumes: CsiVolumes,
    attached: AttachedVolumes,
    numbers: StatusCodes,
    codes: IntArray,
    nodes: Nodes,
) -> None:
    shared, errors = _shared_counts(volumes, attached), attached.errors()
    place_of = _places(nodes) if shared or errors else {}
    for driver, count in Counter(volumes.values()).items():
        free = attached.free(driver)[nodes.rows]
        too_many = free < count
        for row, counts in shared.items():
            place = place_of.get(row)
            if place is not None:
                added = count - counts[driver]
                too_many[place] = 0 < added > free[place]
        if too_many.any():
            codes[too_many] = numbers.code_of(_TOO_MANY)
    for row, error in errors:
        if row in place_of:
            codes[place_of[row]] = numbers.code_of(Status.from_error(PluginError(error)))


def _places(nodes: Nodes) -> dict[int, int]:
    """Row → where in the view it is."""
    rows = nodes.rows
    if isinstance(rows, slice):
        numbers: Iterable[int] = range(*rows.indices(len(nodes.snapshot)))
    else:
        numbers = rows.tolist()
    return {row: place for place, row in enumerate(numbers)}


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
