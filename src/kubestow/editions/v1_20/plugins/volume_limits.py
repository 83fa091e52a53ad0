"""EBSLimits, GCEPDLimits and AzureDiskLimits (spec 07 §7.2).

A node may have this many disks of a cloud. Disks whose in-tree driver was migrated to CSI on a node
are counted by NodeVolumeLimits there; today that is every node that lists the driver's CSI name.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.objects import ClusterObjects
from kubestow.editions.shared.disks import (
    DISKS,
    LIMIT_VARIABLE,
    DiskKind,
    volume_limit,
)
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes

_TOO_MANY: Final = Status.unschedulable("node(s) exceed max volume count")
_UNNAMED: Final = "PersistentVolumeClaim had no name"
_INSTANCE_LABELS: Final = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
# Instances of AWS whose disks use one of few slots.
_NITRO: Final = re.compile(r"^[cmr]5.*|t3|z1d")
_NITRO_LIMIT: Final = 25
_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"


class _DiskLimits:
    """Counts different disks by the names of the cloud. `resource` is a node's own limit."""

    args_type: ClassVar[None] = None
    kind: ClassVar[DiskKind]
    resource: ClassVar[str]
    provisioner: ClassVar[str]

    def __init__(
        self, args: object, handle: Handle, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._objects = handle.objects
        self._default_limit = volume_limit(self.kind, environment)
        self._is_limit_set = bool(environment.get(LIMIT_VARIABLE))

    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD),
            on(Resource.POD, Action.DELETE),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE),
        ]

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if not pod.pod.spec.volumes:
            return None
        wanted = set(self._disks_of((pod.pod,)))
        if not wanted:
            return None
        codes = np.zeros(len(nodes), np.int64)
        for position, info in enumerate(nodes.infos()):
            assert info.node is not None
            if self._is_migrated(info.node):
                continue
            held = set(self._disks_of(placed.pod for placed in info.pods))
            codes[position] = len(held | wanted) > self._limit(info.node)
        return codes

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _TOO_MANY

    def _disks_of(self, pods: Iterable[Pod]) -> Iterator[str]:
        disk_of = DISKS[self.kind]
        for pod in pods:
            for volume in pod.spec.volumes:
                if disk := disk_of(volume):
                    yield disk
                elif volume.persistent_volume_claim is not None:
                    yield from self._claimed(pod, volume.persistent_volume_claim.claim_name)

    def _claimed(self, pod: Pod, name: str) -> Iterator[str]:
        if not name:
            raise PluginError(_UNNAMED)
        objects, namespace = self._objects, pod.metadata.namespace
        claim = objects.persistent_volume_claims.get(namespace, name)
        if claim is None:
            return
        volume = objects.persistent_volumes.get(claim.spec.volume_name)
        if volume is not None:
            if disk := DISKS[self.kind](volume.spec):
                yield disk
        elif _is_provisioned_by(self.provisioner, claim.spec.storage_class_name, objects):
            # No disk yet: the claim stands for one, by a name that no disk has.
            yield f"\0{namespace}/{name}"

    def _limit(self, node: Node) -> int:
        own = node.status.allocatable.get(self.resource)
        if own is not None:
            return own.value()
        if self.kind == "EBS" and not self._is_limit_set:
            labels = node.metadata.labels
            instance = next((labels[key] for key in _INSTANCE_LABELS if key in labels), "")
            if _NITRO.search(instance):
                return _NITRO_LIMIT
        return self._default_limit

    def _is_migrated(self, node: Node) -> bool:
        csi_node = self._objects.csi_nodes.get(node.metadata.name)
        if csi_node is None:
            return False
        return self.provisioner in csi_node.metadata.annotations.get(_MIGRATED, "").split(",")


class EBSLimits(_DiskLimits):
    name: ClassVar[str] = "EBSLimits"
    kind: ClassVar[DiskKind] = "EBS"
    resource: ClassVar[str] = "attachable-volumes-aws-ebs"
    provisioner: ClassVar[str] = "kubernetes.io/aws-ebs"


class GCEPDLimits(_DiskLimits):
    name: ClassVar[str] = "GCEPDLimits"
    kind: ClassVar[DiskKind] = "GCEPD"
    resource: ClassVar[str] = "attachable-volumes-gce-pd"
    provisioner: ClassVar[str] = "kubernetes.io/gce-pd"


class AzureDiskLimits(_DiskLimits):
    name: ClassVar[str] = "AzureDiskLimits"
    kind: ClassVar[DiskKind] = "AzureDisk"
    resource: ClassVar[str] = "attachable-volumes-azure-disk"
    provisioner: ClassVar[str] = "kubernetes.io/azure-disk"


def _is_provisioned_by(provisioner: str, class_name: str | None, objects: ClusterObjects) -> bool:
    found = None if class_name is None else objects.storage_classes.get(class_name)
    return found is not None and found.provisioner == provisioner
