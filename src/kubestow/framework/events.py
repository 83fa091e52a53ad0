"""Cluster events and their registration by plugins (spec 02 §6 and §7.1).

An event is one kind of change to an object of a resource. Plugins register the events that may help
a pod they rejected, each with an optional hint function that examines the objects.
"""

from collections.abc import Callable, Sequence
from enum import Enum, IntFlag
from typing import Any, Final, NamedTuple

from kubestow.api.pod import Pod


class Action(IntFlag):
    """How a resource changed. The numbers matter: matching compares masks as integers (§6.1).

    They are those of v1.37 (spec 12 §3.1); v1.36 emits two kinds less, which changes no comparison.
    """

    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_PREEMPTION_POLICY = 256  # v1.37
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_SCALE_UP = 2048  # v1.37
    UPDATE_POD_TOLERATION = 4096
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 8192
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 16384
    UPDATE = 32764
    ALL = 32767


class Resource:
    """Resource names in events; any other name is a custom `plural.version.group`."""

    POD: Final = "Pod"
    ASSIGNED_POD: Final = "AssignedPod"  # up to v1.36 only ever emitted, never registered
    UNSCHEDULABLE_POD: Final = "UnschedulablePod"  # likewise; v1.36 and older
    # v1.37: another pod without a node, and the pod itself that waits (spec 12 §3.1).
    UNSCHEDULED_POD: Final = "UnscheduledPod"
    TARGET_POD: Final = "TargetPod"
    NODE: Final = "Node"
    PERSISTENT_VOLUME: Final = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
    CSI_NODE: Final = "storage.k8s.io/CSINode"
    CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
    POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP: Final = "scheduling.k8s.io/CompositePodGroup"
    WILDCARD: Final = "*"


_ACTION_NAMES: Final = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_SCALE_UP: "UpdatePodScaleUp",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}
_POD_RESOURCES: Final = frozenset(
    (
        Resource.ASSIGNED_POD,
        Resource.UNSCHEDULABLE_POD,
        Resource.UNSCHEDULED_POD,
        Resource.TARGET_POD,
    )
)


class ClusterEvent(NamedTuple):
    resource: str
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The text for logs and metrics."""
        return self.custom_label or self.resource + _ACTION_NAMES.get(self.action, "")

    @property
    def is_wildcard(self) -> bool:
        return self.resource == Resource.WILDCARD and self.action == Action.ALL

    def matches(self, incoming: "ClusterEvent") -> bool:
        """Whether this registration includes that event (§6.1).

        The masks are also compared as integers, so that a general Update matches only
        registrations for every kind of update.
        """
        if self.is_wildcard:
            return True
        return (
            self._matches_resource(incoming.resource)
            and bool(self.action & incoming.action)
            and int(incoming.action) <= int(self.action)
        )

    def _matches_resource(self, incoming: str) -> bool:
        return self.resource in (Resource.WILDCARD, incoming) or (
            self.resource == Resource.POD and incoming in _POD_RESOURCES
        )


ASSIGNED_POD_ADD: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_UPDATE: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE)
ASSIGNED_POD_DELETE: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_POD_ADD: Final = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE: Final = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)
UNSCHEDULABLE_POD_DELETE: Final = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.DELETE)
NODE_ADD: Final = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE: Final = ClusterEvent(Resource.NODE, Action.DELETE)
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate")


class Hint(Enum):
    """What a hint function returns: the event may help the pod, or it cannot."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


# A hint function gets the waiting pod and the object before and after the event (None where there
# is none). Any exception counts as QUEUE: a useless attempt is better than a pod that is lost.
HintFunction = Callable[[Pod, Any, Any], Hint]


class EventRegistration(NamedTuple):
    """An event that may help pods a plugin rejected; without a hint it counts as Queue."""

    event: ClusterEvent
    hint: HintFunction | None = None


def on(resource: str, action: Action, hint: HintFunction | None = None) -> EventRegistration:
    return EventRegistration(ClusterEvent(resource, action), hint)


Registrations = Sequence[EventRegistration]
