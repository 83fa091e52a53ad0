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
    ASSIGNED_POD_UPDATE,
    UNSCHEDULABLE_POD_UPDATE,
    Action,
    ClusterEvent,
    Resource,
)


def classify_pod_update(old: Pod, new: Pod) -> Sequence[ClusterEvent]:
    """The events of a pod update, in the order of the specification; always at least one.

    An update that is none of the special kinds is one general Update.
    """
    assigned = is_assigned(new)
    events = [
        (on_assigned if assigned else on_unschedulable)
        for happened, on_assigned, on_unschedulable in _POD_CHECKS
        if happened(old, new)
    ]
    return events or (_ASSIGNED_UPDATED if assigned else _UNSCHEDULABLE_UPDATED)


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


def _labels_differ(old: Pod, new: Pod) -> bool:
    return old.metadata.labels != new.metadata.labels


def _gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _toleration_count_differs(old: Pod, new: Pod) -> bool:
    # Only the number counts: tolerations can be added to a pod, but never changed.
    return len(old.spec.tolerations) != len(new.spec.tolerations)


def _generated_claims_differ(old: Pod, new: Pod) -> bool:
    return (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    )


def _condition_statuses(conditions: tuple[Condition, ...]) -> dict[str, str]:
    """Status per type; the last of a repeated type counts, heartbeats and reasons do not."""
    return {condition.type: condition.status for condition in conditions}


def _on_both(action: Action) -> tuple[ClusterEvent, ClusterEvent]:
    return (
        ClusterEvent(Resource.ASSIGNED_POD, action),
        ClusterEvent(Resource.UNSCHEDULABLE_POD, action),
    )


_PodCheck = tuple[Callable[[Pod, Pod], bool], ClusterEvent, ClusterEvent]
_POD_CHECKS: Final[tuple[_PodCheck, ...]] = (
    (_labels_differ, *_on_both(Action.UPDATE_POD_LABEL)),
    (is_scaled_down, *_on_both(Action.UPDATE_POD_SCALE_DOWN)),
    (_gates_eliminated, *_on_both(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)),
    (_toleration_count_differs, *_on_both(Action.UPDATE_POD_TOLERATION)),
    (_generated_claims_differ, *_on_both(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)),
)
_ASSIGNED_UPDATED: Final = (ASSIGNED_POD_UPDATE,)
_UNSCHEDULABLE_UPDATED: Final = (UNSCHEDULABLE_POD_UPDATE,)

_NODE_ALLOCATABLE: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
_NODE_LABEL: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
_NODE_TAINT: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
_NODE_CONDITION: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_CONDITION)
_NODE_ANNOTATION: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ANNOTATION)
_NODE_DECLARED_FEATURE: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
