"""One picture of the devices per cluster, whichever plugin of whichever profile looks at it.

What one profile has in flight must be taken for the others too, so this cannot belong to a plugin
object: it belongs to the stores that plugins are given.
"""

from typing import Final
from weakref import WeakKeyDictionary

from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.changes import DeviceChanges
from kubestow.index.devices.claims import Claims
from kubestow.index.devices.classes import DeviceClassMap
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots


class KnownDevices:
    """Slices, claims and classes of one cluster."""

    def __init__(self, objects: ClusterObjects, gates: FeatureGates) -> None:
        self.changes = DeviceChanges()
        self.slots = NodeSlots(self.changes)
        self.inventory = DeviceInventory(objects.resource_slices, self.changes)
        allocated = AllocatedDevices(
            self.inventory.note_change,
            consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        )
        self.claims = Claims(objects.resource_claims, allocated)
        self.classes = objects.device_classes
        self.class_map = DeviceClassMap(objects.device_classes)

    @classmethod
    def of(cls, objects: ClusterObjects, gates: FeatureGates) -> "KnownDevices":
        """The picture that goes with these stores, made when somebody first asks."""
        known = cls.existing(objects)
        if known is None:
            known = _KNOWN[objects] = cls(objects, gates)
        return known

    @staticmethod
    def existing(objects: ClusterObjects) -> "KnownDevices | None":
        """The same, None if no plugin has asked for it."""
        return _KNOWN.get(objects)


_KNOWN: Final[WeakKeyDictionary[ClusterObjects, KnownDevices]] = WeakKeyDictionary()
