"""Patches of a PodGroup's status: the condition that says whether its members were placed."""

from kubestow.api.decode import to_document
from kubestow.api.meta import Condition, JsonObject
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.cluster.pod_status import condition_patch


def group_status_patch(pod_group: UpstreamPodGroup, condition: Condition) -> JsonObject:
    """The strategic merge patch that gives the group this condition; `{}` if it has it."""
    status = condition_patch(pod_group.status.conditions, condition, _written)
    return {"status": status} if status else {}


def _written(condition: Condition) -> JsonObject:
    """A condition as an API server writes it here: unlike a pod's, with empty texts."""
    texts: JsonObject = {"lastTransitionTime": None, "message": "", "reason": ""}
    return texts | to_document(condition)
