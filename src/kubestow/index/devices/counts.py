"""How many devices of a class a node has, and how many of them are in use (spec 05 §8.6).

Scores of extended resources that devices serve are computed from these numbers. Drivers,
generations of pools and counters do not matter here: it is an estimate, not an allocation.
"""

from collections.abc import Iterator

import numpy as np

from kubestow.api.device import DeviceClass
from kubestow.api.node import Node
from kubestow.api.resources import is_dra_extended
from kubestow.arrays import IntArray
from kubestow.index.devices.inventory import DeviceInventory, PublishedDevice, PublishedSlice
from kubestow.index.devices.known import KnownDevices
from kubestow.index.devices.node_match import NodeSelectionError
from kubestow.index.devices.per_node import KeptPerNode, NodeSlots, grown
from kubestow.index.devices.selectors import SelectorFailure, selects
from kubestow.index.nodes import Nodes


class DeviceCounts:
    """Counts devices by class and node."""

    def __init__(self, known: KnownDevices) -> None:
        self._known = known
        self._class_version = -1
        self._kept: dict[str, tuple[DeviceClass, _CountsOfClass]] = {}

    def of_resource(self, resource: str, nodes: Nodes) -> tuple[IntArray, IntArray] | None:
        """int64[node] existing devices, int64[node] in use; None if no class serves it."""
        if not is_dra_extended(resource):
            return None
        device_class = self._known.class_map.class_of(resource)
        if device_class is None:
            return None
        slots = self._known.slots.of(nodes)
        counts = self._of_class(device_class)
        for slot in counts.missing(slots):
            devices = _devices_of(self._known.inventory, device_class, self._known.slots.node(slot))
            allocated = self._known.claims.allocated
            counts.total[slot] = len(devices)
            counts.in_use[slot] = sum(allocated.is_in_use(device.id) for device in devices)
            counts.is_known[slot] = True
        return counts.total[slots], counts.in_use[slots]

    def _of_class(self, device_class: DeviceClass) -> "_CountsOfClass":
        classes, name = self._known.classes, device_class.metadata.name
        if self._class_version != classes.version:
            self._class_version = classes.version
            self._kept = {key: kept for key, kept in self._kept.items() if classes.get(key)}
        kept = self._kept.get(name)
        if kept is None or kept[0] is not device_class:
            counts = _CountsOfClass(self._known.slots)
            kept = self._kept[name] = device_class, counts
        return kept[1]


class _CountsOfClass(KeptPerNode):
    """int64[slot] of one class: existing devices, and those in use."""

    def __init__(self, slots: NodeSlots) -> None:
        super().__init__(slots)
        self.total: IntArray = np.zeros(0, np.int64)
        self.in_use: IntArray = np.zeros(0, np.int64)

    def _grow(self, size: int) -> None:
        self.total, self.in_use = grown(self.total, size), grown(self.in_use, size)


def _devices_of(
    inventory: DeviceInventory, device_class: DeviceClass, node: Node
) -> tuple[PublishedDevice, ...]:
    """The devices of the class on the node; none at all if a selector fails for one."""
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
