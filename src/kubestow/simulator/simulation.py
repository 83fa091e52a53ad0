"""Places a workload on a cluster, both given as documents, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Container, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from kubestow import collector
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject, object_ref
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition, is_terminal, is_terminating
from kubestow.api.requests import accounted_request
from kubestow.api.resources import Resources
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import NANOSECONDS
from kubestow.cluster.resources import NODES
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision, FitError
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.failure import REASON_SCHEDULER_ERROR
from kubestow.engine.profiles import Registry
from kubestow.notebook import html_table
from kubestow.plugins.registry import REGISTRY
from kubestow.plural import counted
from kubestow.queue import QueuedPod
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue
from kubestow.recording.recording import RecordTo
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.loading import (
    AfterFirstDecision,
    count_pods,
    load_cluster,
    make,
    pods_of,
    settle_new,
)
from kubestow.simulator.pod_owner import owner_in_files
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.results import RefusedPods, amounts_of
from kubestow.simulator.standing import NOTHING_STANDS
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.simulator.volume_controller import VolumeController

OTHER_SCHEDULER: Final = "OtherScheduler"
_RETRIED: Final = (Place.BACKOFF, Place.ERROR_BACKOFF)
# After this many attempts that fail with the same error another one is not waited for.
SAME_FAILURE_TRIES: Final = 3


class PodOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result for one pod that was waiting for a node."""

    namespace: str
    name: str
    node: str = ""
    # Scheduled, Pending, Gated when it was never tried, OtherScheduler when no profile has the
    # pod's spec.schedulerName.
    outcome: str
    reason: str = ""
    message: str = ""
    nominated_node: str = ""
    priority: int = 0
    # What made it: "Deployment/web", or nothing.
    owner: str = ""
    # What it requests: cpu in thousandths, memory and storage in bytes.
    requests: dict[str, int] = {}
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
    # Of all resources, in the units of a pod's requests.
    requested: dict[str, int] = {}
    allocatable: dict[str, int] = {}


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
    # Attempts that ended with an error, as of a plugin or an extender.
    failed_attempts: int = 0
    # Pods of workloads that the API server refuses; by owner, the first of them.
    refused_pods: int = 0
    refusals: list[RefusedPods] = []
    # Pods whose node is not in the cluster; they are not among those that run.
    on_missing_nodes: list[str] = []

    def __repr__(self) -> str:
        return f"<SimulationResult: {self._caption()}>"

    def _repr_html_(self) -> str:
        rows = ((pod.namespace, pod.name, pod.outcome, pod.node, pod.message) for pod in self.pods)
        columns = ("namespace", "name", "outcome", "node", "message")
        return html_table(self._caption(), columns, rows, len(self.pods))

    def _caption(self) -> str:
        return (
            f"{len(self.scheduled):,} of {counted(len(self.pods), 'pod')} scheduled, "
            f"{len(self.pending):,} pending, {counted(len(self.nodes), 'node')}"
        )

    @property
    def scheduled(self) -> list[PodOutcome]:
        return [pod for pod in self.pods if pod.outcome == "Scheduled"]

    @property
    def pending(self) -> list[PodOutcome]:
        return [pod for pod in self.pods if pod.outcome in ("Pending", "Gated")]

    @property
    def foreign(self) -> list[PodOutcome]:
        """Pods that wait for another scheduler."""
        return [pod for pod in self.pods if pod.outcome == OTHER_SCHEDULER]

    @property
    def has_failed(self) -> bool:
        """Whether an attempt or a binding ended with an error."""
        return self.failed_attempts > 0 or any(
            pod.reason == REASON_SCHEDULER_ERROR for pod in self.pods
        )


class Simulation:
    """One run. Create it inside a virtual-time loop, then await `run`."""

    def __init__(
        self,
        documents: Sequence[Document | JsonObject],
        config: SchedulerConfig,
        *,
        registry: Registry = REGISTRY,
        on_decision: Callable[[Decision], None] | None = None,
        seed: int = 0,
        factory: type[SchedulerFactory] = SchedulerFactory,
        gates: FeatureGates = DEFAULT_GATES,
        record: RecordTo | None = None,
        stays: bool = False,
    ) -> None:
        """`on_decision` is called with every decision, which is valid during the call only.
        `record` is a file for what the scheduler sees and decides. With `stays`, controllers act on
        nothing that was read from a server until the scheduler changes it."""
        self._clock = VirtualClock(asyncio.get_running_loop())
        self._on_decision = on_decision
        self._attempts: dict[str, int] = {}
        self._placed_ns: dict[str, int] = {}
        self._failed_attempts = 0
        # By UID, of attempts that no event in the cluster can help: the message, how often in turn.
        self._repeated: dict[str, tuple[str, int]] = {}
        self._started_ns = self._clock.now_ns()
        store = MemoryCluster(self._clock, seed=seed, gates=gates, lists_as_created=True)
        given = [each.raw if isinstance(each, Document) else each for each in documents]
        self._loaded = load_cluster(store, [*definitions_for(config, given), *documents])
        pods = pods_of(store)
        self._to_make = self._loaded.to_make
        self._refusals: list[RefusedPods] = []
        self._waiting = [pod for pod in pods if not pod.spec.node_name and not is_terminal(pod)]
        self._running = [pod for pod in pods if pod.spec.node_name and not is_terminal(pod)]
        standing = self._loaded.standing if stays else NOTHING_STANDS
        self._controllers = AfterFirstDecision(
            [
                FakeKubelets(store, self._clock, starts_pods=False, standing=standing),
                VolumeController(store, standing=standing),
                EphemeralVolumeController(store, standing=standing),
                ResourceClaimController(store, standing=standing),
            ],
            self._make_pods,
        )
        self.cluster = EmbeddedCluster(
            store,
            config,
            self._clock,
            registry=registry,
            listeners=[self._record],
            controllers=[self._controllers],
            seed=seed,
            factory=factory,
            gates=gates,
            record=record,
        )

    @property
    def made(self) -> list[Document]:
        """What controllers make of the workloads."""
        return [made.document for made in self._loaded.made]

    @property
    def waiting_count(self) -> int:
        """The number of pods to place."""
        return len(self._waiting) + count_pods(self._to_make)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Start the cluster; on leaving, stop it."""
        await settle_new(self.cluster.store, self._loaded)
        async with self.cluster.running():
            yield

    async def run(self, *, limit_s: float = LIMIT_S) -> SimulationResult:
        """Run the scheduler until nothing is left to do, or to the limit of virtual time."""
        with collector.settled(collector.SIMULATION_THRESHOLDS):
            return await self._run(limit_s)

    async def _run(self, limit_s: float) -> SimulationResult:
        async with self.running():
            has_settled = await self.settle(limit_s=limit_s)
        return self._result(has_settled)

    async def settle(self, *, limit_s: float) -> bool:
        """Wait until nothing is left to do in the running cluster; False after the limit."""
        return await self.cluster.settle(limit_s=limit_s, count_repeating=self._count_repeating)

    def _record(self, decision: Decision, queued_pod: QueuedPod) -> None:
        uid = queued_pod.uid
        self._controllers.decided()
        self._attempts[uid] = queued_pod.attempts
        if decision.is_scheduled:
            self._placed_ns[uid] = self._clock.now_ns()
        elif decision.status is not None and not decision.status.is_rejected:
            self._failed_attempts += 1
        self._note_repetition(decision, uid)
        if self._on_decision is not None:
            self._on_decision(decision)

    def _make_pods(self) -> None:
        """Create the pods that are missing of workloads as they stand."""
        known = {pod.metadata.uid for pod in pods_of(self.cluster.store)}
        self._refusals = make(self.cluster.store, self._to_make)
        self._to_make = ()
        made = [pod for pod in pods_of(self.cluster.store) if pod.metadata.uid not in known]
        self._waiting += made

    def _note_repetition(self, decision: Decision, uid: str) -> None:
        status = decision.status
        # A member of a group is tried again without an event, also if it fits and others do not.
        if not self._is_member(decision) and (status is None or isinstance(status.error, FitError)):
            self._repeated.pop(uid, None)
            return
        message, count = self._repeated.get(uid, ("", 0))
        self._repeated[uid] = (decision.message, count + 1 if message == decision.message else 1)

    def _is_member(self, decision: Decision) -> bool:
        groups = self.cluster.scheduler.cache.groups
        return groups is not None and groups.key_of(decision.pod.pod) is not None

    def _count_repeating(self) -> int:
        """Waiting pods that failed in the same way a few times: without a node, by a faulty plugin,
        or with their group."""
        queue = self.cluster.scheduler.queue
        repeated = {
            uid for uid, (_, tries) in self._repeated.items() if tries >= SAME_FAILURE_TRIES
        }
        if not isinstance(queue, SchedulingQueue):
            return len(repeated)
        return sum(
            place in _RETRIED and queued_pod.uid in repeated
            for place, queued_pod in queue.waiting()
        )

    def _result(self, has_settled: bool) -> SimulationResult:
        after = {pod.metadata.uid: pod for pod in pods_of(self.cluster.store)}
        names = {node.name for node in self.cluster.store.objects_of(NODES)}
        return SimulationResult(
            pods=[self._outcome(after.get(pod.metadata.uid, pod)) for pod in self._waiting],
            nodes=self._nodes(),
            running_count=sum(
                pod.metadata.uid in after and pod.spec.node_name in names for pod in self._running
            ),
            on_missing_nodes=[
                f"{object_ref(pod.metadata)} ({pod.spec.node_name})"
                for pod in self._running
                if pod.metadata.uid in after and pod.spec.node_name not in names
            ],
            refused_pods=sum(refusal.pods for refusal in self._refusals),
            refusals=self._refusals,
            evicted=[
                f"{pod.metadata.namespace}/{pod.metadata.name}"
                for pod in self._running
                if not is_terminating(pod)
                and (
                    pod.metadata.uid not in after
                    or after[pod.metadata.uid].metadata.deletion_timestamp
                )
            ],
            virtual_duration_s=rounded_s(self._clock.now_ns() - self._started_ns),
            has_settled=has_settled,
            failed_attempts=self._failed_attempts,
        )

    def _outcome(self, pod: Pod) -> PodOutcome:
        uid = pod.metadata.uid
        placed_ns = self._placed_ns.get(uid)
        return pod_outcome(
            pod,
            attempts=self._attempts.get(uid, 0),
            after_ns=None if placed_ns is None else placed_ns - self._started_ns,
            scheduler_names=self.cluster.scheduler.profiles,
            owner=owner_in_files(self.cluster.store, pod),
        )

    def _nodes(self) -> list[NodeOutcome]:
        scheduler = self.cluster.scheduler
        scheduler.snapshot.refresh(scheduler.cache)
        return node_outcomes(scheduler.snapshot)


def pod_outcome(
    pod: Pod,
    *,
    attempts: int,
    after_ns: int | None,
    scheduler_names: Container[str],
    owner: str,
) -> PodOutcome:
    """The result for a pod as the API shows it; `after_ns` is when it was placed, if it was."""
    condition = first_condition(pod.status.conditions, "PodScheduled")
    reason, message = (condition.reason, condition.message) if condition is not None else ("", "")
    if pod.spec.node_name:
        outcome, reason, message = "Scheduled", "", ""
    elif pod.spec.scheduler_name not in scheduler_names:
        message = f'no profile for scheduler "{pod.spec.scheduler_name}"'
        outcome, reason = OTHER_SCHEDULER, ""
    else:
        outcome = "Gated" if pod.spec.scheduling_gates else "Pending"
    return PodOutcome(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=pod.spec.node_name,
        outcome=outcome,
        reason=reason,
        message=message,
        nominated_node=pod.status.nominated_node_name,
        priority=pod.spec.priority or 0,
        owner=owner,
        requests=amounts_of(accounted_request(pod).requested),
        attempts=attempts,
        scheduled_after_s=(
            rounded_s(after_ns) if after_ns is not None and pod.spec.node_name else None
        ),
    )


def rounded_s(duration_ns: int) -> float:
    """To the millisecond: virtual time advances a few nanoseconds with each step."""
    return round(duration_ns / NANOSECONDS, 3)


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
        requested=amounts_of(requested),
        allocatable=amounts_of(allocatable),
    )
