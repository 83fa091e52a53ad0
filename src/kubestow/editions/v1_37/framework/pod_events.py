"""The three kinds of pod events of v1.37 (spec 12 §3.1).

AssignedPod      the pod has a node
UnscheduledPod   another pod that waits
TargetPod        the waiting pod itself was updated
"""

from collections.abc import Sequence
from typing import Final

from kubestow.api.node import Node
from kubestow.editions.v1_37.api.requests import is_scaled_down, is_scaled_up
from kubestow.framework.classify import (
    PodEvents,
    classify_node_update,
    gates_eliminated,
    generated_claims_differ,
    labels_differ,
    toleration_count_differs,
)
from kubestow.framework.events import Action, ClusterEvent, Resource

UNSCHEDULED_POD_ADD: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
UNSCHEDULED_POD_DELETE: Final = ClusterEvent(Resource.UNSCHEDULED_POD, Action.DELETE)
_PREEMPTION_POLICY: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_PREEMPTION_POLICY)
_DECLARED_FEATURE: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)


class PodEventsV137(PodEvents):
    added = UNSCHEDULED_POD_ADD
    updated = UNSCHEDULED_POD_UPDATE
    deleted = UNSCHEDULED_POD_DELETE
    added_by_update = UNSCHEDULED_POD_ADD
    own = Resource.TARGET_POD
    checks = (
        (labels_differ, Action.UPDATE_POD_LABEL),
        (is_scaled_down, Action.UPDATE_POD_SCALE_DOWN),
        (is_scaled_up, Action.UPDATE_POD_SCALE_UP),
        (gates_eliminated, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
        (toleration_count_differs, Action.UPDATE_POD_TOLERATION),
        (generated_claims_differ, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
    )

    def of_node_update(self, old: Node, new: Node) -> Sequence[ClusterEvent]:
        events = list(classify_node_update(old, new))
        if old.spec.pod_preemption_policy != new.spec.pod_preemption_policy:
            # Before declared features, which are last.
            is_last = bool(events) and events[-1] == _DECLARED_FEATURE
            events.insert(len(events) - is_last, _PREEMPTION_POLICY)
        return events


POD_EVENTS_V137: Final = PodEventsV137()
