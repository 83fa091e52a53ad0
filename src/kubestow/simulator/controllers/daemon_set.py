"""DaemonSets: one pod on every node that may have one.

The nodes are chosen here, by the template's node selector, its required affinity and the taints it
tolerates; the scheduler then binds each pod to its node.
"""

from collections.abc import Iterable
from typing import Any, Final

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.node_selector import RequiredNodeAffinity
from kubestow.api.pod import Pod
from kubestow.api.taints import NO_EXECUTE, TolerationTable, first_untolerated
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import as_list, as_object, replaced_at, value_at
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ApiError
from kubestow.simulator.controllers.owner_controller import OwnerController
from kubestow.simulator.controllers.pods import (
    is_finished,
    is_terminating,
    labels_of,
    pod_from_template,
    ready_since_s,
)
from kubestow.simulator.controllers.rolling import share
from kubestow.simulator.controllers.templates import template_hash
from kubestow.simulator.event_log import EventLog

REVISION: Final = "controller-revision-hash"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_AFFINITY: Final = ("spec", "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
# A daemon stays on a node with problems, and is placed on one that is closed to other pods.
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class DaemonSetController(OwnerController):
    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        super().__init__(
            cluster,
            clock,
            log,
            name="daemonset-controller",
            owners="daemonsets.apps",
            dependents="pods",
            affects_all="nodes",
        )

    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        template = daemon_template(as_object(value_at(owner.document, "spec", "template")))
        nodes = [stored.typed for stored in self.cluster.objects_of(NODES)]
        wanted = set(suitable_nodes(template, [node for node in nodes if isinstance(node, Node)]))
        by_node: dict[str, list[StoredObject]] = {}
        for pod in dependents:
            by_node.setdefault(node_of(pod.document), []).append(pod)
        delay_s = None
        if not is_terminating(owner):
            delay_s = self._fill(owner, template, wanted - by_node.keys())
            for node_name, pods in by_node.items():
                may_stay = node_name in wanted or self._may_stay(template, node_name)
                self._delete_surplus(owner, pods, may_stay=may_stay)
            self._replace_outdated(owner, by_node, len(wanted))
        self._report(owner, wanted, by_node)
        return delay_s

    def _fill(
        self, owner: StoredObject, template: JsonObject, node_names: set[str]
    ) -> float | None:
        if node_names and (wait_s := self.held_back_s(owner)):
            return wait_s
        template = replaced_at(template, ("metadata", "labels", REVISION), _revision_of(owner))
        for index, node_name in enumerate(sorted(node_names)):
            try:
                pod = self.cluster.create(
                    PODS, pod_from_template(owner, pinned(template, node_name))
                )
            except ApiError as error:
                return self.refused(owner, error, len(node_names) - index)
            self.record(owner, "SuccessfulCreate", f"Created pod: {pod.name}")
        self.accepted(owner)
        return None

    def _may_stay(self, template: JsonObject, node_name: str) -> bool:
        """Whether a pod that is there stays: a NoSchedule taint keeps only new ones away."""
        found = self.cluster.find(NODES, "", node_name)
        if found is None or not isinstance(node := found.typed, Node):
            return False
        pod = convert(Pod, {"spec": as_object(template.get("spec"))})
        tolerations = TolerationTable(pod.spec.tolerations)
        return (
            RequiredNodeAffinity.of(pod).matches(node.metadata.labels, node.metadata.name)
            and first_untolerated(node.spec.taints, tolerations, (NO_EXECUTE,)) is None
        )

    def _delete_surplus(
        self, owner: StoredObject, pods: list[StoredObject], *, may_stay: bool
    ) -> None:
        """Keep one working pod on a node where it may stay, and none on any other."""
        working = [pod for pod in pods if not is_finished(pod) and not is_terminating(pod)]
        working.sort(key=lambda pod: (pod.metadata["creationTimestamp"], pod.name))
        kept = working[:1] if may_stay else []
        for pod in pods:
            if pod not in kept:
                self._delete(owner, pod)

    def _replace_outdated(
        self, owner: StoredObject, by_node: dict[str, list[StoredObject]], wanted_count: int
    ) -> None:
        strategy = as_object(value_at(owner.document, "spec", "updateStrategy"))
        if strategy.get("type") == "OnDelete":
            return
        allowed = value_at(strategy, "rollingUpdate", "maxUnavailable")
        allowance = share(1 if allowed is None else allowed, wanted_count, rounds_up=True)
        pods = [pod for pods in by_node.values() for pod in pods]
        allowance -= wanted_count - sum(
            ready_since_s(pod) is not None and not is_terminating(pod) for pod in pods
        )
        outdated = [
            pod
            for pod in pods
            if not is_terminating(pod) and labels_of(pod).get(REVISION) != _revision_of(owner)
        ]
        for pod in outdated:
            # Replacing one that is not ready does not reduce availability.
            if ready_since_s(pod) is None:
                self._delete(owner, pod)
            elif allowance > 0:
                allowance -= 1
                self._delete(owner, pod)

    def _delete(self, owner: StoredObject, pod: StoredObject) -> None:
        if not is_terminating(pod):
            self.delete(owner, pod, f"Deleted pod: {pod.name}")

    def _report(
        self, owner: StoredObject, wanted: set[str], by_node: dict[str, list[StoredObject]]
    ) -> None:
        placed = {
            node_name: pod
            for node_name, pods in by_node.items()
            for pod in pods
            if not is_terminating(pod)
        }
        right = [pod for node_name, pod in placed.items() if node_name in wanted]
        ready = sum(ready_since_s(pod) is not None for pod in right)
        revision = _revision_of(owner)
        updated = sum(labels_of(pod).get(REVISION) == revision for pod in right)
        status: JsonObject = {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(right),
            "numberMisscheduled": len(placed) - len(right),
            "numberReady": ready,
            "observedGeneration": owner.metadata.get("generation") or 0,
        }
        counts = {
            "numberAvailable": ready,
            "numberUnavailable": len(wanted) - ready,
            "updatedNumberScheduled": updated,
        }
        status |= {field: count for field, count in counts.items() if count}
        self.write_status(owner, status)


def node_of(pod: JsonObject) -> str:
    """The node of a daemon, bound or not."""
    if node_name := value_at(pod, "spec", "nodeName"):
        return node_name
    for term in as_list(value_at(pod, *_AFFINITY)):
        for field in as_list(as_object(term).get("matchFields")):
            values = as_list(as_object(field).get("values"))
            if values:
                return str(values[0])
    return ""


def daemon_template(template: JsonObject) -> JsonObject:
    """The template of a DaemonSet's pods, with the tolerations that the controller adds."""
    own = as_list(value_at(template, "spec", "tolerations"))
    tolerated = [*_TOLERATED]
    if value_at(template, "spec", "hostNetwork"):
        tolerated.append(_TOLERATED_ON_HOST_NETWORK)
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in tolerated]
    return replaced_at(template, ("spec", "tolerations"), [*own, *added])


def suitable_nodes(template: JsonObject, nodes: Iterable[Node]) -> list[str]:
    """The names of the nodes that have a pod of this template, made by `daemon_template`."""
    pod = convert(Pod, {"spec": as_object(template.get("spec"))})
    affinity, tolerations = RequiredNodeAffinity.of(pod), TolerationTable(pod.spec.tolerations)
    return [
        node.metadata.name
        for node in nodes
        if pod.spec.node_name in ("", node.metadata.name)
        and affinity.matches(node.metadata.labels, node.metadata.name)
        and first_untolerated(node.spec.taints, tolerations) is None
    ]


def pinned(template: JsonObject, node_name: str) -> JsonObject:
    """The template with a required affinity to one node, in place of its own."""
    field: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    terms: list[Any] = [{"matchFields": [field]}]
    return replaced_at(template, _AFFINITY, terms)


def _revision_of(owner: StoredObject) -> str:
    return template_hash(as_object(value_at(owner.document, "spec", "template")))
