"""Disks of three clouds: their names, and how many a node may have (spec 07 §7.1)."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from kubestow.api.pod import Volume
from kubestow.api.storage import PersistentVolumeSpec

DiskKind = Literal["EBS", "GCEPD", "AzureDisk"]

LIMIT_VARIABLE: Final = "KUBE_MAX_PD_VOLS"
DEFAULT_LIMITS: Final[Mapping[DiskKind, int]] = {"EBS": 39, "GCEPD": 16, "AzureDisk": 16}


def volume_limit(kind: DiskKind, environment: Mapping[str, str]) -> int:
    """How many disks a node may have: from the environment, if that is a positive number."""
    try:
        limit = int(environment.get(LIMIT_VARIABLE, ""))
    except ValueError:
        limit = 0
    return limit if limit > 0 else DEFAULT_LIMITS[kind]


def _ebs(volume: Volume | PersistentVolumeSpec) -> str:
    disk = volume.aws_elastic_block_store
    return disk.volume_id if disk is not None else ""


def _gce_pd(volume: Volume | PersistentVolumeSpec) -> str:
    disk = volume.gce_persistent_disk
    return disk.pd_name if disk is not None else ""


def _azure_disk(volume: Volume | PersistentVolumeSpec) -> str:
    disk = volume.azure_disk
    return disk.disk_name if disk is not None else ""


DISKS: Final[Mapping[DiskKind, Callable[[Volume | PersistentVolumeSpec], str]]] = {
    "EBS": _ebs,
    "GCEPD": _gce_pd,
    "AzureDisk": _azure_disk,
}
