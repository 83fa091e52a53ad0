"""Pods that cannot be spared: their replacement is brought up before they end (a surge).

A budget may allow no disruption, or a pod may be the only one of its controller. Then the
controller gets one replica more; the new pod is placed while the old one runs. Once it is ready,
the controller gets the replica less again, and deletes the pod with the lowest deletion cost: the
old one, which was marked before. So the number of ready pods is never less than before.

A surge is for pods of ReplicaSets and of Deployments. A StatefulSet adds and removes the pod with
the highest number, never the one that shall go; other controllers have no deletion cost.
"""

from collections import Counter
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, is_terminal, is_terminating
from kubestow.cluster.documents import as_object, value_at
from kubestow.simulator.controllers.owner_controller import controller_reference, replicas_of
from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.rebalance.budgets import Budgets, is_healthy
from kubestow.simulator.rebalance.ground import Ground, OwnerName
from kubestow.simulator.rebalance.plan import ScaledOwner

# Of the pod that shall go; others have 0.
LOWEST_COST: Final = -(2**31)

OTHER_KIND: Final = "only ReplicaSets and Deployments remove the pod that is asked for"
UNKNOWN: Final = "its ReplicaSet and Deployment are not all in the input"
OTHER_SCALER: Final = "something else than a Deployment scales its ReplicaSet"
MANAGED: Final = "another object manages its Deployment"
AUTOSCALED: Final = "a HorizontalPodAutoscaler scales it"
NO_MORE: Final = "its Deployment is updated without a pod beyond its replicas"
UPDATING: Final = "its Deployment is being updated, or is paused"
UNSETTLED: Final = "not all pods of its ReplicaSet are ready"
COSTS: Final = "pods of its ReplicaSet have deletion costs already"
CLAIMS: Final = "it has claims, which two pods might not share"


class Surges:
    """Finds the pods that are replaced before they end, and what is scaled for it."""

    def __init__(self, ground: Ground, budgets: Budgets, *, is_wanted: bool) -> None:
        """`is_wanted`: unless it is, budgets keep pods, and all others are evicted."""
        self._owners = ground.owners
        self._autoscaled = ground.autoscaled
        self._budgets = budgets
        self._is_wanted = is_wanted
        # By the UID of the controller; there are as many as the cluster has.
        self._found: dict[str, ScaledOwner | str] = {}
        # ReplicaSets that have pods, by the UID of their Deployment.
        self._set_counts = Counter(
            _controller(raw).get("uid")
            for name, raw in ground.owners.items()
            if name.kind == "ReplicaSet" and replicas_of(raw) > 0
        )
        self._pods: dict[str, list[Pod]] = {}
        for pod in ground.cluster.objects.pods if is_wanted else ():
            owner = controller_of(pod)
            if owner is not None and not is_terminating(pod) and not is_terminal(pod):
                self._pods.setdefault(owner.uid, []).append(pod)

    def reason(self, pod: Pod) -> str:
        """Why the budgets of a pod keep it; empty if they do not, or a surge is possible."""
        reason = self._budgets.reason(pod)
        if not reason or not self._is_wanted:
            return reason
        found = self._of(pod)
        return f"{reason}; no surge: {found}" if isinstance(found, str) else ""

    def scaled(self, pod: Pod) -> ScaledOwner | None:
        """The owner that is scaled up to replace a pod before it ends; None to evict the pod."""
        if not self._is_wanted or not (self._is_alone(pod) or self._budgets.reason(pod)):
            return None
        found = self._of(pod)
        return None if isinstance(found, str) else found

    def _is_alone(self, pod: Pod) -> bool:
        owner = controller_of(pod)
        return owner is not None and len(self._pods.get(owner.uid, ())) == 1

    def _of(self, pod: Pod) -> ScaledOwner | str:
        """The owner that can be scaled up; a text with the reason if there is none."""
        if any(volume.persistent_volume_claim is not None for volume in pod.spec.volumes):
            return CLAIMS
        owner = controller_of(pod)
        if owner is None or owner.kind != "ReplicaSet":
            return OTHER_KIND
        found = self._found.get(owner.uid)
        if found is None:
            name = OwnerName(owner.kind, pod.metadata.namespace, owner.name)
            found = self._found[owner.uid] = self._of_replica_set(name, owner.uid)
        return found

    def _of_replica_set(self, name: OwnerName, uid: str) -> ScaledOwner | str:
        raw = self._owners.get(name)
        if raw is None:
            return UNKNOWN
        reference = _controller(raw)
        top, top_name = raw, name
        if reference:
            if reference.get("kind") != "Deployment":
                return OTHER_SCALER
            top_name = OwnerName("Deployment", name.namespace, reference.get("name", ""))
            deployment = self._owners.get(top_name)
            if deployment is None:
                return UNKNOWN
            if problem := self._deployment_problem(deployment, raw):
                return problem
            top = deployment
        if top_name in self._autoscaled or name in self._autoscaled:
            return AUTOSCALED
        replicas = replicas_of(top)
        if problem := self._pods_problem(uid, replicas):
            return problem
        top_uid: str = value_at(top, "metadata", "uid") or ""
        kind = "Deployment" if reference else "ReplicaSet"
        return ScaledOwner(kind=kind, name=top_name.name, uid=top_uid, replicas=replicas)

    def _deployment_problem(self, deployment: JsonObject, current: JsonObject) -> str:
        """Why a Deployment does not simply scale this ReplicaSet; empty if it does."""
        if _controller(deployment):
            return MANAGED
        spec = as_object(deployment.get("spec"))
        most = value_at(spec, "strategy", "rollingUpdate", "maxSurge")
        if value_at(spec, "strategy", "type") == "Recreate" or most in (0, "0", "0%"):
            return NO_MORE
        seen = value_at(deployment, "status", "observedGeneration")
        is_settled = (
            seen in (None, value_at(deployment, "metadata", "generation"))
            and self._set_counts[value_at(deployment, "metadata", "uid")] == 1
            and replicas_of(current) == replicas_of(deployment)
        )
        return "" if is_settled and not spec.get("paused") else UPDATING

    def _pods_problem(self, uid: str, replicas: int) -> str:
        pods = self._pods.get(uid, [])
        if len(pods) != replicas or not all(map(is_healthy, pods)):
            return UNSETTLED
        if any(DELETION_COST in pod.metadata.annotations for pod in pods):
            return COSTS
        return ""


def _controller(raw: JsonObject) -> JsonObject:
    """The reference to the controller of an object; empty if it has none."""
    return controller_reference(raw) or {}
