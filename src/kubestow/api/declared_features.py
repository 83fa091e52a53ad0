"""Features that nodes declare and that pods require (spec 01 §5, 05 §11).

Sets of features are integers, one bit per known feature, so that all nodes fit in one array and a
pod is tested with `required & ~known`.
"""

from collections.abc import Sequence
from typing import Final

from kubestow.api.pod import Pod

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"

VOLUME_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

# Of all editions: what nodes declare of a later one is required by no pod. Sorted: the bit of a
# feature is its index here, and `known_features` walks the tuple in order.
KNOWN_FEATURES: Final = (
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "InPlacePodVerticalScalingMemoryBackedVolumes",
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    VOLUME_BIND_MOUNT_OPTIONS,
)

_RESTART_ALL_BIT: Final = 1 << KNOWN_FEATURES.index(RESTART_ALL_CONTAINERS)
_USER_NAMESPACES_BIT: Final = 1 << KNOWN_FEATURES.index(USER_NAMESPACES_HOST_NETWORK)
_MOUNT_OPTIONS_BIT: Final = 1 << KNOWN_FEATURES.index(VOLUME_BIND_MOUNT_OPTIONS)


def known_features(declared: Sequence[str]) -> int:
    """The bits of the known features in a node's sorted list; others are left out.

    Spec 01 §5: the two lists are merged as sorted ones. An unsorted list, which the API refuses,
    loses the names that come too late, as upstream.
    """
    bits = 0
    if not declared:
        return bits
    position = 0
    for bit, feature in enumerate(KNOWN_FEATURES):
        while position < len(declared) and declared[position] < feature:
            position += 1
        if position < len(declared) and declared[position] == feature:
            bits |= 1 << bit
            position += 1
    return bits


def required_features(pod: Pod) -> int:
    """The bits of the features a node must have for the pod to start there."""
    bits = 0
    if _restarts_all_containers(pod):
        bits |= _RESTART_ALL_BIT
    if pod.spec.host_network and pod.spec.host_users is False:
        bits |= _USER_NAMESPACES_BIT
    if _has_mount_options(pod):
        bits |= _MOUNT_OPTIONS_BIT
    return bits


def _has_mount_options(pod: Pod) -> bool:
    """Spec 12 §7.5; servers of earlier versions drop the field."""
    spec = pod.spec
    for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers):
        for container in containers:
            for mount in container.volume_mounts:
                if mount.bind_mount_options:
                    return True
    return False


def _restarts_all_containers(pod: Pod) -> bool:
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers:
            for rule in container.restart_policy_rules:
                if rule.action == "RestartAllContainers":
                    return True
    return False
