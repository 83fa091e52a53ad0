"""The feature gates that decide which devices a claim can have (spec 08 B1)."""

import msgspec

from kubestow.config.feature_gates import FeatureGates, has_binding_conditions


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Gates of the search. An edition with more of them derives from this.

    binding_conditions   devices that have to be prepared may be allocated
    """

    consumable_capacity: bool = True
    partitionable: bool = True
    taints: bool = True
    binding_conditions: bool = True

    @property
    def is_basic(self) -> bool:
        """Whether the older variant of the search is used, which lacks what both gates brought.

        It does not know distinctAttribute and bindsToNode, and does not look at the capacities that
        a request names.
        """
        return not self.consumable_capacity and not self.binding_conditions


def features_of(gates: FeatureGates) -> Features:
    return Features(
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        partitionable=gates.enabled("DRAPartitionableDevices"),
        taints=gates.enabled("DRADeviceTaints"),
        binding_conditions=has_binding_conditions(gates),
    )
