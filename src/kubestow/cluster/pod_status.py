"""Patches of statuses: the condition that says why a pod waits, its nominated node, and the
condition that says whether the members of a PodGroup were placed.

The patch is computed between two statuses, names only what differs, and is empty when nothing does;
an empty patch is not sent (spec 09 §4.6). Beyond upstream it names the pod's UID: a pod that was
made again under the same name is not changed. The memory client and the real one send the same
bytes.

Not here: when a pod's condition is written (`engine`), how a server merges it (`patch`).
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.meta import Condition, JsonObject
from kubestow.api.pod import Pod, first_condition
from kubestow.api.pod_group import UpstreamPodGroup


def changed_condition(pod: Pod, condition: Condition, *, now: datetime) -> Condition | None:
    """The condition to write; None if the pod already has it (spec 04 §14, step 7).

    The time of the last transition moves only with the condition's status. A new observed
    generation alone is no reason to write.
    """
    old = first_condition(pod.status.conditions, condition.type)
    if old is None or old.status != condition.status:
        return msgspec.structs.replace(condition, last_transition_time=now)
    is_same = (
        old.reason == condition.reason
        and old.message == condition.message
        and old.last_probe_time == condition.last_probe_time
    )
    if is_same:
        return None
    return msgspec.structs.replace(condition, last_transition_time=old.last_transition_time)


def pod_status_patch(
    pod: Pod, *, condition: Condition | None = None, nominated_node_name: str | None = None
) -> JsonObject:
    """The strategic merge patch that gives the pod this condition and this nominated node.

    None leaves a part as it is, an empty node name removes the nomination. `{}` if nothing differs.
    """
    status: JsonObject = {}
    if condition is not None:
        status |= condition_patch(pod.status.conditions, condition, _written)
    if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    if not status:
        return {}
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def condition_patch(
    conditions: tuple[Condition, ...],
    condition: Condition,
    as_written: Callable[[Condition], JsonObject],
) -> JsonObject:
    """The part of a status patch that sets one condition; `{}` if nothing differs."""
    written = as_written(condition)
    if not conditions:
        return {"conditions": [written]}
    old = first_condition(conditions, condition.type)
    types = [known.type for known in conditions]
    if old is None:
        changes = written
        types.append(condition.type)
    else:
        changes = _differences(as_written(old), written)
        if not changes:
            return {}
        changes["type"] = condition.type
    order = [{"type": type} for type in types]
    return {"$setElementOrder/conditions": order, "conditions": [changes]}


def _written(condition: Condition) -> JsonObject:
    """A condition as an API server writes it: both times always, empty texts never."""
    times: JsonObject = {"lastProbeTime": None, "lastTransitionTime": None}
    return times | to_document(condition)


def _differences(old: JsonObject, new: JsonObject) -> JsonObject:
    return {key: new.get(key) for key in (*old, *new) if old.get(key) != new.get(key)}


def group_status_patch(pod_group: UpstreamPodGroup, condition: Condition) -> JsonObject:
    """The strategic merge patch that gives the group this condition; `{}` if it has it."""
    status = condition_patch(pod_group.status.conditions, condition, _whole_condition)
    return {"status": status} if status else {}


def _whole_condition(condition: Condition) -> JsonObject:
    """A condition as an API server writes it here: unlike a pod's, with empty texts."""
    texts: JsonObject = {"lastTransitionTime": None, "message": "", "reason": ""}
    return texts | to_document(condition)
