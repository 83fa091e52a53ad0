"""NoDiskConflict: some disks cannot be mounted twice on a node (spec 07 §7.1, §4.2)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod import AwsElasticBlockStore, GcePersistentDisk, Iscsi, Rbd, Volume
from kubestow.arrays import BoolArray
from kubestow.cache.change_log import Depends
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.nodes import Nodes

_CONFLICT: Final = code_of("NoDiskConflict")

_Disk = GcePersistentDisk | AwsElasticBlockStore | Rbd | Iscsi


class NoDiskConflict(NamedRule):
    reads: ClassVar[Reads] = Reads.PODS

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        disks = [disk for volume in attempt.pod.pod.spec.volumes for disk in _disks_in(volume)]
        if not disks:
            return ALL_FIT
        conflict = np.zeros(len(nodes), np.bool_)
        for disk in disks:
            conflict |= _is_held(nodes, disk)
        return Verdicts(failing_where(conflict, _CONFLICT))


def _is_held(nodes: Nodes, disk: _Disk) -> BoolArray:
    """bool[node]: whether a pod on the node has the disk in a way that excludes this use."""

    def compute(nodes: Nodes) -> BoolArray:
        return np.array(
            [
                any(
                    _excludes(held, disk)
                    for pod in info.pods
                    for volume in pod.pod.spec.volumes
                    for held in _disks_in(volume)
                )
                for info in nodes.infos()
            ],
            np.bool_,
        )

    return nodes.tracked(("v1.9 disk", disk), Depends.PODS, compute)


def _disks_in(volume: Volume) -> list[_Disk]:
    found = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
    return [disk for disk in found if disk is not None]


def _excludes(held: _Disk, wanted: _Disk) -> bool:
    match held, wanted:
        case GcePersistentDisk(), GcePersistentDisk():
            is_same = held.pd_name == wanted.pd_name
        case AwsElasticBlockStore(), AwsElasticBlockStore():
            # Not even two readers may share one.
            return held.volume_id == wanted.volume_id
        case Iscsi(), Iscsi():
            is_same = held.iqn == wanted.iqn
        case Rbd(), Rbd():
            is_same = (
                held.pool == wanted.pool
                and held.image == wanted.image
                and not set(held.monitors).isdisjoint(wanted.monitors)
            )
        case _:
            return False
    return is_same and not (held.read_only and wanted.read_only)
