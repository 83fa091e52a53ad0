"""Marks nodes that send no heartbeats, and gives nodes the taints of their conditions.

    lease renewed, or status reported ──► healthy
    neither for the grace period ───────► conditions Unknown, pods not ready
    Ready is not True ──► NoSchedule taint at once
                      └─► NoExecute taint as fast as its zone allows ──► `taint_eviction`
    Ready again ────────► both taints removed

As upstream, a heartbeat counts from when it was noticed here, so clocks need not agree. Other
conditions of a node (memory, disk, processes, network) and `spec.unschedulable` become NoSchedule
taints too.

Without leases (`has_leases`) a kubelet is silent from when it was stopped (`kubelet_switch`). Then
only nodes that changed, and those of stopped kubelets, are looked at.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.topology import zone_key
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent
from kubestow.clock import Clock
from kubestow.cluster.documents import (
    as_object,
    condition_of,
    objects_in,
    replaced_at,
    value_at,
    whole_seconds,
)
from kubestow.cluster.resources import LEASES, NODES, PODS
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.node_taints import (
    NOT_READY,
    UNREACHABLE,
    eviction_key,
    has_eviction_taint,
    ready_status,
    with_eviction_taint,
    with_scheduling_taints,
)
from kubestow.simulator.controllers.pods import ready_since_s, with_condition
from kubestow.simulator.controllers.zone_disruption import (
    Limiter,
    ZoneState,
    are_all_disrupted,
    zone_rate,
    zone_state,
)
from kubestow.simulator.defaults import NODE_GRACE_S
from kubestow.simulator.event_log import EventLog
from kubestow.simulator.heartbeats import NAMESPACE as LEASE_NAMESPACE
from kubestow.simulator.kubelet_switch import is_stopped

NAME: Final = "node-controller"
CHECK_S: Final = 5.0
# For a node whose kubelet has never reported.
STARTUP_GRACE_S: Final = 60.0
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class _Health:
    """The last heartbeat of a node, and when it was noticed."""

    __slots__ = ("noticed_s", "renewed", "reported")

    def __init__(self, now_s: float) -> None:
        self.noticed_s = now_s
        self.renewed = ""
        self.reported = ""


class _Zone:
    """The nodes of a zone that wait for their NoExecute taint."""

    def __init__(self) -> None:
        self.waiting: dict[str, None] = {}
        self.limiter = Limiter()


class NodeLifecycle:
    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        log: EventLog,
        *,
        grace_s: float = NODE_GRACE_S,
        has_leases: bool = True,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._log = log
        self._grace_s = grace_s
        self._has_leases = has_leases
        # Without leases: the nodes to look at in the next check; when kubelets were stopped.
        self._suspects: dict[str, None] = {}
        self._stopped_s: dict[str, float] = {}
        self._is_changed = asyncio.Event()
        self._guard = Guard(NAME)
        self._health: dict[str, _Health] = {}
        self._zones: dict[str, _Zone] = {}
        self._states: dict[str, ZoneState] = {}
        # The zone of each node that counts, and whether it is ready; how many there are of each.
        self._counted: dict[str, tuple[str, bool]] = {}
        self._node_counts: Counter[tuple[str, bool]] = Counter()
        cluster.observe(NODES, self._count)

    @property
    def is_busy(self) -> bool:
        """Whether a silent node is to be marked or tainted, or a changed one to be checked."""
        now_s = self._clock.monotonic_s()
        if any(name not in self._stopped_s for name in self._suspects):
            return True
        stopped = (self._cluster.find(NODES, "", name) for name in self._stopped_s)
        if any(node is not None and ready_status(node.document) == "True" for node in stopped):
            return True
        zones = self._zones.values()
        return any(zone.waiting and zone.limiter.wait_s(now_s) is not None for zone in zones)

    async def run(self) -> None:
        """Follow the nodes until cancelled."""
        watch = self._cluster.watch(NODES)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._monitor())
                while batch := await watch.next_batch():
                    for event in batch:
                        self._guard.run(event.stored, partial(self._after_node, event), "taints")
        finally:
            watch.close()
            self._guard.close()

    def _after_node(self, event: WatchEvent) -> None:
        node = event.stored
        self._suspects[node.name] = None
        self._is_changed.set()
        if event.type != "DELETED" and is_stopped(node.document):
            self._stopped_s.setdefault(node.name, self._clock.monotonic_s())
        else:
            self._stopped_s.pop(node.name, None)
        if event.type == "DELETED":
            self._health.pop(node.name, None)
            return
        self._change(node, partial(with_scheduling_taints, now=self._now()))

    # --- Health -------------------------------------------------------------------------------

    async def _monitor(self) -> None:
        next_check_s = self._clock.monotonic_s()
        while True:
            now_s = self._clock.monotonic_s()
            if now_s >= next_check_s:
                self.check()
                next_check_s = now_s + CHECK_S
            wait_s = self._taint_waiting()
            if not (self._has_leases or self._suspects) and wait_s is None:
                # There is nothing to look at until a node changes; then at the time of a check.
                self._is_changed.clear()
                await self._is_changed.wait()
                now_s = self._clock.monotonic_s()
                next_check_s += max(math.ceil((now_s - next_check_s) / CHECK_S), 0) * CHECK_S
            await asyncio.sleep(min(next_check_s - now_s, CHECK_S if wait_s is None else wait_s))

    def check(self) -> None:
        """Look once at the nodes of which something may have changed."""
        suspects, self._suspects = self._suspects, {}
        if self._has_leases:
            nodes = list(self._cluster.objects_of(NODES))
        else:
            found = (self._cluster.find(NODES, "", name) for name in suspects)
            nodes = [node for node in found if node is not None]
            self._suspects = {node.name: None for node in nodes if is_stopped(node.document)}
        for node in nodes:
            self._guard.run(node, partial(self._check_node, node), "health")
        if suspects or self._has_leases:
            self._set_rates()

    def _check_node(self, node: StoredObject) -> None:
        before = ready_status(node.document)
        if self._is_silent(node):
            node = self._mark_unknown(node)
        status = ready_status(node.document)
        if status:
            self._queue_eviction(node)
        if before == "True" and status != "True":
            note = f"Node {node.name} status is now: NodeNotReady"
            self._log.record(node, reporter=NAME, reason="NodeNotReady", note=note)
            self._mark_pods(node.name)

    def _is_silent(self, node: StoredObject) -> bool:
        """Whether the last heartbeat is longer ago than the grace period."""
        now_s = self._clock.monotonic_s()
        if not self._has_leases:
            return now_s - self._stopped_s.get(node.name, now_s) > self._grace_s
        health = self._health.setdefault(node.name, _Health(now_s))
        ready = condition_of(node.document, "Ready")
        reported: str = ready.get("lastHeartbeatTime") or ""
        lease = self._cluster.find(LEASES, LEASE_NAMESPACE, node.name)
        renewed: str = "" if lease is None else value_at(lease.document, "spec", "renewTime") or ""
        if (renewed, reported) != (health.renewed, health.reported):
            health.noticed_s, health.renewed, health.reported = now_s, renewed, reported
        return now_s - health.noticed_s > (self._grace_s if ready else STARTUP_GRACE_S)

    def _mark_unknown(self, node: StoredObject) -> StoredObject:
        now = self._now()
        conditions = list(objects_in(value_at(node.document, "status", "conditions")))
        known = {one.get("type"): index for index, one in enumerate(conditions)}
        for type in _REPORTED:
            if type not in known:
                conditions.append(_never_updated(node, type, now))
            elif conditions[known[type]].get("status") != "Unknown":
                conditions[known[type]] = {
                    **conditions[known[type]],
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": now,
                }
        return self._cluster.change(
            NODES,
            *node.key,
            lambda document: replaced_at(document, ("status", "conditions"), conditions),
            subresource="status",
        )

    def _mark_pods(self, node_name: str) -> None:
        now = self._now()
        for pod in list(self._cluster.objects_of(PODS)):
            if not isinstance(pod.typed, Pod) or pod.typed.spec.node_name != node_name:
                continue
            if ready_since_s(pod) is None:
                continue
            condition = {
                **condition_of(pod.document, "Ready"),
                "status": "False",
                "lastTransitionTime": now,
            }
            with suppress(NotFoundError):
                self._cluster.change(
                    PODS, *pod.key, partial(_with, condition), subresource="status"
                )
                self._log.record(
                    pod,
                    reporter=NAME,
                    reason="NodeNotReady",
                    note="Node is not ready",
                    type="Warning",
                )

    # --- NoExecute taints ---------------------------------------------------------------------

    def _zone_of(self, node: StoredObject) -> _Zone:
        return self._zones.setdefault(_zone_key(node), _Zone())

    def _queue_eviction(self, node: StoredObject) -> None:
        key = eviction_key(node.document)
        waiting = self._zone_of(node).waiting
        if not key:
            waiting.pop(node.name, None)
        if not key or has_eviction_taint(node.document, NOT_READY, UNREACHABLE):
            # A taint that is not needed any more goes at once; one of the two replaces the other.
            self._set_taint(node, key)
        else:
            waiting[node.name] = None

    def _taint_waiting(self) -> float | None:
        """Taint nodes as fast as allowed; return the seconds until the next may be, if any."""
        now_s = self._clock.monotonic_s()
        waits_s: list[float] = []
        for zone in self._zones.values():
            while zone.waiting and zone.limiter.take(now_s):
                name = next(iter(zone.waiting))
                del zone.waiting[name]
                if (node := self._cluster.find(NODES, "", name)) is not None:
                    key = eviction_key(node.document)
                    self._guard.run(node, partial(self._set_taint, node, key), "evict")
            wait_s = zone.limiter.wait_s(now_s)
            if zone.waiting and wait_s is not None:
                waits_s.append(wait_s)
        return min(waits_s, default=None)

    def _set_taint(self, node: StoredObject, key: str) -> None:
        self._change(node, partial(with_eviction_taint, key=key, now=self._now()))

    def _change(self, node: StoredObject, edit: Callable[[JsonObject], JsonObject]) -> None:
        # Most calls change nothing; comparing whole documents is left to the others.
        if edit(node.document) is not node.document:
            with suppress(NotFoundError):
                self._cluster.change(NODES, *node.key, edit)

    def _set_rates(self) -> None:
        """Adapt the speed to how many nodes of each zone are ready."""
        now_s = self._clock.monotonic_s()
        ready, not_ready = self._counts()
        zones = ready.keys() | not_ready.keys()
        states = {zone: zone_state(ready[zone], not_ready[zone]) for zone in zones}
        was_disrupted = bool(self._states) and are_all_disrupted(self._states)
        self._states = states
        is_disrupted = bool(states) and are_all_disrupted(states)
        if is_disrupted:
            for zone in self._zones.values():
                zone.limiter.set_rate(0.0, now_s)
            if not was_disrupted:
                for node in list(self._cluster.objects_of(NODES)):
                    self._guard.run(node, partial(self._set_taint, node, ""), "evict")
            return
        if was_disrupted:
            # While no node answered, the time of the last heartbeats said nothing about the nodes.
            for health in self._health.values():
                health.noticed_s = now_s
            self._stopped_s = dict.fromkeys(self._stopped_s, now_s)
        for name, state in states.items():
            zone = self._zones.setdefault(name, _Zone())
            zone.limiter.set_rate(zone_rate(state, ready[name] + not_ready[name]), now_s)
        for name in self._zones.keys() - zones:
            if not self._zones[name].waiting:
                del self._zones[name]

    def _counts(self) -> tuple[Counter[str], Counter[str]]:
        """How many nodes of each zone are ready, and how many are not."""
        counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for (zone, is_ready), count in self._node_counts.items():
            if count:
                counts[not is_ready][zone] = count
        return counts

    def _count(self, event: WatchEvent) -> None:
        """Count a node as it is now; called with each write."""
        node = event.stored
        if (before := self._counted.pop(node.name, None)) is not None:
            self._node_counts[before] -= 1
        if event.type == "DELETED" or EXCLUDED in as_object(node.metadata.get("labels")):
            return
        counted = _zone_key(node), ready_status(node.document) == "True"
        self._counted[node.name] = counted
        self._node_counts[counted] += 1

    def _now(self) -> str:
        return whole_seconds(self._clock.now_ns())


def _zone_key(node: StoredObject) -> str:
    return zone_key(as_object(node.metadata.get("labels")))


def _never_updated(node: StoredObject, type: str, now: str) -> JsonObject:
    return {
        "type": type,
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": node.metadata.get("creationTimestamp"),
        "lastTransitionTime": now,
    }


def _with(condition: JsonObject, pod: JsonObject) -> JsonObject:
    return with_condition(pod, condition)
