"""In-tree volumes as the CSI volumes that have replaced them (spec 07 §1.4).

A cluster may still describe disks in the older form, with separate fields for each cloud. Nodes
attach them through a CSI driver nevertheless, so limits count them under the driver's name, and
their topology uses the driver's label.

Only what the scheduler reads is translated: driver, handle and node affinity.
Not here: whether a node has switched to the driver; the two users of this differ in that.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from kubestow.api.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GcePersistentDisk,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PortworxVolume,
    Volume,
    VsphereVolume,
)
from kubestow.api.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL

MIGRATED_PLUGINS_ANNOTATION: Final = "storage.alpha.kubernetes.io/migrated-plugins"

ZONE_SEPARATOR: Final = "__"

_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_ID: Final = re.compile("vol-[^/]*")


class TranslationError(ValueError):
    """An in-tree volume that no CSI volume corresponds to."""


class InTreePlugin(NamedTuple):
    """One of the older volume plugins and the driver that replaced it."""

    name: str
    driver: str
    # The driver's zone label on nodes; None where zones are not translated.
    zone_key: str | None
    # Whether a node can count as switched to the driver.
    can_migrate: bool


AWS_EBS: Final = InTreePlugin(
    "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", True
)
GCE_PD: Final = InTreePlugin(
    "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", True
)
AZURE_DISK: Final = InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", None, True)
CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder",
    "cinder.csi.openstack.org",
    "topology.cinder.csi.openstack.org/zone",
    True,
)
PORTWORX: Final = InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", None, True)
AZURE_FILE: Final = InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", None, False)
VSPHERE: Final = InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", None, False)

IN_TREE_PLUGINS: Final = {
    plugin.name: plugin
    for plugin in (AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX, AZURE_FILE, VSPHERE)
}

InTreeSource = (
    AwsElasticBlockStore
    | GcePersistentDisk
    | AzureDisk
    | Cinder
    | PortworxVolume
    | AzureFile
    | VsphereVolume
)


class InTreeVolume(NamedTuple):
    plugin: InTreePlugin
    source: InTreeSource


def in_tree_volume(holder: Volume | PersistentVolumeSpec) -> InTreeVolume | None:
    """The in-tree source of a pod's volume or of a persistent one; None if it has another."""
    if holder.aws_elastic_block_store is not None:
        return InTreeVolume(AWS_EBS, holder.aws_elastic_block_store)
    if holder.gce_persistent_disk is not None:
        return InTreeVolume(GCE_PD, holder.gce_persistent_disk)
    if holder.azure_disk is not None:
        return InTreeVolume(AZURE_DISK, holder.azure_disk)
    if holder.cinder is not None:
        return InTreeVolume(CINDER, holder.cinder)
    if holder.portworx_volume is not None:
        return InTreeVolume(PORTWORX, holder.portworx_volume)
    if holder.azure_file is not None:
        return InTreeVolume(AZURE_FILE, holder.azure_file)
    if holder.vsphere_volume is not None:
        return InTreeVolume(VSPHERE, holder.vsphere_volume)
    return None


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """The in-tree plugins whose volumes a node attaches through the CSI driver."""
    if csi_node is None:
        return frozenset()
    listed = csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "")
    return frozenset(listed.split(",")) if listed else frozenset()


def inline_handle(volume: InTreeVolume) -> str:
    """The handle of the CSI volume for a disk that a pod names itself."""
    if isinstance(volume.source, GcePersistentDisk):
        return _gce_handle(f"zones/{_UNSPECIFIED}", volume.source)
    return _handle(volume)


def persistent_handle(pv: PersistentVolume, volume: InTreeVolume) -> str:
    """The handle of the CSI volume for a persistent volume."""
    if isinstance(volume.source, GcePersistentDisk):
        return _gce_handle(_gce_location(pv), volume.source)
    return _handle(volume)


def translated_affinity(pv: PersistentVolume, volume: InTreeVolume) -> VolumeNodeAffinity | None:
    """The volume's node affinity with the topology labels of the CSI driver.

    Raises TranslationError also if the handle cannot be translated.
    """
    persistent_handle(pv, volume)
    zone_key = volume.plugin.zone_key
    if zone_key is None or (pv.spec.node_affinity is None and not pv.metadata.labels):
        return pv.spec.node_affinity
    terms = _terms_of(pv)
    uses_beta = _uses_beta_labels(pv, terms)
    in_tree_key = BETA_ZONE_LABEL if uses_beta else ZONE_LABEL
    if _has_values(terms, in_tree_key):
        terms = _renamed(terms, in_tree_key, zone_key)
    elif in_tree_key in pv.metadata.labels:
        terms = _with_zones(terms, zone_key, _zones(pv.metadata.labels[in_tree_key]))
    if uses_beta:
        terms = _renamed(terms, BETA_REGION_LABEL, REGION_LABEL)
    if terms is None:
        return pv.spec.node_affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


# --- Handles ----------------------------------------------------------------------------------


def _handle(volume: InTreeVolume) -> str:
    match volume.source:
        case AwsElasticBlockStore(volume_id=volume_id):
            return _ebs_id(volume_id)
        case AzureDisk(disk_uri=disk_uri, kind=kind):
            if kind is not None and kind.lower() != "managed":
                raise TranslationError(f"kind({kind}) is not supported in csi migration")
            return disk_uri
        case Cinder(volume_id=volume_id) | PortworxVolume(volume_id=volume_id):
            return volume_id
        case _:
            # Never counted and never matched, so the handle is not used.
            return ""


def _ebs_id(text: str) -> str:
    if not text.startswith("aws://"):
        return text
    volume_id = urlsplit(text).path.strip("/")
    if _EBS_ID.fullmatch(volume_id) is None:
        raise TranslationError(f'EBS volume ID "{text}" does not end in an ID such as vol-123')
    return volume_id


def _gce_handle(location: str, disk: GcePersistentDisk) -> str:
    return f"projects/{_UNSPECIFIED}/{location}/disks/{disk.pd_name}"


def _gce_location(pv: PersistentVolume) -> str:
    labels = pv.metadata.labels
    label = labels.get(BETA_ZONE_LABEL) or labels.get(ZONE_LABEL) or ""
    zones = [zone for zone in label.split(ZONE_SEPARATOR) if zone]
    if not zones:
        return f"zones/{_UNSPECIFIED}"
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    regions = {_gce_region(zone) for zone in zones}
    if len(regions) > 1:
        raise TranslationError(f'zones of label "{label}" lie in different regions')
    return f"regions/{regions.pop()}"


def _gce_region(zone: str) -> str:
    parts = zone.split("-")
    if len(parts) != 3:
        raise TranslationError(f'zone "{zone}" does not have the form area-region-letter')
    return "-".join(parts[:2])


# --- Topology ---------------------------------------------------------------------------------

# None: the volume has no node affinity. An empty tuple, which no node matches, is different.
_Terms = tuple[NodeSelectorTerm, ...] | None


def _terms_of(pv: PersistentVolume) -> _Terms:
    affinity = pv.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    return affinity.required.node_selector_terms


def _uses_beta_labels(pv: PersistentVolume, terms: _Terms) -> bool:
    """Whether the volume's zone has the labels used before v1.17."""
    keys = {expression.key for term in terms or () for expression in term.match_expressions}
    labels = pv.metadata.labels
    for known in (keys, labels):
        if ZONE_LABEL in known:
            return False
        if BETA_ZONE_LABEL in known:
            return True
    return False


def _has_values(terms: _Terms, key: str) -> bool:
    return any(
        expression.key == key and expression.values
        for term in terms or ()
        for expression in term.match_expressions
    )


def _renamed(terms: _Terms, old_key: str, new_key: str) -> _Terms:
    if terms is None:
        return None
    return tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                msgspec.structs.replace(expression, key=new_key)
                if expression.key == old_key
                else expression
                for expression in term.match_expressions
            ),
        )
        for term in terms
    )


def _with_zones(terms: _Terms, key: str, zones: tuple[str, ...]) -> _Terms:
    requirement = NodeSelectorRequirement(key=key, operator="In", values=zones)
    return tuple(
        msgspec.structs.replace(term, match_expressions=(*term.match_expressions, requirement))
        for term in terms or (NodeSelectorTerm(),)
    )


def _zones(label: str) -> tuple[str, ...]:
    zones = {part.strip() for part in label.split(ZONE_SEPARATOR)} - {""}
    if not zones:
        raise TranslationError(f'zone label "{label}" names no zone')
    return tuple(sorted(zones))
