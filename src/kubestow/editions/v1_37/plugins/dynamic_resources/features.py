"""The feature gates of v1.37 that decide which devices a claim can have (spec 12 §10)."""

from kubestow.config.feature_gates import FeatureGates
from kubestow.plugins.dynamic_resources.features import Features, features_of


class FeaturesV137(Features, frozen=True, kw_only=True):
    """Gates of the search.

    fractional_ranges       amounts of capacity may be thousandths
    list_attributes         constraints compare lists of values
    derived_attributes      constraints see attributes that requests compute
    compatibility_groups    devices that share counters name groups
    node_operations         devices that nodes need not prepare may be allocated
    """

    fractional_ranges: bool = False
    list_attributes: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False
    node_operations: bool = False

    @property
    def is_experimental(self) -> bool:
        """Whether the variant of the search is used that has what only alpha gates bring."""
        return (
            self.list_attributes
            or self.derived_attributes
            or self.compatibility_groups
            or self.node_operations
        )

    @property
    def is_basic(self) -> bool:
        is_newer = self.fractional_ranges or self.is_experimental
        return not is_newer and not self.consumable_capacity and not self.binding_conditions


def features_of_v137(gates: FeatureGates) -> FeaturesV137:
    core = features_of(gates)
    return FeaturesV137(
        consumable_capacity=core.consumable_capacity,
        partitionable=core.partitionable,
        taints=core.taints,
        binding_conditions=core.binding_conditions,
        fractional_ranges=gates.enabled("DRAFractionalCapacityRange"),
        list_attributes=gates.enabled("DRAListTypeAttributes"),
        derived_attributes=gates.enabled("DRADerivedAttributes"),
        compatibility_groups=gates.enabled("DRADeviceCompatibilityGroups"),
        node_operations=gates.enabled("DRAOptionalNodeOperations"),
    )
