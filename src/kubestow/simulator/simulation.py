"""One placement as `kubestow simulate` prints it, of the result of its run."""

from collections.abc import Callable, Iterable
from typing import Final, Self

import msgspec
from msgspec import UnsetType

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.failure import REASON_SCHEDULER_ERROR
from kubestow.engine.profiles import Registry
from kubestow.errors import InputError
from kubestow.notebook import html_table
from kubestow.plural import counted
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.results import (
    GATED,
    OTHER_SCHEDULER,
    PENDING,
    RUNNING,
    NodeRow,
    PodRow,
    RefusedPods,
    RunResult,
)
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing

SCHEDULED: Final = "Scheduled"


def place(
    documents: Iterable[Document | JsonObject],
    config: SchedulerConfig,
    registry: Registry | None = None,
    gates: FeatureGates = DEFAULT_GATES,
    *,
    limit_s: float = LIMIT_S,
    on_decision: Callable[[Decision], None] | None = None,
) -> "SimulationResult":
    """Place what waits, until nothing is left to do or to the limit of virtual time."""
    scenario = placing(documents, limit_s=limit_s)
    run = run_scenario(scenario, config, registry, gates, on_decision=on_decision)
    return SimulationResult.of(run)


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


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    """The run is at hand as `run`, and not a part of what is printed."""

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

    @classmethod
    def of(cls, run: RunResult) -> Self:
        """The result of one placement."""
        placing = run.placing
        assert not isinstance(placing, UnsetType), run.name
        nominated = placing.nominated_nodes
        result = cls(
            pods=[
                _pod_outcome(pod, nominated.get(f"{pod.namespace}/{pod.name}") or "")
                for pod in run.pods
            ],
            nodes=[_node_outcome(node) for node in run.nodes],
            running_count=placing.running_count,
            evicted=placing.evicted,
            virtual_duration_s=run.virtual_duration_s,
            has_settled=not run.is_partial,
            failed_attempts=run.failed_attempts,
            refused_pods=run.refused_pods,
            refusals=run.refusals,
            on_missing_nodes=placing.on_missing_nodes,
        )
        vars(result)["run"] = run
        return result

    @property
    def run(self) -> RunResult:
        """What reports and data frames are made of; InputError if the result has lost it."""
        run = vars(self).get("run")
        if run is None:
            raise InputError("the result was not made by a simulation, so it has no rows")
        return run

    def __reduce__(self) -> tuple[Callable[[RunResult], "SimulationResult"], tuple[RunResult]]:
        return SimulationResult.of, (self.run,)

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
        return [pod for pod in self.pods if pod.outcome == SCHEDULED]

    @property
    def pending(self) -> list[PodOutcome]:
        return [pod for pod in self.pods if pod.outcome in (PENDING, GATED)]

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


def _pod_outcome(row: PodRow, nominated_node: str) -> PodOutcome:
    is_placed = row.outcome == RUNNING
    # A pod that was placed and had to go waits again.
    waits_as = row.outcome if row.outcome in (GATED, OTHER_SCHEDULER) else PENDING
    return PodOutcome(
        namespace=row.namespace,
        name=row.name,
        node=row.node if is_placed else "",
        outcome=SCHEDULED if is_placed else waits_as,
        reason=row.reason,
        message=row.message,
        nominated_node=nominated_node,
        priority=row.priority,
        owner=row.owner,
        requests=row.requests,
        attempts=row.attempts,
        scheduled_after_s=row.scheduled_s if is_placed else None,
    )


def _node_outcome(row: NodeRow) -> NodeOutcome:
    requested, allocatable = row.requested, row.allocatable
    return NodeOutcome(
        name=row.name,
        zone=row.zone,
        pods=row.pods,
        allowed_pods=row.allowed_pods,
        cpu_milli_requested=requested.get("cpu", 0),
        cpu_milli_allocatable=allocatable.get("cpu", 0),
        memory_bytes_requested=requested.get("memory", 0),
        memory_bytes_allocatable=allocatable.get("memory", 0),
        requested=requested,
        allocatable=allocatable,
    )
