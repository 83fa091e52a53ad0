"""The pools of devices that a node can reach (spec 08 B7.1).

A pool is usable only as a whole: while its driver replaces slices its devices are unknown.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from kubestow.api.node import Node
from kubestow.cache.numbering import numbered_max
from kubestow.errors import PluginError
from kubestow.index.devices.go_text import DeviceFields, device_text
from kubestow.index.devices.inventory import (
    DeviceInventory,
    PoolKey,
    PublishedDevice,
    PublishedSlice,
)
from kubestow.index.devices.node_match import NodeSelectionError
from kubestow.plugins.dynamic_resources.features import Features

# Counter set → counter → amount, in nano-units.
Counters = dict[str, dict[str, int]]


# Nodes for which pools are kept, beyond twice those of the last time outdated ones were dropped.
_SPARE: Final = 64
_ALL_FEATURES: Final = Features()


class Pool:
    """One pool as seen from one node.

    devices      in the order in which they are tried; none if incomplete or invalid
    elsewhere    devices of slices that do not target the node: they use the same counters
    """

    __slots__ = ("counters", "devices", "elsewhere", "is_complete", "is_valid", "key")

    def __init__(self, key: PoolKey, *, is_complete: bool, is_valid: bool = True) -> None:
        self.key = key
        self.is_complete = is_complete
        self.is_valid = is_valid
        self.devices: tuple[PublishedDevice, ...] = ()
        self.elsewhere: tuple[PublishedDevice, ...] = ()
        self.counters: Counters = {}

    @property
    def is_usable(self) -> bool:
        return self.is_complete and self.is_valid

    @property
    def is_late(self) -> bool:
        """Devices that have to be prepared are tried last; other pools keep their place."""
        return any(device.device.binding_conditions for device in self.devices)


class NodePools:
    """All pools of one node, in the order in which they are tried.

    devices   all usable devices, in order
    """

    __slots__ = ("devices", "has_invalid", "pools")

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(sorted(pools, key=lambda pool: (pool.is_late, pool.key)))
        self.has_invalid = any(pool.is_complete and not pool.is_valid for pool in pools)
        self.devices = tuple(
            (device, pool) for pool in self.pools if pool.is_usable for device in pool.devices
        )


class PoolGathering:
    """Finds the pools of a node. An edition that finds others derives from this."""

    device_fields: ClassVar = DeviceFields()

    def __init__(self, inventory: DeviceInventory, features: Features = _ALL_FEATURES) -> None:
        self.inventory = inventory
        self.features = features

    def of(self, node: Node) -> NodePools:
        """Compute the pools of a node; raises PluginError if a node selector does not parse."""
        by_pool: dict[PoolKey, list[PublishedSlice]] = {}
        for published in self.inventory.candidates(node.metadata.name):
            if not self._is_left_out(published) and self._is_relevant(published, node):
                _keep_newest(by_pool.setdefault(published.pool, []), published)
        pools = (self._make_pool(key, slices) for key, slices in by_pool.items())
        return NodePools([pool for pool in pools if pool is not None])

    def _is_left_out(self, published: PublishedSlice) -> bool:
        """Whether the slice needs a gate that is off."""
        return published.is_partitioned and not self.features.partitionable

    def _is_relevant(self, published: PublishedSlice, node: Node) -> bool:
        return published.has_counters or self._is_for_node(published, node)

    def _is_for_node(self, published: PublishedSlice, node: Node) -> bool:
        """Whether the slice, or a device of it, names the node."""
        if not published.reach.is_given:
            return published.per_device and any(
                self._reaches(device, node) for device in published.devices
            )
        try:
            return published.reach.includes(node)
        except NodeSelectionError as error:
            raise _selection_error(f"slice {published.name}", error) from error

    def _reaches(self, published: PublishedDevice, node: Node) -> bool:
        try:
            return published.reach.includes(node)
        except NodeSelectionError as error:
            device = device_text(published.device, self.device_fields)
            what = f"device {device} in slice {published.of.name}"
            raise _selection_error(what, error) from error

    def _make_pool(self, key: PoolKey, slices: list[PublishedSlice]) -> Pool | None:
        """None if the pool is being replaced: its new slices are all on other nodes so far."""
        generation, slice_count = slices[0].generation, slices[0].slice_count
        slices = sorted(slices, key=lambda each: each.name)
        others: list[PublishedSlice] = []
        if len(slices) != slice_count:
            everywhere = self.inventory.of_pool(key)
            if any(each.generation > generation for each in everywhere):
                return None
            same = [each for each in everywhere if self._counts(each, generation)]
            if len(same) != slice_count:
                return Pool(key, is_complete=False)
            seen = {each.name for each in slices}
            others = [each for each in same if each.name not in seen]
        pool = Pool(key, is_complete=True)
        pool.devices = tuple(
            device for each in slices for device in each.devices if not each.has_counters
        )
        if self.features.partitionable:
            pool.elsewhere = tuple(device for each in others for device in each.devices)
            counter_sets = [
                each
                for one in self._with_counters(slices, others)
                for each in one.spec.shared_counters
            ]
            pool.counters = {
                each.name: {name: counter.value.nano for name, counter in each.counters.items()}
                for each in counter_sets
            }
            if len(pool.counters) < len(counter_sets) or not _are_counters_known(pool):
                return Pool(key, is_complete=True, is_valid=False)
        names = {device.device.name for device in pool.devices}
        if len(names) < len(pool.devices):
            return Pool(key, is_complete=True, is_valid=False)
        return pool

    def _counts(self, published: PublishedSlice, generation: int) -> bool:
        """Whether the slice counts for the completeness of its pool."""
        return published.generation == generation

    def _with_counters(
        self, slices: Sequence[PublishedSlice], others: Sequence[PublishedSlice]
    ) -> Sequence[PublishedSlice]:
        """Whose counters the pool has: `slices` are for the node, `others` are not."""
        return slices


class PoolCache:
    """The pools of each node, computed again when slices or the node's labels change."""

    def __init__(self, gathering: PoolGathering) -> None:
        self._gathering = gathering
        self._inventory = gathering.inventory
        self._kept: dict[str, tuple[tuple[int, int], Node, NodePools]] = {}
        # How many there may be before outdated ones are dropped.
        self._kept_max = _SPARE

    def of(self, node: Node) -> NodePools:
        """The pools the node can reach; raises PluginError if a node selector does not parse."""
        name = node.metadata.name
        stamp = self._inventory.stamp_of(name)
        kept = self._kept.get(name)
        if kept is not None:
            kept_stamp, kept_node, pools = kept
            if kept_stamp == stamp and (
                kept_node is node or kept_node.metadata.labels == node.metadata.labels
            ):
                return pools
        pools = self._gathering.of(node)
        if len(self._kept) >= self._kept_max:
            self._drop_outdated()
        self._kept[name] = stamp, node, pools
        return pools

    def _drop_outdated(self) -> None:
        """Drop what is kept of deleted nodes: their devices would stay in memory with it."""
        stamp_of = self._inventory.stamp_of
        self._kept = {name: kept for name, kept in self._kept.items() if kept[0] == stamp_of(name)}
        # A deleted node that never had a slice of its own is not outdated by this.
        if len(self._kept) > numbered_max(self._inventory.node_count):
            self._kept.clear()
        self._kept_max = 2 * len(self._kept) + _SPARE


def _selection_error(what: str, error: NodeSelectionError) -> PluginError:
    return PluginError(
        f"gather pool information: failed to perform node selection for {what}: {error}"
    )


def _keep_newest(kept: list[PublishedSlice], published: PublishedSlice) -> None:
    if kept and published.generation < kept[0].generation:
        return
    if kept and published.generation > kept[0].generation:
        kept.clear()
    kept.append(published)


def _are_counters_known(pool: Pool) -> bool:
    """Whether all counters exist that devices draw from."""
    return all(
        consumption.counter_set in pool.counters
        and consumption.counters.keys() <= pool.counters[consumption.counter_set].keys()
        for device in (*pool.devices, *pool.elsewhere)
        for consumption in device.device.consumes_counters
    )
