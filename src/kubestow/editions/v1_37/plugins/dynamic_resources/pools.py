"""The pools of devices that a node can reach in v1.37 (spec 12 §10.2 f, h)."""

from collections.abc import Sequence
from typing import ClassVar

from kubestow.api.node import Node
from kubestow.editions.v1_37.plugins.dynamic_resources.features import FeaturesV137
from kubestow.index.devices.go_text import DeviceFields
from kubestow.index.devices.inventory import DeviceInventory, PublishedSlice
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.pools import PoolGathering


class PoolGatheringV137(PoolGathering):
    """Slices with counters are for the nodes that they name, as others; a pool has the counters of
    all its slices."""

    device_fields: ClassVar = DeviceFields(
        has_groups=True, allocatable=("NodeAllocatableResources", "NodeAllocatableResource")
    )

    def __init__(self, inventory: DeviceInventory, features: Features) -> None:
        super().__init__(inventory, features)
        assert isinstance(features, FeaturesV137), features
        self._accepts_groups = features.compatibility_groups
        self._is_basic = features.is_basic

    def _is_left_out(self, published: PublishedSlice) -> bool:
        return super()._is_left_out(published) or self._lacks_groups_gate(published)

    def _is_relevant(self, published: PublishedSlice, node: Node) -> bool:
        if self._is_basic:
            return super()._is_relevant(published, node)
        return self._is_for_node(published, node)

    def _counts(self, published: PublishedSlice, generation: int) -> bool:
        """A slice that is left out because of its groups makes its pool incomplete."""
        return super()._counts(published, generation) and not self._lacks_groups_gate(published)

    def _with_counters(
        self, slices: Sequence[PublishedSlice], others: Sequence[PublishedSlice]
    ) -> Sequence[PublishedSlice]:
        return slices if self._is_basic else (*slices, *others)

    def _lacks_groups_gate(self, published: PublishedSlice) -> bool:
        return published.has_groups and not self._accepts_groups
