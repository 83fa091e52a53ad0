"""Nodes and pods as the descheduler sees them at the start of a round, and what fits where."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.labels import Selector, parse_label_selector
from kubestow.api.meta import JsonObject, LabelSelector
from kubestow.api.node import Node
from kubestow.api.pod import first_condition, priority_of
from kubestow.api.pod_info import PodInfo
from kubestow.api.qos import qos_class
from kubestow.api.resources import Resources, amount_of
from kubestow.api.taints import first_untolerated
from kubestow.cache.node_info import NodeInfo
from kubestow.cluster.documents import objects_in, value_at
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.rebalance.descheduler.policy import Namespaces

_QOS_ORDER: Final = ("BestEffort", "Burstable", "Guaranteed")

# Evicts a pod if the evictor lets it go; whether it did.
Evict = Callable[[PodInfo], bool]


class SeenNode(NamedTuple):
    node: Node
    info: NodeInfo

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels


class View:
    """The cluster at the start of a round. Pods that are evicted in it are gone from its lists."""

    def __init__(
        self,
        infos: Iterable[NodeInfo],
        documents: Mapping[PodKey, JsonObject],
        node_selector: Selector,
        now_s: float,
    ) -> None:
        """`documents`: the pods as they were read; replacements have none."""
        self.nodes: Sequence[SeenNode] = [
            SeenNode(info.node, info)
            for info in infos
            if info.node is not None
            and node_selector.matches(info.node.metadata.labels)
            and _is_ready(info.node)
        ]
        self.documents = documents
        self.now_s = now_s
        self._pods = {seen.name: list(seen.info.pods) for seen in self.nodes}

    def pods_on(self, node_name: str) -> list[PodInfo]:
        """The pods of a node that are not evicted in this round."""
        return list(self._pods[node_name])

    def pods(self) -> Iterator[PodInfo]:
        for pods in self._pods.values():
            yield from pods

    def gone(self, pod: PodInfo) -> None:
        self._pods[pod.pod.spec.node_name].remove(pod)

    def document(self, pod: PodInfo) -> JsonObject | None:
        return self.documents.get(PodKey.of(pod.pod))

    # --- What fits ------------------------------------------------------------------------------

    def fits_elsewhere(self, pod: PodInfo, nodes: Iterable[SeenNode] | None = None) -> bool:
        """Whether a pod fits on another node, by the few rules that the descheduler has."""
        return any(
            seen.name != pod.pod.spec.node_name and self.fits(pod, seen)
            for seen in (self.nodes if nodes is None else nodes)
        )

    def fits(self, pod: PodInfo, seen: SeenNode) -> bool:
        """Not closed, node affinity, taints, anti-affinity of the node's pods, requests."""
        if seen.node.spec.unschedulable or not matches_node(pod, seen):
            return False
        if not tolerates(pod, seen) or self._is_kept_away(pod, seen):
            return False
        return seen.name == pod.pod.spec.node_name or self._has_room(pod, seen)

    def _is_kept_away(self, pod: PodInfo, seen: SeenNode) -> bool:
        return any(
            other.uid != pod.uid and is_apart(pod, seen, other, seen)
            for other in self._pods[seen.name]
        )

    def _has_room(self, pod: PodInfo, seen: SeenNode) -> bool:
        pods = self._pods[seen.name]
        allocatable = seen.info.allocatable
        if len(pods) >= allocatable.allowed_pods:
            return False
        wanted = pod.accounted.requested
        names = ("cpu", "memory", "ephemeral-storage", *wanted.scalar)
        return all(
            amount_of(name, wanted) + sum(amount_of(name, one.accounted.requested) for one in pods)
            <= amount_of(name, allocatable)
            for name in names
            if amount_of(name, wanted)
        )


def _is_ready(node: Node) -> bool:
    ready = first_condition(node.status.conditions, "Ready")
    return ready is None or ready.status == "True"


def matches_node(pod: PodInfo, seen: SeenNode) -> bool:
    """Whether the node selector and the required node affinity of a pod hold on a node."""
    return pod.required_node_affinity.matches(seen.labels, seen.name)


def tolerates(pod: PodInfo, seen: SeenNode) -> bool:
    return first_untolerated(seen.node.spec.taints, pod.tolerations) is None


def is_apart(pod: PodInfo, at: SeenNode, other: PodInfo, other_at: SeenNode) -> bool:
    """Whether an anti-affinity term of a pod selects the other one, in the same domain."""
    return any(
        term.matches(other.namespace, other.pod.metadata.labels, {})
        and term.topology_key in at.labels
        and at.labels[term.topology_key] == other_at.labels.get(term.topology_key)
        for term in pod.required_anti_affinity_terms
    )


def chooser(namespaces: Namespaces, labels: LabelSelector | None) -> Callable[[PodInfo], bool]:
    """Whether arguments of a plugin choose a pod."""
    selector = parse_label_selector(labels) if labels is not None else None
    return lambda pod: (
        namespaces.has(pod.namespace)
        and (selector is None or selector.matches(pod.pod.metadata.labels))
    )


def least_important_first(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """The pods in the order of their priority, then of their class of service."""
    return sorted(
        pods, key=lambda pod: (priority_of(pod.pod), _QOS_ORDER.index(qos_class(pod.pod)))
    )


def requested(pods: Iterable[PodInfo]) -> Resources:
    """What pods request together; `allowed_pods` is their number."""
    total = Resources()
    for pod in pods:
        wanted = pod.accounted.requested
        total.milli_cpu += wanted.milli_cpu
        total.memory += wanted.memory
        total.ephemeral_storage += wanted.ephemeral_storage
        total.allowed_pods += 1
        for name, amount in wanted.scalar.items():
            total.scalar[name] = total.scalar.get(name, 0) + amount
    return total


def restart_count(document: JsonObject, *, with_init: bool) -> int:
    fields = ("containerStatuses", *(("initContainerStatuses",) if with_init else ()))
    return sum(
        int(status.get("restartCount") or 0)
        for field in fields
        for status in objects_in(value_at(document, "status", field))
    )


def states_of(document: JsonObject, *, with_init: bool) -> set[str]:
    """The phase of a pod, its reason, and why its containers wait or have ended."""
    fields = ("containerStatuses", *(("initContainerStatuses",) if with_init else ()))
    found = {value_at(document, "status", "phase"), value_at(document, "status", "reason")}
    for field in fields:
        for status in objects_in(value_at(document, "status", field)):
            found.add(value_at(status, "state", "waiting", "reason"))
            found.add(value_at(status, "state", "terminated", "reason"))
    return {state for state in found if isinstance(state, str)}
