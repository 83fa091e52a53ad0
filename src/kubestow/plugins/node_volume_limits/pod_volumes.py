"""The CSI volumes of a pod (spec 07 §5.3).

A volume counts under a name made of driver and handle, so that two pods that share it count once.
Volumes that no CSI driver attaches do not count at all.
"""

from typing import Final, NamedTuple

from kubestow.api.csi_translation import (
    IN_TREE_PLUGINS,
    TranslationError,
    in_tree_volume,
    inline_handle,
    persistent_handle,
)
from kubestow.api.pod import Pod, Volume, attaches_unclaimed
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.volume_claims import claim_class, claim_name, claim_not_found, ownership_error
from kubestow.cache.objects import ClusterObjects
from kubestow.errors import PluginError

# Unique name → driver.
CsiVolumes = dict[str, str]

# A claim has a handle only once it is bound; until then it counts under this name. Upstream takes
# 32 random characters so that no driver's handle begins the same way; a fixed text of that length
# serves as well, and the same cluster always gives the same names.
_UNBOUND_PREFIX: Final = "unbound-claim-without-any-handle"


class ClaimNotFound(PluginError):
    """A pod to be placed names a claim that does not exist."""


class ObjectKey(NamedTuple):
    """An object that an answer was read from, or that was missing when it was read."""

    kind: str
    namespace: str
    name: str


class VolumeReader:
    """Reads claims, volumes and classes."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects

    def volumes_of(
        self, pod: Pod, *, has_csi_node: bool, is_new: bool, read: set[ObjectKey] | None = None
    ) -> CsiVolumes:
        """The pod's CSI volumes; those of in-tree plugins count only where there is a CSINode.

        For a running pod, missing claims are ignored: they may be deleted. `read` collects what the
        answer depends on. Raises PluginError.
        """
        volumes: CsiVolumes = {}
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is None:
                found = _inline_volume(volume, has_csi_node=has_csi_node)
            else:
                claim = self._claim(pod, volume, name, is_new=is_new, read=read)
                found = self._claimed_volume(claim, has_csi_node, read) if claim else None
            if found is not None:
                driver, handle = found
                volumes[f"{driver}/{handle}"] = driver
        return volumes

    def _claim(
        self, pod: Pod, volume: Volume, name: str, *, is_new: bool, read: set[ObjectKey] | None
    ) -> PersistentVolumeClaim | None:
        if not name:
            raise PluginError("PersistentVolumeClaim had no name")
        namespace = pod.metadata.namespace
        claim = self._objects.persistent_volume_claims.get(namespace, name)
        if read is not None:
            read.add(ObjectKey("PersistentVolumeClaim", namespace, name))
        if claim is None:
            if is_new:
                raise ClaimNotFound(f"looking up PVC {namespace}/{name}: {claim_not_found(name)}")
            return None
        if volume.ephemeral is not None:
            error = ownership_error(pod, claim)
            if error:
                raise PluginError(error)
        return claim

    def _claimed_volume(
        self, claim: PersistentVolumeClaim, has_csi_node: bool, read: set[ObjectKey] | None
    ) -> tuple[str, str] | None:
        """Driver and handle of the volume that a claim has or will get."""
        name = claim.spec.volume_name
        if not name:
            return self._future_volume(claim, has_csi_node, read)
        if read is not None:
            read.add(ObjectKey("PersistentVolume", "", name))
        volume = self._objects.persistent_volumes.get(name)
        if volume is None:
            return self._future_volume(claim, has_csi_node, read)
        if volume.spec.csi is not None:
            driver, handle = volume.spec.csi.driver, volume.spec.csi.volume_handle
        else:
            in_tree = in_tree_volume(volume.spec)
            if in_tree is None or not (in_tree.plugin.can_migrate and has_csi_node):
                return None
            try:
                driver, handle = in_tree.plugin.driver, persistent_handle(volume, in_tree)
            except TranslationError:
                return None
        return (driver, handle) if driver and handle else None

    def _future_volume(
        self, claim: PersistentVolumeClaim, has_csi_node: bool, read: set[ObjectKey] | None
    ) -> tuple[str, str] | None:
        """What the claim's class will provision."""
        class_name = claim_class(claim)
        if not class_name:
            return None
        if read is not None:
            read.add(ObjectKey("StorageClass", "", class_name))
        storage_class = self._objects.storage_classes.get(class_name)
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        in_tree = IN_TREE_PLUGINS.get(driver)
        if in_tree is not None:
            if not (in_tree.can_migrate and has_csi_node):
                return None
            driver = in_tree.driver
        if not driver:
            return None
        meta = claim.metadata
        return driver, f"{_UNBOUND_PREFIX}-{meta.namespace}/{meta.name}"


def may_count(volume: Volume) -> bool:
    """Whether a volume of this kind may be one that a CSI driver attaches."""
    return volume.persistent_volume_claim is not None or attaches_unclaimed(volume)


def _inline_volume(volume: Volume, *, has_csi_node: bool) -> tuple[str, str] | None:
    in_tree = in_tree_volume(volume)
    if in_tree is None or not (in_tree.plugin.can_migrate and has_csi_node):
        return None
    try:
        return in_tree.plugin.driver, inline_handle(in_tree)
    except TranslationError as error:
        raise PluginError(
            f"converting volume({volume.name}) from inline to csi: {error}"
        ) from error
