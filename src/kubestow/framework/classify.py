"""What kind of change an update was: one event per kind (spec 02 §6.2, §6.3; 03 §11.5, §11.6).

Nil and empty lists and maps are equal here because the API structs decode both to the same value;
quantities compare by value and times by instant.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_assigned
from kubestow.api.requests import is_scaled_down
from kubestow.framework.events import (
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_DELETE,
    UNSCHEDULABLE_POD_UPDATE,
    Action,
    ClusterEvent,
    Resource,
)

PodCheck = tuple[Callable[[Pod, Pod], bool], Action]


class PodEvents:
    """How the events of pods are named, and which of them an update is.

    `added`, `updated` and `deleted` are of a pod without a node. A later version has other names
    and kinds.
    """

    added = UNSCHEDULABLE_POD_ADD
    updated = UNSCHEDULABLE_POD_UPDATE
    deleted = UNSCHEDULABLE_POD_DELETE
    # A pod that was in no queue comes there by an update.
    added_by_update = UNSCHEDULABLE_POD_UPDATE
    # The resource of a waiting pod's own update.
    own = Resource.UNSCHEDULABLE_POD
    # Kinds of updates, in the order of the specification.
    checks: Sequence[PodCheck]

    def __init__(self) -> None:
        self._assigned = self._events_on(Resource.ASSIGNED_POD)
        self._other = self._events_on(self.updated.resource)
        self._own = self._events_on(self.own)

    def of_update(self, old: Pod, new: Pod) -> Sequence[ClusterEvent]:
        """The events of a pod update as other pods see it; always at least one.

        An update that is none of the special kinds is one general Update.
        """
        return self._happened(old, new, self._other)

    def of_own_update(self, old: Pod, new: Pod) -> Sequence[ClusterEvent]:
        """The events of an update of the waiting pod that they are matched with."""
        return self._happened(old, new, self._own)

    def of_node_update(self, old: Node, new: Node) -> Sequence[ClusterEvent]:
        return classify_node_update(old, new)

    def _happened(
        self, old: Pod, new: Pod, unassigned: "Sequence[ClusterEvent]"
    ) -> Sequence[ClusterEvent]:
        events = self._assigned if is_assigned(new) else unassigned
        found = [
            events[index] for index, (happened, _) in enumerate(self.checks) if happened(old, new)
        ]
        return found or events[-1:]

    def _events_on(self, resource: str) -> Sequence[ClusterEvent]:
        """An event for each check, and the general one."""
        actions = (*(action for _, action in self.checks), Action.UPDATE)
        return tuple(ClusterEvent(resource, action) for action in actions)


def classify_node_update(
    old: Node, new: Node, *, declared_features: bool = True
) -> Sequence[ClusterEvent]:
    """The events of a node update, in the order of the specification; often none at all.

    `declared_features` is the gate NodeDeclaredFeatures.
    """
    events: list[ClusterEvent] = []
    # Only uncordoning may help a waiting pod. It may be a second taint event beside the one below.
    if old.spec.unschedulable and not new.spec.unschedulable:
        events.append(_NODE_TAINT)
    if old.status.allocatable != new.status.allocatable:
        events.append(_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        events.append(_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        events.append(_NODE_TAINT)
    if _condition_statuses(old.status.conditions) != _condition_statuses(new.status.conditions):
        events.append(_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        events.append(_NODE_ANNOTATION)
    if declared_features and old.status.declared_features != new.status.declared_features:
        events.append(_NODE_DECLARED_FEATURE)
    return events


def labels_differ(old: Pod, new: Pod) -> bool:
    return old.metadata.labels != new.metadata.labels


def gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def toleration_count_differs(old: Pod, new: Pod) -> bool:
    # Only the number counts: tolerations can be added to a pod, but never changed.
    return len(old.spec.tolerations) != len(new.spec.tolerations)


def generated_claims_differ(old: Pod, new: Pod) -> bool:
    return (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    )


def _condition_statuses(conditions: tuple[Condition, ...]) -> dict[str, str]:
    """Status per type; the last of a repeated type counts, heartbeats and reasons do not."""
    return {condition.type: condition.status for condition in conditions}


PodEvents.checks = (
    (labels_differ, Action.UPDATE_POD_LABEL),
    (is_scaled_down, Action.UPDATE_POD_SCALE_DOWN),
    (gates_eliminated, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
    (toleration_count_differs, Action.UPDATE_POD_TOLERATION),
    (generated_claims_differ, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
)
POD_EVENTS: Final = PodEvents()

_NODE_ALLOCATABLE: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
_NODE_LABEL: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
_NODE_TAINT: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
_NODE_CONDITION: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_CONDITION)
_NODE_ANNOTATION: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ANNOTATION)
_NODE_DECLARED_FEATURE: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
