"""Places a workload on a cluster, both given as documents, in virtual time."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition, is_terminal
from kubestow.api.resources import Resources
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import NANOSECONDS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.errors import ApiError, InputError
from kubestow.plugins.registry import REGISTRY
from kubestow.queue import QueuedPod
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.simulator.volume_controller import VolumeController
from kubestow.simulator.workloads import expand_workloads

LIMIT_S: Final = 600.0


class PodOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result for one pod that was waiting for a node."""

    namespace: str
    name: str
    node: str = ""
    # Scheduled, Pending, or Gated when it was never tried.
    outcome: str
    reason: str = ""
    message: str = ""
    nominated_node: str = ""
    priority: int = 0
    attempts: int = 0
    # Seconds of virtual time from the start to the decision that placed it.
    scheduled_after_s: float | None = None


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The usage of one node at the end."""

    name: str
    zone: str = ""
    pods: int
    allowed_pods: int
    cpu_milli_requested: int
    cpu_milli_allocatable: int
    memory_bytes_requested: int
    memory_bytes_allocatable: int


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pods: list[PodOutcome]
    nodes: list[NodeOutcome]
    # Pods that were running already and stayed.
    running_count: int
    # Pods that were preempted.
    evicted: list[str]
    virtual_duration_s: float
    # False when pods were still being retried as the time limit ended the run.
    has_settled: bool

    @property
    def scheduled(self) -> list[PodOutcome]:
        return [pod for pod in self.pods if pod.outcome == "Scheduled"]

    @property
    def pending(self) -> list[PodOutcome]:
        return [pod for pod in self.pods if pod.outcome != "Scheduled"]


class Simulation:
    """One run. Create it inside a virtual-time loop, then await `run`."""

    def __init__(
        self,
        documents: Sequence[JsonObject],
        config: SchedulerConfig,
        *,
        registry: Registry = REGISTRY,
        on_decision: Callable[[Decision], None] | None = None,
        seed: int = 0,
        factory: type[SchedulerFactory] = SchedulerFactory,
    ) -> None:
        """`on_decision` is called with every decision, which is valid during the call only."""
        self._clock = VirtualClock(asyncio.get_running_loop())
        self._on_decision = on_decision
        self._attempts: dict[str, int] = {}
        self._placed_ns: dict[str, int] = {}
        self._started_ns = self._clock.now_ns()
        store = MemoryCluster(self._clock, seed=seed)
        load_cluster(store, expand_workloads(documents))
        pods = pods_of(store)
        self._waiting = [pod for pod in pods if not pod.spec.node_name and not is_terminal(pod)]
        self._running = [pod for pod in pods if pod.spec.node_name and not is_terminal(pod)]
        self.cluster = EmbeddedCluster(
            store,
            config,
            self._clock,
            registry=registry,
            listeners=[self._record],
            controllers=[
                FakeKubelets(store, self._clock, starts_pods=False),
                VolumeController(store),
                EphemeralVolumeController(store),
            ],
            seed=seed,
            factory=factory,
        )

    @property
    def waiting_count(self) -> int:
        """The number of pods to place."""
        return len(self._waiting)

    async def run(self, *, limit_s: float = LIMIT_S) -> SimulationResult:
        """Run the scheduler until nothing is left to do, or to the limit of virtual time."""
        async with self.cluster.running():
            has_settled = await self.cluster.settle(limit_s=limit_s)
        return self._result(has_settled)

    def _record(self, decision: Decision, queued_pod: QueuedPod) -> None:
        self._attempts[queued_pod.uid] = queued_pod.attempts
        if decision.is_scheduled:
            self._placed_ns[queued_pod.uid] = self._clock.now_ns()
        if self._on_decision is not None:
            self._on_decision(decision)

    def _result(self, has_settled: bool) -> SimulationResult:
        after = {pod.metadata.uid: pod for pod in pods_of(self.cluster.store)}
        return SimulationResult(
            pods=[self._outcome(after.get(pod.metadata.uid, pod)) for pod in self._waiting],
            nodes=self._nodes(),
            running_count=sum(1 for pod in self._running if pod.metadata.uid in after),
            evicted=[
                f"{pod.metadata.namespace}/{pod.metadata.name}"
                for pod in self._running
                if pod.metadata.uid not in after
                or after[pod.metadata.uid].metadata.deletion_timestamp
            ],
            virtual_duration_s=(self._clock.now_ns() - self._started_ns) / NANOSECONDS,
            has_settled=has_settled,
        )

    def _outcome(self, pod: Pod) -> PodOutcome:
        uid = pod.metadata.uid
        placed_ns = self._placed_ns.get(uid)
        return pod_outcome(
            pod,
            attempts=self._attempts.get(uid, 0),
            after_ns=None if placed_ns is None else placed_ns - self._started_ns,
        )

    def _nodes(self) -> list[NodeOutcome]:
        scheduler = self.cluster.scheduler
        scheduler.snapshot.refresh(scheduler.cache)
        return node_outcomes(scheduler.snapshot)


def pod_outcome(pod: Pod, *, attempts: int, after_ns: int | None) -> PodOutcome:
    """The result for a pod as the API shows it; `after_ns` is when it was placed, if it was."""
    condition = first_condition(pod.status.conditions, "PodScheduled")
    outcome = "Scheduled" if pod.spec.node_name else "Pending"
    if not pod.spec.node_name and pod.spec.scheduling_gates:
        outcome = "Gated"
    shown = condition if outcome != "Scheduled" else None
    return PodOutcome(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=pod.spec.node_name,
        outcome=outcome,
        reason=shown.reason if shown is not None else "",
        message=shown.message if shown is not None else "",
        nominated_node=pod.status.nominated_node_name,
        priority=pod.spec.priority or 0,
        attempts=attempts,
        scheduled_after_s=(
            after_ns / NANOSECONDS if after_ns is not None and pod.spec.node_name else None
        ),
    )


def node_outcomes(snapshot: Snapshot) -> list[NodeOutcome]:
    """The usage of every node, as of the snapshot."""
    return [
        _node_outcome(node, info.requested, info.allocatable, len(info.pods))
        for node, info in zip(snapshot.nodes, snapshot.node_infos, strict=True)
    ]


def _node_outcome(
    node: Node, requested: Resources, allocatable: Resources, pod_count: int
) -> NodeOutcome:
    return NodeOutcome(
        name=node.metadata.name,
        zone=node.metadata.labels.get("topology.kubernetes.io/zone", ""),
        pods=pod_count,
        allowed_pods=allocatable.allowed_pods,
        cpu_milli_requested=requested.milli_cpu,
        cpu_milli_allocatable=allocatable.milli_cpu,
        memory_bytes_requested=requested.memory,
        memory_bytes_allocatable=allocatable.memory,
    )


def load_cluster(store: MemoryCluster, documents: Sequence[JsonObject]) -> None:
    try:
        store.load(documents)
    except ApiError as error:
        raise InputError(f"the cluster cannot be set up: {error}") from error


def pods_of(store: MemoryCluster) -> list[Pod]:
    pods = (stored.typed for stored in store.objects_of(store.resources.of_type(Pod)))
    return [pod for pod in pods if isinstance(pod, Pod)]
