"""Claims and their volumes, with the error texts of the predicates (spec 07 §7.1)."""

from typing import Final

from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.cache.objects import ClusterObjects
from kubestow.errors import KubestowError

UNNAMED_CLAIM: Final = "PersistentVolumeClaim had no name"


class VolumeClaimError(KubestowError):
    """The volume of a claim cannot be found."""


def claimed_volume(objects: ClusterObjects, namespace: str, claim_name: str) -> PersistentVolume:
    """The volume a claim is bound to; raises VolumeClaimError."""
    claim: PersistentVolumeClaim | None = objects.persistent_volume_claims.get(
        namespace, claim_name
    )
    if claim is None:
        raise VolumeClaimError(f'persistentvolumeclaim "{claim_name}" not found')
    volume_name = claim.spec.volume_name
    if not volume_name:
        raise VolumeClaimError(f'PersistentVolumeClaim is not bound: "{claim_name}"')
    volume = objects.persistent_volumes.get(volume_name)
    if volume is None:
        raise VolumeClaimError(f'persistentvolume "{volume_name}" not found')
    return volume
