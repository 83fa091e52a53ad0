"""Volumes, claims and CSI objects for tests: give what matters, get a whole object.

    make_claim("data", size="5Gi")                            waits for its first consumer
    make_claim("data", volume="pv-1")                         bound to a volume
    make_volume("pv-1", terms=[make_term("zone In a")])       free, reachable from one zone
    make_storage_class("fast", topologies=[{"zone": ["a"]}])
    make_csi_node("n1", {"ebs.csi.aws.com": 25})

By default claims, volumes and classes belong to class "fast", which waits for the first consumer
and provisions; sizes are written as in a manifest.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kubestow.api.meta import (
    LabelSelector,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    ResourceList,
)
from kubestow.api.pod import (
    EphemeralVolumeSource,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    ResourceRequirements,
    Volume,
)
from kubestow.api.quantity import parse_quantity
from kubestow.api.storage import (
    CSIDriver,
    CsiDriverSpec,
    CSINode,
    CsiNodeDriver,
    CsiNodeSpec,
    CsiPersistentVolume,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)

FAST: Final = "fast"
DRIVER: Final = "csi.example.com"


def make_claim(
    name: str = "c",
    *,
    namespace: str = "default",
    size: str | None = "1Gi",
    class_name: str | None = FAST,
    volume: str = "",
    is_bound: bool | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    selector: LabelSelector | None = None,
    volume_mode: str | None = None,
    attributes_class: str | None = None,
    phase: str = "",
    selected_node: str | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    deleted: datetime | None = None,
    version: int = 1,
) -> PersistentVolumeClaim:
    """A claim. One with a volume is fully bound unless `is_bound` is False."""
    notes = dict(annotations or {})
    if volume if is_bound is None else is_bound:
        notes["pv.kubernetes.io/bind-completed"] = "yes"
    if selected_node is not None:
        notes["volume.kubernetes.io/selected-node"] = selected_node
    return PersistentVolumeClaim(
        api_version="v1",
        kind="PersistentVolumeClaim",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{namespace}-{name}",
            resource_version=str(version),
            annotations=notes,
            deletion_timestamp=deleted,
            owner_references=()
            if owner is None
            else (OwnerReference(kind="Pod", uid=owner.metadata.uid, controller=True),),
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(modes),
            resources=ResourceRequirements(requests=None if size is None else _storage(size)),
            storage_class_name=class_name,
            volume_name=volume,
            selector=selector,
            volume_mode=volume_mode,
            volume_attributes_class_name=attributes_class,
        ),
        status=PersistentVolumeClaimStatus(phase=phase),
    )


def make_volume(
    name: str = "pv",
    *,
    size: str = "10Gi",
    class_name: str = FAST,
    terms: Sequence[NodeSelectorTerm] | None = None,
    claim: PersistentVolumeClaim | str | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    volume_mode: str | None = None,
    attributes_class: str | None = None,
    phase: str = "Available",
    handle: str = "",
    driver: str = DRIVER,
    deleted: datetime | None = None,
    policy: str = "Retain",
    version: int = 1,
    # Any: an in-tree source, given by the name of its field.
    **source: Any,
) -> PersistentVolume:
    """A volume, of a CSI driver if it has a handle.

    `claim` is the claim it is bound to, or "namespace/name" for one it is reserved for.
    """
    if handle:
        source["csi"] = CsiPersistentVolume(driver=driver, volume_handle=handle)
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(
            name=name,
            resource_version=str(version),
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            deletion_timestamp=deleted,
        ),
        spec=PersistentVolumeSpec(
            capacity=_storage(size),
            access_modes=tuple(modes),
            storage_class_name=class_name,
            claim_ref=_claim_ref(claim),
            node_affinity=None if terms is None else make_volume_affinity(*terms),
            volume_mode=volume_mode,
            volume_attributes_class_name=attributes_class,
            persistent_volume_reclaim_policy=policy,
            **source,
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def make_volume_affinity(*terms: NodeSelectorTerm) -> VolumeNodeAffinity:
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def make_storage_class(
    name: str = FAST,
    *,
    provisioner: str = DRIVER,
    mode: str | None = "WaitForFirstConsumer",
    topologies: Iterable[Mapping[str, Iterable[str]]] = (),
    policy: str | None = None,
) -> StorageClass:
    """A class; each of `topologies` maps label keys to the values allowed."""
    return StorageClass(
        api_version="storage.k8s.io/v1",
        kind="StorageClass",
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=mode,
        reclaim_policy=policy,
        allowed_topologies=tuple(
            TopologySelectorTerm(
                match_label_expressions=tuple(
                    TopologySelectorLabelRequirement(key=key, values=tuple(values))
                    for key, values in term.items()
                )
            )
            for term in topologies
        ),
    )


def make_csi_node(
    name: str,
    limits: Mapping[str, int | None] | None = None,
    *,
    migrated: str | None = None,
    topology_keys: Iterable[str] = (),
) -> CSINode:
    """A node's drivers and their volume limits; None for a driver without a limit."""
    note = "storage.alpha.kubernetes.io/migrated-plugins"
    return CSINode(
        api_version="storage.k8s.io/v1",
        kind="CSINode",
        metadata=ObjectMeta(name=name, annotations={} if migrated is None else {note: migrated}),
        spec=CsiNodeSpec(
            drivers=tuple(
                CsiNodeDriver(
                    name=driver,
                    topology_keys=tuple(topology_keys),
                    allocatable=None if count is None else VolumeNodeResources(count=count),
                )
                for driver, count in (limits or {}).items()
            )
        ),
    )


def make_csi_driver(
    name: str = DRIVER, *, capacity: bool | None = None, is_required: bool | None = None
) -> CSIDriver:
    """A driver; `capacity`: whether it reports its free storage."""
    return CSIDriver(
        api_version="storage.k8s.io/v1",
        kind="CSIDriver",
        metadata=ObjectMeta(name=name),
        spec=CsiDriverSpec(
            storage_capacity=capacity, prevent_pod_scheduling_if_missing=is_required
        ),
    )


def make_capacity(
    name: str = "cap",
    *,
    class_name: str = FAST,
    topology: LabelSelector | None = None,
    size: str | None = None,
    maximum: str | None = None,
) -> CSIStorageCapacity:
    """The free storage of a class on the nodes that `topology` selects."""
    return CSIStorageCapacity(
        api_version="storage.k8s.io/v1",
        kind="CSIStorageCapacity",
        metadata=ObjectMeta(name=name, namespace="drivers"),
        storage_class_name=class_name,
        node_topology=topology,
        capacity=None if size is None else parse_quantity(size),
        maximum_volume_size=None if maximum is None else parse_quantity(maximum),
    )


def make_attachment(
    name: str, *, node: str, volume: str | None, attacher: str = DRIVER
) -> VolumeAttachment:
    return VolumeAttachment(
        api_version="storage.k8s.io/v1",
        kind="VolumeAttachment",
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(
            attacher=attacher,
            node_name=node,
            source=VolumeAttachmentSource(persistent_volume_name=volume),
        ),
    )


def make_ephemeral_volume(name: str = "scratch") -> Volume:
    """A volume of a pod for which a claim is made from a template."""
    return Volume(name=name, ephemeral=EphemeralVolumeSource())


def _storage(size: str) -> ResourceList:
    return {"storage": parse_quantity(size)}


def _claim_ref(claim: PersistentVolumeClaim | str | None) -> ObjectReference | None:
    if claim is None:
        return None
    if isinstance(claim, str):
        namespace, _, name = claim.partition("/")
        return ObjectReference(namespace=namespace, name=name)
    meta = claim.metadata
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
    )
