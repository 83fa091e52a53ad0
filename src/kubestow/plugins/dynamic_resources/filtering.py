"""Filter: whether a node can give the pod its devices (spec 08 B6, B11)."""

from typing import Final

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.errors import PluginError
from kubestow.framework.status import Status
from kubestow.plugins._shared.devices import KnownDevices
from kubestow.plugins.dynamic_resources.allocator import (
    ClaimShape,
    DeviceAllocator,
    InvalidPools,
    TimedOut,
)
from kubestow.plugins.dynamic_resources.attempt import Attempt, NodeAllocation
from kubestow.plugins.dynamic_resources.extended_resources import (
    Mappings,
    special_requests,
    with_requests,
)

LEFT_OVER_CLAIM: Final = Status.unresolvable("cannot schedule extended resource claim")
MISSING_RESOURCE: Final = Status.unresolvable("cannot fit resource")
NO_DEVICES: Final = Status.unresolvable("cannot allocate all claims")
INVALID_POOLS: Final = Status.unresolvable("invalid resource pools were encountered")
UNAVAILABLE: Final = Status.unresolvable("resourceclaim not available on the node")


class NodeFilter:
    def __init__(self, known: KnownDevices, allocator: DeviceAllocator) -> None:
        self._known = known
        self._allocator = allocator

    def check(self, attempt: Attempt, pod: Pod, node: Node) -> Status | None:
        """The verdict on one node; what the pod would get there is noted in the attempt."""
        attempt.allocations.pop(node.metadata.name, None)
        served: tuple[str, ...] = ()
        special = attempt.special_claim
        if special is not None:
            if special.spec.devices.requests:
                return LEFT_OVER_CLAIM
            found = self._served_by_devices(attempt, node)
            if isinstance(found, Status):
                return found
            if not found and not attempt.has_user_claims:
                return None
            served = found
        unavailable = _unavailable(attempt, node)
        if attempt.unallocated:
            status = self._allocate(attempt, pod, node, served)
            if status is not None:
                return status
        if unavailable:
            attempt.unavailable |= unavailable
            attempt.allocations.pop(node.metadata.name, None)
            return UNAVAILABLE
        return None

    def _served_by_devices(self, attempt: Attempt, node: Node) -> tuple[str, ...] | Status:
        """The pod's extended resources that come from devices here, not from a device plugin."""
        allocatable = node.status.allocatable
        served: list[str] = []
        for resource in attempt.extended:
            quantity = allocatable.get(resource)
            is_offered = quantity is not None and quantity.nano > 0
            if not is_offered and self._known.class_map.class_of(resource) is not None:
                served.append(resource)
            elif quantity is None:
                return MISSING_RESOURCE
        return tuple(served)

    def _allocate(
        self, attempt: Attempt, pod: Pod, node: Node, served: tuple[str, ...]
    ) -> Status | None:
        entry = attempt.shapes.get(served)
        if entry is None:
            entry = attempt.shapes[served] = self._shape(attempt, pod, served)
        shape, mappings = entry
        try:
            allocations = self._allocator.allocate(node, shape)
        except TimedOut:
            text = f"node {node.metadata.name}: timed out trying to allocate devices"
            return Status.from_error(PluginError(text))
        except InvalidPools:
            return INVALID_POOLS
        except PluginError as error:
            return Status.from_error(error)
        if allocations is None:
            return NO_DEVICES
        attempt.allocations[node.metadata.name] = NodeAllocation(
            shape.claims, allocations, mappings
        )
        return None

    def _shape(
        self, attempt: Attempt, pod: Pod, served: tuple[str, ...]
    ) -> tuple[ClaimShape, Mappings]:
        claims = [attempt.claims[index] for index in attempt.unallocated]
        mappings: Mappings = ()
        if served:
            requests, mappings = special_requests(pod, served, self._class_name)
            claims[-1] = with_requests(claims[-1], requests)
        return ClaimShape(claims), mappings

    def _class_name(self, resource: str) -> str:
        device_class = self._known.class_map.class_of(resource)
        assert device_class is not None, resource
        return device_class.metadata.name


def _unavailable(attempt: Attempt, node: Node) -> set[int]:
    """The allocated claims that cannot be used on the node."""
    labels, name = node.metadata.labels, node.metadata.name
    unmatched = {
        index for index, selector in attempt.selectors.items() if not selector.matches(labels, name)
    }
    return unmatched | attempt.broken
