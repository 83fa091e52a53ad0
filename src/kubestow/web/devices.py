"""The devices that a node reaches, and which claims and pods have them."""

from typing import Final

import msgspec

from kubestow.api.node import Node
from kubestow.cache.objects import ClusterObjects
from kubestow.index.devices.node_match import NodeSelectionError, Reach

DEVICES_MAX: Final = 500


class NodeDevice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`claims` are namespace/name of those that have it, `pods` those that the claims are for."""

    driver: str
    pool: str
    name: str
    tainted: bool
    claims: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


class NodeDevices(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first devices of `count`; `used` of all of them are allocated."""

    devices: tuple[NodeDevice, ...] = ()
    count: int = 0
    used: int = 0


def devices_of(objects: ClusterObjects, node: Node) -> NodeDevices:
    """What published slices say; a device of the whole cluster is on every node."""
    if not len(objects.resource_slices):
        return NodeDevices()
    holders = _holders(objects)
    found: list[NodeDevice] = []
    for each in objects.resource_slices:
        spec = each.spec
        whole = Reach(spec.node_name, spec.all_nodes, spec.node_selector)
        if not spec.per_device_node_selection and not _includes(whole, node):
            continue
        for device in spec.devices:
            own = Reach(device.node_name, device.all_nodes, device.node_selector)
            if spec.per_device_node_selection and not _includes(own, node):
                continue
            claims, pods = holders.get((spec.driver, spec.pool.name, device.name), ((), ()))
            found.append(
                NodeDevice(
                    driver=spec.driver,
                    pool=spec.pool.name,
                    name=device.name,
                    tainted=bool(device.taints),
                    claims=claims,
                    pods=pods,
                )
            )
    found.sort(key=lambda device: (device.driver, device.pool, device.name))
    used = sum(bool(device.claims) for device in found)
    return NodeDevices(devices=tuple(found[:DEVICES_MAX]), count=len(found), used=used)


def _includes(reach: Reach, node: Node) -> bool:
    try:
        return reach.includes(node)
    except NodeSelectionError:
        return False  # The scheduler cannot use it either.


Holders = dict[tuple[str, str, str], tuple[tuple[str, ...], tuple[str, ...]]]


def _holders(objects: ClusterObjects) -> Holders:
    """The claims that have each device, and their pods."""
    found: Holders = {}
    for claim in objects.resource_claims:
        allocation, namespace = claim.status.allocation, claim.metadata.namespace
        if allocation is None:
            continue
        name = f"{namespace}/{claim.metadata.name}"
        users = [each for each in claim.status.reserved_for if each.resource == "pods"]
        pods = tuple(f"{namespace}/{each.name}" for each in users)
        for result in allocation.devices.results:
            key = (result.driver, result.pool, result.device)
            claims, before = found.get(key, ((), ()))
            if name not in claims:
                found[key] = ((*claims, name), (*before, *pods))
    return found
