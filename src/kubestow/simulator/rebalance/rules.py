"""Which pods stay where they are, and why.

The texts complete the sentence "the pod stays: ...".
"""

from typing import Final, Literal

from kubestow.api.meta import JsonObject, ObjectMeta, OwnerReference
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, is_terminating, priority_of
from kubestow.cluster.documents import value_at
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.controllers.owner_controller import replicas_of
from kubestow.simulator.input.pods import MIRROR, PodKey
from kubestow.simulator.rebalance.ground import Ground, OwnerName
from kubestow.simulator.rebalance.options import RebalanceOptions

# When a controller makes the replacement of a pod that is evicted: while the pod is ending, once it
# is gone, or one of both.
Replaced = Literal["while-ending", "after-end", "unknown"]

_SAFE: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_DO_NOT_DISRUPT: Final = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
_DESCHEDULER_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
_DESCHEDULER_STAY: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"

NO_CONTROLLER: Final = "it has no controller, so it would be lost"
DAEMON: Final = "it is a pod of a DaemonSet"
STATIC: Final = "it is a static pod"
ENDING: Final = "it is ending"
OTHER_SCHEDULER: Final = "another scheduler places it"
LOCAL_VOLUME: Final = "it has a volume on the disk of its node"
JOB: Final = "it is a pod of a Job, whose work would be lost"
OWN_CLAIMS: Final = "claims are made for it alone, and would be made again"
EXCLUDED: Final = "it is excluded"
OTHER_NODES: Final = "its node is not among those chosen"
IMPORTANT: Final = "its priority is too high"
SHRINKING: Final = "its controller has more pods than it asks for, so none would replace it"


class MovableRules:
    """Finds the reason for which a pod stays, if there is one."""

    def __init__(self, ground: Ground, options: RebalanceOptions) -> None:
        self._cluster: Final[StillCluster] = ground.cluster
        self._local_volumes = ground.local_volumes
        self._owners = ground.owners
        self._options = options
        self._node_reasons = _node_reasons(ground.cluster, options)
        self._surplus = _surplus_owners(ground)

    def reason(self, pod: Pod) -> str:
        """Why the pod stays; empty if it may be evicted."""
        return self._of_kind(pod) or self._of_annotations(pod) or self._of_options(pod)

    def replaced(self, pod: Pod) -> Replaced:
        """When the controller of a pod makes its replacement."""
        owner = controller_of(pod)
        kind = "" if owner is None else owner.kind
        if pod.spec.termination_grace_period_seconds == 0:
            return "after-end"
        match kind:
            case "ReplicaSet" | "ReplicationController":
                return "while-ending"
            case "StatefulSet":
                return "after-end"
            case "Job":
                job = self._owner(pod, owner)
                policy = None if job is None else value_at(job, "spec", "podReplacementPolicy")
                return "after-end" if policy == "Failed" else "while-ending"
            case _:
                return "unknown"

    def _of_kind(self, pod: Pod) -> str:
        metadata, owner = pod.metadata, controller_of(pod)
        if is_terminating(pod):
            return ENDING
        if MIRROR in metadata.annotations or (owner is not None and owner.kind == "Node"):
            return STATIC
        if owner is None:
            return NO_CONTROLLER
        if owner.kind == "DaemonSet":
            return DAEMON
        if self._cluster.profile_of(pod) is None:
            return OTHER_SCHEDULER
        if owner.uid in self._surplus:
            return SHRINKING
        if _has_own_claims(pod):
            return OWN_CLAIMS
        if owner.kind == "Job" and not self._options.also_jobs:
            return JOB
        return ""

    def _of_annotations(self, pod: Pod) -> str:
        annotations = pod.metadata.annotations
        if annotations.get(_SAFE) == "false":
            return f'it has the annotation {_SAFE}: "false"'
        if (name := _do_not_disrupt(pod.metadata)) is not None:
            return f"it has the annotation {name}"
        if _DESCHEDULER_STAY in annotations:
            return f"it has the annotation {_DESCHEDULER_STAY}"
        return self._node_reasons.get(pod.spec.node_name, "")

    def _of_options(self, pod: Pod) -> str:
        options, metadata = self._options, pod.metadata
        if metadata.namespace in options.excluded_namespaces or any(
            selector.matches(metadata.labels) for selector in options.excluded_selectors
        ):
            return EXCLUDED
        if priority_of(pod) > options.max_priority:
            return IMPORTANT
        if not options.also_local_volumes and self._loses_volume(pod):
            return LOCAL_VOLUME
        return ""

    def _loses_volume(self, pod: Pod) -> bool:
        annotations = pod.metadata.annotations
        if annotations.get(_SAFE) == "true" or _DESCHEDULER_EVICT in annotations:
            return False
        safe = {name.strip() for name in annotations.get(_SAFE_VOLUMES, "").split(",")}
        return any(name not in safe for name in self._local_volumes.get(PodKey.of(pod), ()))

    def _owner(self, pod: Pod, owner: OwnerReference | None) -> JsonObject | None:
        if owner is None:
            return None
        return self._owners.get(OwnerName(owner.kind, pod.metadata.namespace, owner.name))


def _do_not_disrupt(metadata: ObjectMeta) -> str | None:
    annotations = metadata.annotations
    return next((name for name in _DO_NOT_DISRUPT if annotations.get(name) == "true"), None)


def _has_own_claims(pod: Pod) -> bool:
    """Whether a controller makes claims for each replacement, which are not known before."""
    return any(volume.ephemeral is not None for volume in pod.spec.volumes) or any(
        entry.resource_claim_template_name for entry in pod.spec.resource_claims
    )


def _node_reasons(cluster: StillCluster, options: RebalanceOptions) -> dict[str, str]:
    """Why pods of a node stay, by its name."""
    reasons: dict[str, str] = {}
    chosen = options.node_selector
    for node in cluster.objects.nodes:
        if (name := _do_not_disrupt(node.metadata)) is not None:
            reasons[node.metadata.name] = f"its node has the annotation {name}"
        elif chosen is not None and not chosen.matches(node.metadata.labels):
            reasons[node.metadata.name] = OTHER_NODES
    return reasons


def _surplus_owners(ground: Ground) -> set[str]:
    """UIDs of controllers that have more pods than they ask for, or are being deleted."""
    counts: dict[tuple[OwnerName, str], int] = {}
    for pod in ground.cluster.objects.pods:
        owner = controller_of(pod)
        if owner is not None and not is_terminating(pod):
            key = OwnerName(owner.kind, pod.metadata.namespace, owner.name)
            counts[key, owner.uid] = counts.get((key, owner.uid), 0) + 1
    surplus: set[str] = set()
    for (key, uid), count in counts.items():
        raw = ground.owners.get(key)
        if raw is None or key.kind == "Job":
            continue
        is_leaving = value_at(raw, "metadata", "deletionTimestamp") is not None
        if is_leaving or count > replicas_of(raw):
            surplus.add(uid)
    return surplus
