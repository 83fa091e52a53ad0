"""A code for each reason, so that programs need not compare sentences.

Reasons are kube-scheduler's texts, which change from version to version. A code stays. Texts of
plugins from outside have the code `Other`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

OTHER: Final = "Other"

# By plugin, because two of them may use the same words. A text has the code of the first pattern
# that it matches as a whole.
_PATTERNS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "NodeUnschedulable": ((r"node\(s\) were unschedulable", "NodeCordoned"),),
    "NodeName": ((r"node\(s\) didn't match the requested node name", "OtherNodeRequested"),),
    "TaintToleration": ((r"node\(s\) had untolerated taint\(s\)", "TaintNotTolerated"),),
    "NodeAffinity": (
        (r"node\(s\) didn't match Pod's node affinity/selector", "NodeAffinityMismatch"),
        (r"node\(s\) didn't match scheduler-enforced node affinity", "AddedAffinityMismatch"),
        (r"pod affinity terms conflict", "NodeAffinityConflict"),
    ),
    "NodePorts": (
        (r"node\(s\) didn't have free ports for the requested pod ports", "HostPortTaken"),
    ),
    "NodeResourcesFit": (
        (r"Too many pods", "TooManyPods"),
        (r"Insufficient cpu", "InsufficientCPU"),
        (r"Insufficient memory", "InsufficientMemory"),
        (r"Insufficient ephemeral-storage", "InsufficientEphemeralStorage"),
        (r"Insufficient .*", "InsufficientExtendedResource"),
    ),
    "NodeDeclaredFeatures": (
        (r"node\(s\) didn't match Pod's required features", "NodeFeatureMissing"),
    ),
    "VolumeRestrictions": (
        (r"node\(s\) had no available disk", "DiskConflict"),
        (
            r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod .*",
            "ClaimInUse",
        ),
        (r'persistentvolumeclaim ".*" not found', "ClaimNotFound"),
    ),
    "NodeVolumeLimits": (
        (r"node\(s\) exceed max volume count", "TooManyVolumes"),
        (r".* CSI driver is not installed on the node", "VolumeDriverMissing"),
        (r'.*persistentvolumeclaim ".*" not found', "ClaimNotFound"),
    ),
    "VolumeBinding": (
        (r"node\(s\) didn't match PersistentVolume's node affinity", "VolumeNodeAffinityMismatch"),
        (r"node\(s\) didn't find available persistent volumes to bind", "NoVolumeToBind"),
        (r"node\(s\) did not have enough free storage", "InsufficientStorageCapacity"),
        (r"node\(s\) unavailable due to .* non-existent pv\(s\)", "VolumeNotFound"),
        (r"pod has unbound immediate PersistentVolumeClaims", "ClaimNotBound"),
        (r'persistentvolumeclaim ".*" not found', "ClaimNotFound"),
        (r"PVC .* was not created for pod .*", "ClaimInvalid"),
        (r'waiting for ephemeral volume controller to create .*"', "ClaimNotCreated"),
        (r'persistentvolumeclaim ".*" is being deleted', "ClaimBeingDeleted"),
        (r'persistentvolumeclaim ".*" bound to non-existent .*', "VolumeNotFound"),
    ),
    "VolumeZone": (
        (r"node\(s\) had no available volume zone", "VolumeZoneMismatch"),
        (r'persistentvolumeclaim ".*" not found', "ClaimNotFound"),
        (r'persistentvolume ".*" not found', "VolumeNotFound"),
        (r'storageclass\.storage\.k8s\.io ".*" not found', "StorageClassNotFound"),
        (r"VolumeBindingMode not set for StorageClass .*", "StorageClassInvalid"),
        (r"PersistentVolume(Claim)? had no .*", "ClaimInvalid"),
    ),
    "PodTopologySpread": (
        (r"node\(s\) didn't match pod topology spread constraints", "SpreadTooUneven"),
        (
            r"node\(s\) didn't match pod topology spread constraints \(missing required label\)",
            "SpreadLabelMissing",
        ),
    ),
    "InterPodAffinity": (
        (r"node\(s\) didn't match pod affinity rules", "PodAffinityMismatch"),
        (r"node\(s\) didn't match pod anti-affinity rules", "PodAntiAffinityMismatch"),
        (
            r"node\(s\) didn't satisfy existing pods anti-affinity rules",
            "ExistingPodAntiAffinityMismatch",
        ),
        (r"parsing pod: .*", "PodAffinityInvalid"),
    ),
    "DynamicResources": (
        (r"cannot allocate all claims", "DevicesNotAvailable"),
        (r"resourceclaim not available on the node", "DevicesOnOtherNode"),
        (r"cannot schedule extended resource claim", "DevicesNotAvailable"),
        (r"cannot fit resource", "DevicesNotAvailable"),
        (r"invalid resource pools were encountered", "DevicePoolInvalid"),
        (r"request .*: device class .* does not exist", "DeviceClassNotFound"),
        (r"could not find ResourceClaim .*", "ResourceClaimNotFound"),
        (r".* ResourceClaim not created yet", "ResourceClaimNotCreated"),
        (r"resourceclaim .* is being deleted", "ResourceClaimBeingDeleted"),
        (r"resource claim .* is in the process of being allocated", "ResourceClaimInUse"),
        (r"ResourceClaim unreserved for PodGroup", "ResourceClaimInUse"),
        (r"resource claim .*", "ResourceClaimInvalid"),
        (r"ResourceClaim .* was not created for Pod .*", "ResourceClaimInvalid"),
    ),
    "LoadAware": ((r"node\(s\) had .* in use above .*% \(.*\)", "LoadTooHigh"),),
    "SchedulingGates": ((r"waiting for scheduling gates: .*", "SchedulingGates"),),
    "GangScheduling": (
        (r"waiting for minCount pods from a gang to appear in scheduling queue", "TooFewMembers"),
        (r"waiting for pods's pod group .* to appear in scheduling queue", "GroupNotFound"),
        (r"waiting for minCount pods from a gang to be scheduled", "TooFewMembersFit"),
    ),
}
_ANY_PLUGIN: Final = (
    (r"node\(s\) didn't satisfy plugin\(s\) \[.*\]", "RestrictedByPreFilter"),
    (r"no nodes available to schedule pods", "NoNodes"),
)
_COMPILED: Final = {
    plugin: tuple((re.compile(pattern, re.DOTALL), code) for pattern, code in patterns)
    for plugin, patterns in {**_PATTERNS, "": _ANY_PLUGIN}.items()
}


def reason_code(plugin: str, reason: str) -> str:
    """The code of a plugin's reason; the plugin is empty for reasons of the cycle itself."""
    for pattern, code in _COMPILED.get(plugin, ()):
        if pattern.fullmatch(reason):
            return code
    return OTHER


def reason_codes(plugin: str, reasons: Iterable[str]) -> tuple[str, ...]:
    return tuple(reason_code(plugin, reason) for reason in reasons)


def known_codes() -> frozenset[str]:
    """All codes that a reason may have."""
    return frozenset(code for patterns in _COMPILED.values() for _, code in patterns) | {OTHER}
