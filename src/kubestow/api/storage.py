"""Volumes, claims, classes and what CSI drivers report about nodes and capacity."""

import msgspec

from kubestow.api.meta import (
    ApiObject,
    LabelSelector,
    Object,
    ObjectReference,
    ResourceList,
)
from kubestow.api.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GcePersistentDisk,
    Iscsi,
    NodeSelector,
    PortworxVolume,
    Rbd,
    ResourceRequirements,
    VsphereVolume,
)
from kubestow.api.quantity import Quantity


class TypedObjectReference(Object, frozen=True, kw_only=True):
    api_group: str | None = None
    kind: str = ""
    name: str = ""


class PersistentVolumeClaimSpec(Object, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    # None means "the default class", "" means "no class".
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Object, frozen=True, kw_only=True):
    phase: str = ""
    capacity: ResourceList = {}
    current_volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(ApiObject, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Object, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class CsiPersistentVolume(Object, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""


class LocalVolume(Object, frozen=True, kw_only=True):
    path: str = ""


class PersistentVolumeSpec(Object, frozen=True, kw_only=True):
    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    persistent_volume_reclaim_policy: str = ""
    csi: CsiPersistentVolume | None = None
    local: LocalVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None


class PersistentVolumeStatus(Object, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolume(ApiObject, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(Object, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Object, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiObject, frozen=True, kw_only=True):
    provisioner: str = ""
    parameters: dict[str, str] = {}
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    reclaim_policy: str | None = None


class VolumeNodeResources(Object, frozen=True, kw_only=True):
    count: int | None = None


class CsiNodeDriver(Object, frozen=True, kw_only=True):
    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(Object, frozen=True, kw_only=True):
    drivers: tuple[CsiNodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True, kw_only=True):
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Object, frozen=True, kw_only=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiObject, frozen=True, kw_only=True):
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True, kw_only=True):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Object, frozen=True, kw_only=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Object, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Object, frozen=True, kw_only=True):
    attached: bool = False


class VolumeAttachment(ApiObject, frozen=True, kw_only=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
