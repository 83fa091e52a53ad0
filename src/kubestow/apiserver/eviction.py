"""Eviction: a deletion of a pod that its disruption budget has to allow."""

from typing import Final

from kubestow.api.labels import parse_label_selector
from kubestow.api.meta import JsonObject
from kubestow.api.workload import PodDisruptionBudget
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, value_at, whole_seconds
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError

_BUDGETS: Final = "poddisruptionbudgets.policy"


def evict(
    cluster: MemoryCluster,
    clock: Clock,
    namespace: str,
    name: str,
    *,
    uid: str = "",
    grace_period_s: int | None = None,
) -> None:
    """Delete the pod; ApiError with code 429 if its budget allows no disruption."""
    pod = cluster.get(PODS, namespace, name)
    if value_at(pod.document, "status", "phase") == "Running":
        _spend_budget(cluster, clock, pod)
    cluster.delete(PODS, namespace, name, uid=uid, grace_period_s=grace_period_s)


def _spend_budget(cluster: MemoryCluster, clock: Clock, pod: StoredObject) -> None:
    """Take one disruption from the pod's budget."""
    budgets = _budgets_of(cluster, pod)
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
            code=429,
            reason="TooManyRequests",
        )
    disrupted = {pod.name: whole_seconds(clock.now_ns())}
    status: JsonObject = {"disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    cluster.patch(budget.resource, *budget.key, {"status": status}, "merge", subresource="status")


def _budgets_of(cluster: MemoryCluster, pod: StoredObject) -> list[StoredObject]:
    namespace, labels = pod.key[0], as_object(pod.metadata.get("labels"))
    return [
        stored
        for stored in cluster.objects_of(cluster.resources.named(_BUDGETS))
        if stored.key[0] == namespace
        and isinstance(stored.typed, PodDisruptionBudget)
        and parse_label_selector(stored.typed.spec.selector).matches(labels)
    ]
