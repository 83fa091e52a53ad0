"""The claims of a pod's volumes, and the state of a claim (spec 07 §1.3).

All volume plugins and the volume controller of the simulator read claims and volumes by the same
rules, and the plugins reject with the same texts; both are here.

Not here: finding a volume for a claim (`plugins.volume_binding`), in-tree volumes
(`csi_translation`).
"""

from collections.abc import Iterator
from typing import Final

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, Volume
from kubestow.api.quantity import ZERO, Quantity
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED_ANNOTATION: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER_ANNOTATION: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
STORAGE: Final = "storage"


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The claim of a pod's volume, in the pod's namespace; None if it has none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def named_claims(pod: Pod) -> Iterator[str]:
    """Claims the pod names itself; those made for its ephemeral volumes are left out."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether some volume of the pod, ephemeral ones included, uses the claim."""
    meta = claim.metadata
    return meta.namespace == pod.metadata.namespace and any(
        claim_name(pod, volume) == meta.name for volume in pod.spec.volumes
    )


def names_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether the pod names the claim itself."""
    meta = claim.metadata
    return meta.namespace == pod.metadata.namespace and meta.name in named_claims(pod)


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why the claim cannot be used for an ephemeral volume of the pod; empty if it can."""
    controller = next((ref for ref in claim.metadata.owner_references if ref.controller), None)
    if controller is not None and controller.uid == pod.metadata.uid:
        return ""
    return (
        f"PVC {_path(claim.metadata)} was not created for pod {_path(pod.metadata)} "
        "(pod is not owner)"
    )


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The claim's storage class; "" if it has none."""
    # The annotation is older than the field and wins wherever it is present, even when empty.
    annotated = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def volume_class(volume: PersistentVolume) -> str:
    annotated = volume.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the binding is complete; a volume name alone is only a request."""
    return bool(claim.spec.volume_name) and (
        BIND_COMPLETED_ANNOTATION in claim.metadata.annotations
    )


def is_claimed_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to, or reserved for, this claim (by UID, if it has one)."""
    ref, meta = volume.spec.claim_ref, claim.metadata
    return (
        ref is not None
        and ref.name == meta.name
        and ref.namespace == meta.namespace
        and ref.uid in ("", meta.uid)
    )


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    return (claim.spec.resources.requests or {}).get(STORAGE, ZERO)


def offered_storage(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get(STORAGE, ZERO)


# --- Texts that users and controllers match on ------------------------------------------------


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


def mode_not_set(class_name: str) -> str:
    return f'VolumeBindingMode not set for StorageClass "{class_name}"'


def _path(meta: ObjectMeta) -> str:
    return f"{meta.namespace}/{meta.name}"
