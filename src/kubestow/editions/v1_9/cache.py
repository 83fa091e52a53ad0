"""What v1.9 read under names that no longer exist, from today's objects.

Zones and regions of nodes and volumes have other labels since v1.17. Where only today's label is
set, the older one is added, so that spreading by zone and NoVolumeZoneConflict work; an object that
has the older label is left as it is.
"""

from typing import Final, TypeVar

import msgspec

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.storage import PersistentVolume
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from kubestow.cache.objects import ClusterObjects, ObjectStore

T = TypeVar("T", bound=ApiObject)

_OLDER_LABELS: Final = ((ZONE_LABEL, BETA_ZONE_LABEL), (REGION_LABEL, BETA_REGION_LABEL))


class ObjectsV19(ClusterObjects):
    """Stores whose nodes and volumes have the labels of v1.9."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = self._stores[Node] = _MappedStore[Node]()
        self.persistent_volumes = _MappedStore[PersistentVolume]()
        self._stores[PersistentVolume] = self.persistent_volumes


class _MappedStore(ObjectStore[T]):
    __slots__ = ()

    def put(self, new: T) -> T | None:
        return super().put(with_older_labels(new))


def with_older_labels(found: T) -> T:
    """The object with the older labels of its zone and region."""
    labels = found.metadata.labels
    added = {
        older: labels[newer]
        for newer, older in _OLDER_LABELS
        if newer in labels and older not in labels
    }
    if not added:
        return found
    metadata = msgspec.structs.replace(found.metadata, labels={**labels, **added})
    return msgspec.structs.replace(found, metadata=metadata)
