"""Evicting a pod: a deletion that the budgets of the pod's application have to allow.

`kubectl drain` evicts over HTTP; simulated drains call `evict` directly.
"""

from typing import Final

from kubestow.api.labels import parse_label_selector
from kubestow.api.meta import JsonObject
from kubestow.api.workload import PodDisruptionBudget
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes.server_fields import require_same
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError

TOO_MANY_REQUESTS: Final = 429
_BUDGETS: Final = "poddisruptionbudgets.policy"
_CONDITION: Final[JsonObject] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(
    cluster: MemoryCluster,
    pod: StoredObject,
    *,
    now: str,
    uid: str = "",
    resource_version: str = "",
    grace_period_s: int | None = None,
) -> None:
    """Delete the pod; ApiError with code 429 if its budget allows no disruption now.

    ConflictError unless it has the UID and the version given; the budget is spent before, as by an
    API server.
    """
    if value_at(pod.document, "status", "phase") == "Running":
        _spend_budget(cluster, pod, now)
    require_same(pod, uid=uid, resource_version=resource_version)
    if "deletionTimestamp" not in pod.metadata:
        condition = {**_CONDITION, "lastTransitionTime": now}
        cluster.change(
            PODS,
            *pod.key,
            lambda document: _with_condition(document, condition),
            subresource="status",
        )
    cluster.delete(PODS, *pod.key, uid=uid, grace_period_s=grace_period_s)


def _with_condition(pod: JsonObject, condition: JsonObject) -> JsonObject:
    others = [
        one
        for one in objects_in(value_at(pod, "status", "conditions"))
        if one.get("type") != condition["type"]
    ]
    return replaced_at(pod, ("status", "conditions"), [*others, condition])


def _spend_budget(cluster: MemoryCluster, pod: StoredObject, now: str) -> None:
    """Take one disruption from the pod's budget; 429 if it has none left."""
    budgets = budgets_of(cluster, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        raise ApiError(
            "This pod has more than one PodDisruptionBudget,"
            " which the eviction subresource does not support."
        )
    (budget,) = budgets
    allowed = value_at(budget.document, "status", "disruptionsAllowed") or 0
    if allowed <= 0:
        raise ApiError(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            code=TOO_MANY_REQUESTS,
            reason="TooManyRequests",
        )
    status: JsonObject = {"disruptionsAllowed": allowed - 1, "disruptedPods": {pod.name: now}}
    cluster.patch(budget.resource, *budget.key, {"status": status}, "merge", subresource="status")


def budgets_of(cluster: MemoryCluster, pod: StoredObject) -> list[StoredObject]:
    """The disruption budgets that select a pod."""
    namespace, labels = pod.key[0], as_object(pod.metadata.get("labels"))
    return [
        stored
        for stored in cluster.objects_of(cluster.resources.named(_BUDGETS))
        if stored.key[0] == namespace
        and isinstance(stored.typed, PodDisruptionBudget)
        and parse_label_selector(stored.typed.spec.selector).matches(labels)
    ]
