"""Follows pods, nodes and disruption budgets of a case from its start.

What an expectation asks about the past is noted when it happens: pods that lost their node, budgets
that were violated. What is there is found by its controller and by whether it waits, so that
judging a copy of a large cluster does not go over all of its pods.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kubestow.api.node import Node
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, is_terminal
from kubestow.api.workload import PodDisruptionBudget
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import Key, StoredObject
from kubestow.apiserver.watch import WatchEvent
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, value_at
from kubestow.cluster.resources import NODES, PODS
from kubestow.simulator.pod_owner import controllers_above
from kubestow.simulator.scenario.collector import disruption_of


class LostPod(NamedTuple):
    """A pod that is gone, or going, or was seen on a node before.

    how        Preempted or Evicted; empty if it ended by itself or was deleted
    why        the condition's reason
    has_ended  by itself: its containers did
    """

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    owners: tuple[str, ...]
    node: str
    how: str
    why: str
    at_s: float
    has_ended: bool


class BudgetRecord:
    """The worst that a budget has seen since it first had enough healthy pods."""

    __slots__ = ("desired", "healthy", "healthy_min", "violated_s", "was_met")

    def __init__(self) -> None:
        self.was_met = False
        self.healthy = self.desired = 0
        self.healthy_min: tuple[int, int] | None = None
        self.violated_s: float | None = None


class History:
    """Make it before anything happens; it follows the store from then on."""

    def __init__(self, store: MemoryCluster, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.created_s: dict[str, float] = {}
        self.placed_s: dict[str, float] = {}
        # UIDs of pods that wait for a node, and of those of each controller; neither has pods that
        # are ending or have ended.
        self.waiting: dict[str, Key] = {}
        self.by_controller: dict[str, dict[str, Key]] = {}
        self.lost: list[LostPod] = []
        self._is_lost: set[str] = set()
        self.node_labels: dict[str, Mapping[str, str]] = {}
        self.budgets: dict[Key, BudgetRecord] = {}
        store.observe(PODS, self._after_pod)
        store.observe(NODES, self._after_node)
        store.observe(store.resources.of_type(PodDisruptionBudget), self._after_budget)

    # --- Pods ---------------------------------------------------------------------------------

    def _after_pod(self, event: WatchEvent) -> None:
        pod = event.object
        assert isinstance(pod, Pod), pod
        uid = pod.metadata.uid
        now_s = self._clock.monotonic_s()
        if uid not in self.created_s:
            self.created_s[uid] = now_s
        if pod.spec.node_name and uid not in self.placed_s:
            self.placed_s[uid] = now_s
        controller = controller_of(pod)
        is_there = event.type != "DELETED" and is_live(pod)
        if is_there:
            key = event.stored.key
            if controller is not None:
                self.by_controller.setdefault(controller.uid, {})[uid] = key
            if pod.spec.node_name:
                self.waiting.pop(uid, None)
            else:
                self.waiting[uid] = key
            return
        self.waiting.pop(uid, None)
        if controller is not None:
            self.by_controller.get(controller.uid, {}).pop(uid, None)
        if uid not in self._is_lost:
            self._is_lost.add(uid)
            self.lost.append(self._lost(event.stored, pod, now_s))

    def _lost(self, stored: StoredObject, pod: Pod, now_s: float) -> LostPod:
        how, why = disruption_of(pod)
        namespace, name = stored.key
        owners = tuple(
            each.name for each in controllers_above(self._store, stored.document, namespace)
        )
        return LostPod(
            uid=pod.metadata.uid,
            namespace=namespace,
            name=name,
            labels=pod.metadata.labels,
            owners=owners,
            node=pod.spec.node_name,
            how=how,
            why=why,
            at_s=now_s,
            has_ended=is_terminal(pod) and not how,
        )

    # --- Nodes and budgets --------------------------------------------------------------------

    def _after_node(self, event: WatchEvent) -> None:
        node = event.object
        assert isinstance(node, Node), node
        self.node_labels[node.metadata.name] = node.metadata.labels

    def _after_budget(self, event: WatchEvent) -> None:
        key = event.stored.key
        if event.type == "DELETED":
            self.budgets.pop(key, None)
            return
        record = self.budgets.setdefault(key, BudgetRecord())
        status = as_object(value_at(event.stored.document, "status"))
        if "desiredHealthy" not in status:
            return
        healthy: int = status.get("currentHealthy") or 0
        desired: int = status["desiredHealthy"]
        record.healthy, record.desired = healthy, desired
        if healthy >= desired:
            record.was_met = record.was_met or desired > 0 or healthy > 0
        elif record.was_met and (record.healthy_min is None or healthy < record.healthy_min[0]):
            record.healthy_min = (healthy, desired)
            if record.violated_s is None:
                record.violated_s = self._clock.monotonic_s()


def is_live(pod: Pod) -> bool:
    """Whether a pod counts: it has not ended and is not ending."""
    return pod.metadata.deletion_timestamp is None and not is_terminal(pod)
