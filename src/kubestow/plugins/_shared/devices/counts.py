"""How many devices of a class a node has, and how many of them are in use (spec 05 §8.6).

Scores of extended resources that devices serve are made of these numbers. Drivers, generations of
pools and counters do not matter here: it is an estimate, not an allocation.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kubestow.api.device import DeviceClass
from kubestow.api.node import Node
from kubestow.api.resources import is_dra_extended
from kubestow.arrays import IntArray
from kubestow.cache.nodes import Nodes
from kubestow.plugins._shared.devices.inventory import (
    DeviceInventory,
    PoolKey,
    PublishedDevice,
    PublishedSlice,
)
from kubestow.plugins._shared.devices.known import KnownDevices
from kubestow.plugins._shared.devices.node_match import NodeSelectionError
from kubestow.plugins._shared.devices.selectors import SelectorFailure, selects


class _Counted(NamedTuple):
    """What was counted on one node, and what that rests on."""

    slice_stamp: tuple[int, int]
    node: Node
    devices: tuple[PublishedDevice, ...]
    pools: tuple[PoolKey, ...]
    pool_stamps: tuple[int, ...]
    in_use: int


class DeviceCounts:
    """Counts devices by class and node; keeps the numbers until slices, node or claims change."""

    def __init__(self, known: KnownDevices) -> None:
        self._known = known
        self._kept: dict[str, tuple[DeviceClass, dict[str, _Counted]]] = {}

    def of_resource(self, resource: str, nodes: Nodes) -> tuple[IntArray, IntArray] | None:
        """int64[node] devices there are, int64[node] in use; None if no class serves it."""
        if not is_dra_extended(resource):
            return None
        device_class = self._known.class_map.class_of(resource)
        if device_class is None:
            return None
        counted = [self._count(device_class, node) for node in nodes.node_objects()]
        return (
            np.array([len(each.devices) for each in counted], np.int64),
            np.array([each.in_use for each in counted], np.int64),
        )

    def _count(self, device_class: DeviceClass, node: Node) -> _Counted:
        name = node.metadata.name
        by_node = self._by_node(device_class)
        kept = by_node.get(name)
        slice_stamp = self._known.inventory.stamp_of(name)
        if (
            kept is None
            or kept.slice_stamp != slice_stamp
            or not (kept.node is node or kept.node.metadata.labels == node.metadata.labels)
        ):
            devices = _devices_of(self._known.inventory, device_class, node)
            pools = tuple({device.pool: None for device in devices})
            kept = _Counted(slice_stamp, node, devices, pools, (), 0)
        allocated = self._known.claims.allocated
        pool_stamps = tuple([allocated.stamp_of(pool) for pool in kept.pools])
        if kept.pool_stamps != pool_stamps:
            in_use = sum(allocated.is_in_use(device.id) for device in kept.devices)
            kept = kept._replace(pool_stamps=pool_stamps, in_use=in_use)
        by_node[name] = kept
        return kept

    def _by_node(self, device_class: DeviceClass) -> dict[str, _Counted]:
        kept = self._kept.get(device_class.metadata.name)
        if kept is None or kept[0] is not device_class:
            kept = self._kept[device_class.metadata.name] = device_class, {}
        return kept[1]


def _devices_of(
    inventory: DeviceInventory, device_class: DeviceClass, node: Node
) -> tuple[PublishedDevice, ...]:
    """The devices of the class on the node; none at all where one cannot be told."""
    expressions = [each.cel.expression for each in device_class.spec.selectors if each.cel]
    try:
        return tuple(
            published
            for candidate in inventory.candidates(node.metadata.name)
            for published in _reachable(candidate, node)
            if all(selects(expression, published) for expression in expressions)
        )
    except (SelectorFailure, NodeSelectionError):
        return ()


def _reachable(candidate: PublishedSlice, node: Node) -> Iterator[PublishedDevice]:
    if candidate.per_device:
        yield from (device for device in candidate.devices if device.reach.includes(node))
    elif not candidate.reach.is_given or candidate.reach.includes(node):
        yield from candidate.devices
