"""Which evictions the disruption budgets allow, while every other pod of the plan is up.

Evictions follow one another, each after the replacement of the last is ready. So an eviction is
allowed if the budget of the pod allows one disruption on the cluster as it is at rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.labels import Selector
from kubestow.api.meta import JsonObject
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, first_condition, is_terminating
from kubestow.api.pod_info import PodClass
from kubestow.cluster.documents import as_object, namespace_of, value_at
from kubestow.simulator.controllers.disruption import needed_healthy
from kubestow.simulator.controllers.owner_controller import selector_of
from kubestow.simulator.rebalance.ground import Ground, OwnerName

SEVERAL: Final = "several disruption budgets select it, and then no eviction is allowed"
_ALWAYS: Final = "AlwaysAllow"


class Budget(NamedTuple):
    """A budget with what it counts. `needed` pods must stay healthy, of `healthy` ones."""

    namespace: str
    name: str
    selector: Selector
    needed: int
    healthy: int
    always_allows_unhealthy: bool

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Budgets:
    def __init__(self, ground: Ground) -> None:
        pods = [pod for pod in ground.cluster.objects.pods if not is_terminating(pod)]
        self._by_namespace: dict[str, list[Budget]] = {}
        for raw in ground.budgets:
            budget = _read(raw, pods, ground.owners)
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
        # By class of pods; there are as many as the cluster has.
        self._covering: dict[PodClass, Sequence[Budget]] = {}

    def __iter__(self) -> Iterable[Budget]:
        for budgets in self._by_namespace.values():
            yield from budgets

    def reason(self, pod: Pod) -> str:
        """Why the pod may not be evicted; empty if it may."""
        budgets = self.covering(pod)
        if not budgets:
            return ""
        if len(budgets) > 1:
            return SEVERAL
        (budget,) = budgets
        if is_healthy(pod):
            is_allowed = budget.healthy > budget.needed
        else:
            is_allowed = budget.always_allows_unhealthy or budget.healthy >= budget.needed > 0
        if is_allowed:
            return ""
        return (
            f"its disruption budget {budget.key} allows no disruption: {budget.healthy} healthy, "
            f"{budget.needed} needed"
        )

    def reason_for_all(self, pods: Sequence[Pod]) -> str:
        """Why these pods may not be evicted together; empty if they may."""
        counts: dict[str, int] = {}
        for pod in pods:
            if reason := self.reason(pod):
                return reason
            for budget in self.covering(pod):
                count = counts[budget.key] = counts.get(budget.key, 0) + is_healthy(pod)
                if budget.healthy - count < budget.needed:
                    return (
                        f"its disruption budget {budget.key} does not allow to disrupt its whole "
                        f"gang: {budget.healthy} healthy, {budget.needed} needed"
                    )
        return ""

    def covering(self, pod: Pod) -> Sequence[Budget]:
        """The budgets that select a pod."""
        in_namespace = self._by_namespace.get(pod.metadata.namespace)
        if in_namespace is None:
            return ()
        pod_class = PodClass.of(pod.metadata.namespace, pod.metadata.labels)
        found = self._covering.get(pod_class)
        if found is None:
            labels = pod.metadata.labels
            found = [budget for budget in in_namespace if budget.selector.matches(labels)]
            self._covering[pod_class] = found
        return found


def is_healthy(pod: Pod) -> bool:
    """Whether a pod on a node counts as healthy: unless its status says that it is not ready."""
    ready = first_condition(pod.status.conditions, "Ready")
    return bool(pod.spec.node_name) and (ready is None or ready.status == "True")


def _read(raw: JsonObject, pods: Sequence[Pod], owners: Mapping[OwnerName, JsonObject]) -> Budget:
    namespace = namespace_of(raw)
    selector = selector_of(raw)
    selected = [
        pod
        for pod in pods
        if pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels)
    ]
    spec = as_object(raw.get("spec"))
    return Budget(
        namespace,
        value_at(raw, "metadata", "name") or "",
        selector,
        needed_healthy(spec, _expected(selected, owners)),
        sum(map(is_healthy, selected)),
        spec.get("unhealthyPodEvictionPolicy") == _ALWAYS,
    )


def _expected(pods: Iterable[Pod], owners: Mapping[OwnerName, JsonObject]) -> int:
    """How many pods there should be: the replicas of their controllers, else their number."""
    counts: dict[str, int] = {}
    free = 0
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            free += 1
            continue
        raw = owners.get(OwnerName(owner.kind, pod.metadata.namespace, owner.name))
        replicas = None if raw is None else value_at(raw, "spec", "replicas")
        if replicas is None:
            free += 1
        else:
            counts[owner.uid] = replicas
    return free + sum(counts.values())
