"""The device data of one cluster, shared by all plugins and profiles.

What one profile has in flight must be taken for the others too, so this cannot belong to a plugin
object: it belongs to the stores that plugins are given.
"""

from typing import TYPE_CHECKING

from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import ConfigError
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.claims import Claims
from kubestow.index.devices.classes import DeviceClassMap
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots

if TYPE_CHECKING:  # loaded only where rules are read
    from kubestow.index.devices.taint_rules import TaintRules

_GATE = "DRAConsumableCapacity"


class KnownDevices:
    """Slices, claims and classes of one cluster.

    taint_rules   the DeviceTaintRules; None if they do not act
    """

    def __init__(self, objects: ClusterObjects, gates: FeatureGates) -> None:
        self._consumable_capacity = gates.enabled(_GATE)
        edition = gates.edition
        self.slots = NodeSlots()
        self.inventory = DeviceInventory(
            objects.resource_slices,
            self.slots,
            allows_lists=edition.list_attributes or gates.enabled("DRAListTypeAttributes"),
            local_counters=edition.local_counters,
        )
        self.taint_rules: TaintRules | None = None
        if edition.taint_rules and gates.enabled("DRADeviceTaintRules"):
            self.taint_rules = _taint_rules(objects, self.inventory)
        allocated = AllocatedDevices(
            self.inventory.note_change, consumable_capacity=self._consumable_capacity
        )
        self.claims = Claims(objects.resource_claims, allocated)
        self.classes = objects.device_classes
        self.class_map = DeviceClassMap(objects.device_classes)

    @classmethod
    def of(cls, objects: ClusterObjects, gates: FeatureGates) -> "KnownDevices":
        """The device data of these stores, made at first use."""
        known = cls.existing(objects)
        if known is None:
            known = objects.derived[cls] = cls(objects, gates)
        elif known._consumable_capacity != gates.enabled(_GATE):
            raise ConfigError(f"two readers of one cluster differ in the feature gate {_GATE}")
        return known

    @classmethod
    def existing(cls, objects: ClusterObjects) -> "KnownDevices | None":
        """The device data of these stores; None if no plugin has used it."""
        return objects.derived.get(cls)


def _taint_rules(objects: ClusterObjects, inventory: DeviceInventory) -> "TaintRules":
    from kubestow.index.devices.taint_rules import TaintRules

    return TaintRules(objects.device_taint_rules, inventory)
