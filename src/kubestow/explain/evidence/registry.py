"""The function that finds the facts of each reason, by its code.

A function gets a node and the text of the reason. `alike` is equal for nodes with equal facts, so
that they are found once for many nodes; without it each node is looked at.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.node import Node
from kubestow.explain.evidence import (
    devices,
    other_pods,
    ports,
    resources,
    selection,
    spread,
    taints,
    volume_limits,
    volumes,
)
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import Fact

FindFacts = Callable[[NodeView, str], Sequence[Fact]]
Alike = Callable[[EvidenceContext, Node], Hashable]


class Family(NamedTuple):
    find: FindFacts
    alike: Alike | None = None


def of_pod(_: EvidenceContext, node: Node) -> Hashable:
    """The facts are about the pod alone, and equal for all nodes."""
    return None


FAMILIES: Final[Mapping[str, Family]] = {
    "NodeCordoned": Family(taints.cordon, taints.same_cordon),
    "TaintNotTolerated": Family(taints.untolerated_taints, taints.same_taints),
    "OtherNodeRequested": Family(selection.other_node, of_pod),
    "NodeAffinityMismatch": Family(selection.unmatched_labels, selection.same_labels),
    "AddedAffinityMismatch": Family(selection.unmatched_added, selection.same_labels),
    "NodeAffinityConflict": Family(selection.conflicting_names, of_pod),
    "RestrictedByPreFilter": Family(selection.restricted, of_pod),
    "NodeFeatureMissing": Family(selection.lacking_features),
    "HostPortTaken": Family(ports.taken_ports),
    "TooManyPods": Family(resources.too_many_pods),
    "InsufficientCPU": Family(resources.insufficient),
    "InsufficientMemory": Family(resources.insufficient),
    "InsufficientEphemeralStorage": Family(resources.insufficient),
    "InsufficientExtendedResource": Family(resources.insufficient),
    "DiskConflict": Family(volumes.disks_in_use),
    "ClaimInUse": Family(volumes.claims_in_use),
    "ClaimNotFound": Family(volumes.missing_claim, of_pod),
    "ClaimNotCreated": Family(volumes.missing_claim, of_pod),
    "ClaimNotBound": Family(volumes.unbound_claims, of_pod),
    "ClaimInvalid": Family(volumes.claim_problem, of_pod),
    "ClaimBeingDeleted": Family(volumes.claim_problem, of_pod),
    "StorageClassNotFound": Family(volumes.missing_class, of_pod),
    "StorageClassInvalid": Family(volumes.claim_problem, of_pod),
    "VolumeNotFound": Family(volumes.missing_volumes, of_pod),
    "VolumeNodeAffinityMismatch": Family(volumes.unreachable_volumes, volumes.same_places),
    "NoVolumeToBind": Family(volumes.nothing_to_bind, volumes.same_places),
    "InsufficientStorageCapacity": Family(volumes.too_little_storage, volumes.same_places),
    "VolumeZoneMismatch": Family(volumes.other_zone, volumes.same_places),
    "TooManyVolumes": Family(volume_limits.too_many_volumes),
    "VolumeDriverMissing": Family(volume_limits.driver_missing, of_pod),
    "SpreadTooUneven": Family(spread.uneven, spread.same_domains),
    "SpreadLabelMissing": Family(spread.unlabelled, spread.same_domains),
    "PodAffinityMismatch": Family(other_pods.far, other_pods.same_topology),
    "PodAntiAffinityMismatch": Family(other_pods.near, other_pods.same_topology),
    "ExistingPodAntiAffinityMismatch": Family(other_pods.forbidden, other_pods.same_topology),
    "LoadTooHigh": Family(resources.too_much_in_use),
    "DevicesNotAvailable": Family(devices.too_few_devices),
    "DevicePoolInvalid": Family(devices.unusable_pools),
    "DevicesOnOtherNode": Family(devices.devices_elsewhere, of_pod),
    "DeviceClassNotFound": Family(devices.missing_device_class, of_pod),
    "ResourceClaimNotFound": Family(devices.missing_resource_claim, of_pod),
    "ResourceClaimNotCreated": Family(devices.resource_claim_problem, of_pod),
    "ResourceClaimBeingDeleted": Family(devices.resource_claim_problem, of_pod),
    "ResourceClaimInUse": Family(devices.resource_claim_problem, of_pod),
    "ResourceClaimInvalid": Family(devices.resource_claim_problem, of_pod),
}


def facts_of(context: EvidenceContext, row: int, reason: str, reason_code: str) -> tuple[Fact, ...]:
    """The facts behind one reason on one node; empty if there are none for this code."""
    family = FAMILIES.get(reason_code)
    if family is None:
        return ()
    for view in context.views(row):
        found = tuple(family.find(view, reason))
        if found:
            return found
    return ()
