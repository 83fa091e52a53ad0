"""Rejects nodes where a volume conflicts with those of other pods (spec 07 §4).

Two rules: disks named by the pod itself that cannot be mounted twice on one node, and claims that a
single pod in the whole cluster may use (ReadWriteOncePod). The first uses an index of disks by
node, the second the claims counted by the snapshot; both cost nothing for pods without such
volumes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod import Pod, Volume
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.volume_claims import claim_not_found, named_claims, names_claim
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PluginArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.follow import Follower, Sources
from kubestow.index.held import NodesByItem
from kubestow.index.nodes import Nodes, SimulatedNode
from kubestow.plugins._shared import bases

DISK_CONFLICT: Final = "node(s) had no available disk"
CLAIM_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

_DISK_CONFLICT: Final = 1
_CLAIM_IN_USE: Final = 2
_NO_STATE: Final = -1

# Identifies a disk. An RBD image has one per monitor: one in common makes it the same disk.
Disk = tuple[str, ...]


class VolumeRestrictions:
    name: ClassVar[str] = "VolumeRestrictions"
    args_type: ClassVar[type[PluginArgs] | None] = None
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.PODS, pod=PodReads.SPEC, basis=bases.volumes)

    def __init__(self, args: None, handle: Handle) -> None:
        self._claims = handle.objects.persistent_volume_claims

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if not pod.pod.spec.volumes:
            return Status.skip()
        exclusive: set[str] = set()
        for name in named_claims(pod.pod):
            claim = self._claims.get(pod.namespace, name)
            if claim is None:
                return Status.unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name)
        used = nodes.snapshot.is_pvc_used
        conflict_count = sum([used(f"{pod.namespace}/{name}") for name in exclusive])
        if conflict_count == 0 and not any(map(names_disk, pod.pod.spec.volumes)):
            return Status.skip()
        state.write(self.name, _ClaimUse(frozenset(exclusive), conflict_count))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> None:
        self._claim_use(state).count(added.pod, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> None:
        self._claim_use(state).count(removed.pod, -1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        otherwise = self._verdict_on_claims(state)
        disks = disks_of((pod.pod,))
        if isinstance(nodes, SimulatedNode):
            is_conflict = _conflicts(disks, _disks_on(nodes.info))
            return np.array([_DISK_CONFLICT if is_conflict else otherwise], np.int64)
        rows = nodes.snapshot.derived(DiskUsers).conflicting_rows(disks) if disks else []
        if not rows and otherwise == 0:
            return None
        codes = np.full(len(nodes.snapshot), otherwise, np.int64)
        codes[rows] = _DISK_CONFLICT
        return codes[nodes.rows]

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_volumes(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        match code:
            case 1:
                return Status.unschedulable(DISK_CONFLICT)
            case 2:
                return Status.unschedulable(CLAIM_IN_USE)
            case _:
                return Status.from_error(
                    PluginError(f'cannot read "PreFilter{self.name}" from cycleState')
                )

    def events(self) -> Registrations:
        return (
            on(Resource.POD, Action.DELETE, _after_pod_deleted),
            on(Resource.NODE, Action.ADD),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added),
        )

    def _claim_use(self, state: CycleState) -> "_ClaimUse":
        return state.read(self.name)

    def _verdict_on_claims(self, state: CycleState) -> int:
        claim_use: _ClaimUse | None = state.get(self.name)
        if claim_use is None:
            return _NO_STATE
        return _CLAIM_IN_USE if claim_use.conflict_count > 0 else 0


class _ClaimUse:
    """How often the pod's ReadWriteOncePod claims are used by others."""

    __slots__ = ("conflict_count", "names")

    def __init__(self, names: frozenset[str], conflict_count: int) -> None:
        self.names = names
        self.conflict_count = conflict_count

    def clone(self) -> "_ClaimUse":
        return _ClaimUse(self.names, self.conflict_count)

    def count(self, pod: Pod, sign: int) -> None:
        # Spec 07 §4.1: the pod's namespace is not compared, and each volume counts. The number may
        # be wrong, even negative, as upstream.
        self.conflict_count += sign * sum(name in self.names for name in named_claims(pod))


class DiskUsers(Follower):
    """Which nodes have pods that use a disk: `snapshot.derived(DiskUsers)`."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self._snapshot = snapshot
        self._held = NodesByItem[Disk, bool]()
        self.pods_changed(range(len(snapshot)))

    def conflicting_rows(self, disks: Mapping[Disk, bool]) -> list[int]:
        """Rows of the nodes on which some pod uses one of the disks in a way that excludes it."""
        self.catch_up()
        rows = set[int]()
        for disk, is_exclusive in disks.items():
            for node_name, is_held_exclusively in self._held.nodes_with(disk).items():
                row = self._snapshot.row_of(node_name)
                if row is not None and (is_exclusive or is_held_exclusively):
                    rows.add(row)
        return list(rows)

    def rows_moved(self, sources: Sources | None) -> None:
        self._held.keep_only(set(self._snapshot.names))
        if sources is None:
            self.pods_changed(range(len(self._snapshot)))

    def pods_changed(self, rows: Iterable[int]) -> None:
        names, infos = self._snapshot.names, self._snapshot.node_infos
        for row in dict.fromkeys(rows):
            self._held.put(names[row], _disks_on(infos[row]))


def names_disk(volume: Volume) -> bool:
    """Whether the volume is one of the four kinds of disk this plugin checks."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def disks_of(pods: Iterable[Pod]) -> dict[Disk, bool]:
    """The disks the pods name themselves, each with whether it excludes any other user."""
    held: dict[Disk, bool] = {}
    for pod in pods:
        for volume in pod.spec.volumes:
            if names_disk(volume):
                for disk, is_exclusive in _disks_in(volume):
                    held[disk] = held.get(disk, False) or is_exclusive
    return held


def _disks_in(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    if volume.gce_persistent_disk is not None:
        gce = volume.gce_persistent_disk
        yield ("gce", gce.pd_name), not gce.read_only
    if volume.aws_elastic_block_store is not None:
        # Not even two readers may share one.
        yield ("ebs", volume.aws_elastic_block_store.volume_id), True
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn), not volume.iscsi.read_only
    if volume.rbd is not None:
        rbd = volume.rbd
        for monitor in rbd.monitors:
            yield ("rbd", monitor, rbd.pool, rbd.image), not rbd.read_only


def _disks_on(info: NodeInfo) -> dict[Disk, bool]:
    return disks_of(pod.pod for pod in info.pods)


def _conflicts(disks: Mapping[Disk, bool], held: Mapping[Disk, bool]) -> bool:
    return any(
        disk in held and (is_exclusive or held[disk]) for disk, is_exclusive in disks.items()
    )


def _after_pod_deleted(pod: Pod, old: Pod, new: None) -> Hint:
    if old.metadata.namespace != pod.metadata.namespace:
        return Hint.SKIP
    shares_claim = not set(named_claims(pod)).isdisjoint(named_claims(old))
    shares_disk = _conflicts(disks_of((pod,)), disks_of((old,)))
    return Hint.QUEUE if shares_claim or shares_disk else Hint.SKIP


def _after_claim_added(pod: Pod, old: None, new: PersistentVolumeClaim) -> Hint:
    return Hint.QUEUE if names_claim(pod, new) else Hint.SKIP
