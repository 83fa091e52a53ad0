"""MaxEBSVolumeCount, MaxGCEPDVolumeCount, MaxAzureDiskVolumeCount (spec 07 §7.1)."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final, Literal

import numpy as np

from kubestow.api.pod import Pod, Volume
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.objects import ClusterObjects
from kubestow.editions.shared.disks import DISKS, DiskKind
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, Reads, Verdicts
from kubestow.editions.v1_9.plugins.predicates.claims import (
    UNNAMED_CLAIM,
    VolumeClaimError,
    claimed_volume,
)
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.nodes import Nodes

_TOO_MANY: Final = code_of("MaxVolumeCount")

# Disks are identified by the cloud's name. A claim without a known volume counts by its own name,
# as a disk that may be of any kind.
_Id = tuple[Literal["disk"], str] | tuple[Literal["claim"], str, str]


class MaxVolumeCount:
    reads: ClassVar[Reads] = Reads.PODS | Reads.VOLUMES

    def __init__(self, name: str, *, kind: DiskKind, limit: int) -> None:
        self.name = name
        self._kind: DiskKind = kind
        self._limit = limit

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        pod, objects = attempt.pod.pod, attempt.cluster.objects
        if any(_is_unnamed_claim(volume) for volume in pod.spec.volumes):
            return Verdicts(np.full(len(nodes), -1, np.int64), (UNNAMED_CLAIM,))
        wanted = set(_ids_of((pod,), self._kind, objects))
        if not wanted:
            return ALL_FIT
        count = self._held_count(nodes, objects) + len(wanted)
        for disk in wanted:
            count = count - self._holds(nodes, objects, disk)
        return Verdicts(failing_where(count > self._limit, _TOO_MANY))

    def _held_count(self, nodes: Nodes, objects: ClusterObjects) -> IntArray:
        """int64[node]: how many different disks the pods on each node have."""

        def compute(nodes: Nodes) -> IntArray:
            return np.array([len(self._held(pods, objects)) for pods in _pods_on(nodes)], np.int64)

        return nodes.tracked(("v1.9 disks", *self._version(objects)), Depends.PODS, compute)

    def _holds(self, nodes: Nodes, objects: ClusterObjects, disk: _Id) -> BoolArray:
        """bool[node]: whether a pod on the node has that disk already."""

        def compute(nodes: Nodes) -> BoolArray:
            return np.array([disk in self._held(pods, objects) for pods in _pods_on(nodes)])

        key = ("v1.9 disk held", disk, *self._version(objects))
        return nodes.tracked(key, Depends.PODS, compute)

    def _held(self, pods: Iterable[Pod], objects: ClusterObjects) -> set[_Id]:
        return set(_ids_of(pods, self._kind, objects))

    def _version(self, objects: ClusterObjects) -> tuple[str, int, int]:
        """Everything besides the pods that the disks of a node depend on."""
        volumes, claims = objects.persistent_volumes, objects.persistent_volume_claims
        return self._kind, volumes.version, claims.version


def _pods_on(nodes: Nodes) -> Iterator[list[Pod]]:
    for info in nodes.infos():
        yield [pod.pod for pod in info.pods if pod.pod.spec.volumes]


def _ids_of(pods: Iterable[Pod], kind: DiskKind, objects: ClusterObjects) -> Iterator[_Id]:
    disk_of = DISKS[kind]
    for pod in pods:
        for volume in pod.spec.volumes:
            if disk := disk_of(volume):
                yield "disk", disk
            claim = volume.persistent_volume_claim
            if claim is None:
                continue
            try:
                found = claimed_volume(objects, pod.metadata.namespace, claim.claim_name)
            except VolumeClaimError:
                yield "claim", pod.metadata.namespace, claim.claim_name
            else:
                if disk := disk_of(found.spec):
                    yield "disk", disk


def _is_unnamed_claim(volume: Volume) -> bool:
    claim = volume.persistent_volume_claim
    return claim is not None and not claim.claim_name
