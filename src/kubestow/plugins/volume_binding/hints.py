"""Which events may help a pod that VolumeBinding rejected (spec 07 §2.10)."""

from kubestow.api.csi_translation import MIGRATED_PLUGINS_ANNOTATION
from kubestow.api.pod import Pod
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from kubestow.api.volume_claims import uses_claim
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.plugins.volume_binding.capacity import limit_of


def registrations() -> Registrations:
    added_or_updated = Action.ADD | Action.UPDATE
    return (
        on(Resource.STORAGE_CLASS, added_or_updated, after_class_changed),
        on(Resource.PERSISTENT_VOLUME_CLAIM, added_or_updated, after_claim_changed),
        on(Resource.PERSISTENT_VOLUME, added_or_updated),
        on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        on(Resource.CSI_NODE, added_or_updated, after_csi_node_changed),
        on(Resource.CSI_DRIVER, Action.UPDATE, after_csi_driver_updated),
        on(Resource.CSI_STORAGE_CAPACITY, added_or_updated, after_capacity_changed),
    )


def after_class_changed(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    if old is None or old.allowed_topologies != new.allowed_topologies:
        return Hint.QUEUE
    return Hint.SKIP


def after_claim_changed(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def after_csi_node_changed(pod: Pod, old: CSINode | None, new: CSINode) -> Hint:
    if old is None or _migrated(old) != _migrated(new):
        return Hint.QUEUE
    return Hint.SKIP


def after_csi_driver_updated(pod: Pod, old: CSIDriver, new: CSIDriver) -> Hint:
    is_used = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name
        for volume in pod.spec.volumes
    )
    no_longer_limits = old.spec.storage_capacity and not new.spec.storage_capacity
    return Hint.QUEUE if is_used and no_longer_limits else Hint.SKIP


def after_capacity_changed(
    pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> Hint:
    if old is None:
        return Hint.QUEUE
    before, after = limit_of(old), limit_of(new)
    has_grown = after is not None and (before is None or after.value() > before.value())
    return Hint.QUEUE if has_grown else Hint.SKIP


def _migrated(csi_node: CSINode) -> str:
    return csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "")
