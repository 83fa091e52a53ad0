"""The part of a running cluster that computes use, and acts on nodes that have too little memory.

It follows pods and nodes as the store has them. Every few virtual seconds it computes what each
running pod asks for and gets; that holds until the next time. It writes what kubelets would: pods
that were evicted, and the condition MemoryPressure, of which the node controller makes a taint.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminal
from kubestow.api.resources import Resources
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import WatchEvent
from kubestow.arrays import FloatArray, IntArray, IntpArray
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ApiError
from kubestow.simulator.controllers.pods import with_condition
from kubestow.simulator.kubelet_switch import KUBELET, STOPPED
from kubestow.simulator.usage.curves import key_of
from kubestow.simulator.usage.demand import PodName, RunningPods
from kubestow.simulator.usage.measuring import Measured, MetricsServer
from kubestow.simulator.usage.plan import UsagePlan, WorkloadCurves
from kubestow.simulator.usage.pressure import CHECK_S, TRANSITION_S, evicted_pods, usable_memory
from kubestow.simulator.usage.results import RunUsage, SampleUsage
from kubestow.simulator.usage.sharing import granted_cpu, weights_of
from kubestow.simulator.usage.totals import UsageStep, UsageTotals

_HAIR_S: Final = 1e-3
_PRESSURE: Final = "MemoryPressure"
_EVICTED: Final = "The node was low on resource: memory."
_DISRUPTED: Final[JsonObject] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "TerminationByKubelet",
    "message": _EVICTED,
}


class _KnownPod:
    """What is kept of a pod while it exists: its curves, its owner and what is random about it."""

    __slots__ = ("entry", "key", "owner")

    def __init__(self, entry: WorkloadCurves, owner: int, key: int) -> None:
        self.entry = entry
        self.owner = owner
        self.key = key


class _Nodes:
    """The nodes that were ever there, by slot."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._slots: dict[str, int] = {}
        # int64[resource, node]
        self.available = np.zeros((2, 0), np.int64)
        self.usable_memory = np.zeros(0, np.int64)
        self.is_there = np.zeros(0, np.bool_)
        # Whether the kubelet answers: of one that was stopped nothing is measured.
        self.is_measured = np.zeros(0, np.bool_)

    def slot(self, name: str) -> int:
        slot = self._slots.setdefault(name, len(self.names))
        if slot == len(self.names):
            self.names.append(name)
            if slot >= len(self.is_there):
                more = max(slot, 64)
                self.available = np.pad(self.available, ((0, 0), (0, more)))
                self.usable_memory = np.pad(self.usable_memory, (0, more))
                self.is_there = np.pad(self.is_there, (0, more))
                self.is_measured = np.pad(self.is_measured, (0, more))
        return slot


class UsageEngine:
    def __init__(
        self,
        store: MemoryCluster,
        clock: Clock,
        plan: UsagePlan,
        *,
        seed: int,
        owner_of: Callable[[str], str],
    ) -> None:
        """`owner_of` returns what made the pod with a UID, as results name it."""
        self._store = store
        self._clock = clock
        self._plan = plan
        self._owner_of = owner_of
        self.pods: Final = RunningPods(plan, seed)
        self._nodes = _Nodes()
        self._known: dict[str, _KnownPod] = {}
        self._owners: dict[str, int] = {}
        # How many pods each owner had so far: pods are numbered, as their names may be random.
        self._counts: Counter[str] = Counter()
        self._totals = UsageTotals(plan.hot_share)
        self.metrics: Final = MetricsServer(plan)
        self._measured: Measured | None = None
        self._step: UsageStep | None = None
        self._step_nodes: IntpArray = np.zeros(0, np.intp)
        # When each node under pressure was short of memory last.
        self._short_s: dict[int, float] = {}
        store.observe(NODES, self._after_node)
        store.observe(PODS, self._after_pod)

    async def run(self) -> None:
        """Compute use until cancelled."""
        start_s = self._clock.monotonic_s()
        number = 0
        while True:
            self.step()
            number += 1
            await asyncio.sleep(start_s + number * self._plan.every_s - self._clock.monotonic_s())

    # --- following ---

    def _after_node(self, event: WatchEvent) -> None:
        node = event.object
        assert isinstance(node, Node), node
        nodes, slot = self._nodes, self._nodes.slot(node.metadata.name)
        nodes.is_there[slot] = event.type != "DELETED"
        nodes.is_measured[slot] = (
            event.type != "DELETED" and node.metadata.annotations.get(KUBELET) != STOPPED
        )
        if event.type == "DELETED":
            self._short_s.pop(slot, None)
            return
        allocatable = Resources.from_list(node.status.allocatable or node.status.capacity)
        capacity = Resources.from_list(node.status.capacity or node.status.allocatable)
        nodes.available[:, slot] = allocatable.milli_cpu, allocatable.memory
        nodes.usable_memory[slot] = usable_memory(
            allocatable=allocatable.memory,
            capacity=capacity.memory,
            threshold=round(self._plan.threshold.of(capacity.memory)),
        )

    def _after_pod(self, event: WatchEvent) -> None:
        pod = event.object
        assert isinstance(pod, Pod), pod
        uid = pod.metadata.uid
        if event.type == "DELETED":
            self._known.pop(uid, None)
            self.pods.remove(uid)
            return
        if uid not in self._known:
            self._known[uid] = self._new_pod(event, pod)
        runs = pod.spec.node_name != "" and pod.status.phase == "Running"
        if not runs or is_terminal(pod):
            self.pods.remove(uid)
        elif uid not in self.pods:
            known, node = self._known[uid], self._nodes.slot(pod.spec.node_name)
            self.pods.add(pod, known.entry, node=node, owner=known.owner, key=known.key)

    def _new_pod(self, event: WatchEvent, pod: Pod) -> _KnownPod:
        owner = self._owner_of(pod.metadata.uid)
        entry = self._plan.entry_of(self._store, event.stored, owner)
        number = self._owners.setdefault(owner, len(self._owners))
        return _KnownPod(entry, number, self._key(pod, owner))

    def _key(self, pod: Pod, owner: str) -> int:
        """What random numbers of a pod come from: its name or, as names that the server completes
        are others in each run, its number among the pods of its owner."""
        metadata = pod.metadata
        if not metadata.generate_name:
            return key_of(f"{metadata.namespace}/{metadata.name}")
        group = f"{metadata.namespace}/{owner or metadata.generate_name}"
        self._counts[group] += 1
        return key_of(f"{group}#{self._counts[group]}")

    # --- steps ---

    def step(self) -> None:
        """Compute the use from now on, and evict pods from nodes that have too little memory."""
        now_s = self._clock.monotonic_s()
        self._conclude(now_s)
        self._measure(now_s)
        pods, nodes = self.pods, self._nodes
        demand = pods.demand(self._clock.now_ns() / NANOSECONDS, now_s)
        # Pods on nodes that are gone use nothing.
        own: IntpArray = pods.column("node").copy()
        demand[:, ~nodes.is_there[own]] = 0
        weights = weights_of(pods.column("cpu_request"))
        granted = granted_cpu(demand[0], weights, own, nodes.available[0])
        used = np.stack(
            [
                np.rint(np.bincount(own, amounts, len(nodes.is_there)))
                for amounts in (granted, demand[1])
            ]
        ).astype(np.int64)
        self._step_nodes = own
        self._step = UsageStep(
            now_s,
            used,
            nodes.available.copy(),
            nodes.is_there.copy(),
            demand[0].astype(np.float64),
            demand[0] - granted,
            pods.column("owner").copy(),
        )
        self._measured = None
        # A hair later: the next step may begin a little before its time.
        if self.metrics.is_due(now_s + self._plan.every_s + _HAIR_S):
            self._measured = self._measurable(used, np.stack([granted, demand[1]]), own)
        self._relieve(demand[1], own, used[1], now_s)

    def _measurable(self, used: IntArray, amounts: FloatArray, own: IntpArray) -> Measured:
        """What can be measured of a step when it is over."""
        nodes, names = self._nodes, self._nodes.names
        rows: list[int] = np.flatnonzero(nodes.is_measured).tolist()
        node_names = [names[row] for row in rows]
        if not self.metrics.has_pods:
            return Measured(node_names, used[:, rows], (), (), np.zeros((2, 0), np.int64))
        pods: list[int] = np.flatnonzero(nodes.is_measured[own]).tolist()
        own_rows: list[int] = own[pods].tolist()
        return Measured(
            node_names,
            used[:, rows],
            [self.pods.names[row] for row in pods],
            [names[row] for row in own_rows],
            np.rint(amounts[:, pods]).astype(np.int64),
        )

    def _measure(self, now_s: float) -> None:
        """Measure the step that is over, if it is one that is measured."""
        if self._measured is not None:
            self.metrics.measure(self._measured, now_s, self._clock.now_ns())

    def _conclude(self, now_s: float) -> None:
        """Count the last step for the time for which it held."""
        if self._step is not None and now_s > self._step.time_s:
            self._totals.add(self._step, self._step_nodes, now_s - self._step.time_s)
            self._step = self._step._replace(time_s=now_s)

    def sample(self) -> SampleUsage:
        """The use now."""
        held_s = 0.0 if self._step is None else self._clock.monotonic_s() - self._step.time_s
        return self._totals.sample(self._step, held_s)

    def result(self) -> RunUsage:
        """The use from the start to now."""
        self._conclude(self._clock.monotonic_s())
        return self._totals.result(self._plan.every_s, self._nodes.names, list(self._owners))

    # --- memory ---

    def _relieve(self, use: IntArray, own: IntpArray, used: IntArray, now_s: float) -> None:
        """Do what kubelets do about memory until the next step."""
        nodes, pods = self._nodes, self.pods
        short = np.flatnonzero(nodes.is_there & (used > nodes.usable_memory))
        chosen = evicted_pods(
            use,
            pods.column("memory_request"),
            pods.column("priority"),
            own,
            nodes.usable_memory,
            checks=max(int(self._plan.every_s // CHECK_S), 1),
        )
        rows: list[int] = chosen.tolist()
        owners: list[int] = pods.column("owner")[chosen].tolist()
        names = [pods.names[row] for row in rows]
        for slot in short.tolist():
            if slot not in self._short_s:
                self._report_pressure(slot, is_short=True)
            self._short_s[slot] = now_s
        for slot, last_s in list(self._short_s.items()):
            if now_s - last_s >= TRANSITION_S:
                del self._short_s[slot]
                self._report_pressure(slot, is_short=False)
        for name, owner in zip(names, owners, strict=True):
            self._totals.evicted(owner)
            self._evict(name)

    def _evict(self, name: PodName) -> None:
        now = whole_seconds(self._clock.now_ns())

        def failed(document: JsonObject) -> JsonObject:
            status = {"phase": "Failed", "reason": "Evicted", "message": _EVICTED}
            document = {**document, "status": {**document.get("status", {}), **status}}
            return with_condition(document, {**_DISRUPTED, "lastTransitionTime": now})

        with suppress(ApiError):  # It may be gone already.
            self._store.change(PODS, name.namespace, name.name, failed, subresource="status")

    def _report_pressure(self, slot: int, *, is_short: bool) -> None:
        enough = "Insufficient" if is_short else "Sufficient"
        now = whole_seconds(self._clock.now_ns())
        condition: JsonObject = {
            "type": _PRESSURE,
            "status": "True" if is_short else "False",
            "reason": f"KubeletHas{enough}Memory",
            "message": f"kubelet has {enough.lower()} memory available",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        with suppress(ApiError):
            self._store.change(
                NODES,
                "",
                self._nodes.names[slot],
                lambda node: with_condition(node, condition),
                subresource="status",
            )
