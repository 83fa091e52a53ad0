"""The course and the end of a simulated run, as rows of tables.

Every run produces it, of a scenario, a trace or one placement; what commands print, reports,
comparisons and data frames are made of it, so that each figure has one source. Everything in it is
virtual: two runs of the same input have equal results, byte for byte. Amounts are integers:
thousandths of a core for `cpu`, bytes for `memory` and `ephemeral-storage`, counts for all others.
Times are seconds from the start of the run.

Not here: how it is collected (`scenario`), what is derived from it (`figures`).
"""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kubestow.api.resources import Resources
from kubestow.notebook import html_table
from kubestow.plural import counted
from kubestow.simulator.usage.results import RunUsage, SampleUsage

FORMAT: Final = "kubestow.dev/run/v1"

# What became of a pod.
RUNNING: Final = "Running"
# Waits for a node at the end of the run.
PENDING: Final = "Pending"
GATED: Final = "Gated"
OTHER_SCHEDULER: Final = "OtherScheduler"
# Ran, and ended by itself or by the scenario.
ENDED: Final = "Ended"
PREEMPTED: Final = "Preempted"
# Lost its node: drained, failed or tainted.
EVICTED: Final = "Evicted"
# Removed before it got a node.
REMOVED: Final = "Removed"


class PodRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str
    name: str
    # What the name begins with, if the server has completed it at random.
    generate_name: str = ""
    # What made it: "Deployment/web", the name of an entry of the scenario, or nothing.
    owner: str = ""
    priority: int = 0
    requests: dict[str, int] = {}
    outcome: str
    # The last node it had.
    node: str = ""
    created_s: float
    # The first time it got a node.
    scheduled_s: float | None = None
    ended_s: float | None = None
    attempts: int = 0
    # Why it waits, if it does: the condition's reason and message.
    reason: str = ""
    message: str = ""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node, as it was at the end of the run or when it left."""

    name: str
    zone: str = ""
    # The value of a label of the user's choice, such as the pool.
    pool: str = ""
    joined_s: float = 0.0
    left_s: float | None = None
    pods: int
    allowed_pods: int
    allocatable: dict[str, int]
    requested: dict[str, int]


class Sample(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cluster at one time."""

    time_s: float
    nodes: int
    # Pods on nodes; pods in each place of the queue.
    running: int
    active: int
    backoff: int
    unschedulable: int
    gated: int
    # Since the start.
    arrived: int
    placed: int
    ended: int
    preempted: int
    evicted: int
    allocatable: dict[str, int]
    requested: dict[str, int]
    # Free, but on nodes on which no pod of this run that asks for the resource would fit
    # (docs/guides/scenarios.md).
    stranded: dict[str, int]
    # The standard deviation, over nodes, of the used share of each resource.
    imbalance: dict[str, float]
    # Of scenarios that say what pods use.
    usage: SampleUsage | UnsetType = UNSET
    # Figures of goals of rebalancing, of scenarios that follow some.
    goals: dict[str, float] | UnsetType = UNSET


class Change(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that happened to the cluster: a preemption, a node that failed, a scaling."""

    time_s: float
    kind: str
    subject: str
    detail: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Attempts that ended with the same error, as of a plugin or an extender."""

    # As `PodRow.owner`; of a pod without one, its namespace and name.
    owner: str
    message: str
    attempts: int


class RefusedPods(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods that controllers could not create, because the API server refuses them."""

    # As `PodRow.owner`.
    owner: str
    # The first one.
    message: str
    pods: int


class PlacingFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known at the end of one placement beside its rows. Pods are NAMESPACE/NAME."""

    # Pods that ran at the start, and stayed.
    running_count: int
    # Pods that ran at the start, and had to go.
    evicted: list[str] = []
    # Pods whose node is not in the cluster, with its name; they are not among those that run.
    on_missing_nodes: list[str] = []
    # By pod: the node on which others were evicted for it.
    nominated_nodes: dict[str, str] = {}


class RunResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    format: str = FORMAT
    name: str
    seed: int = 0
    # The scheduler: "default", or what the variant is called in a comparison.
    variant: str = ""
    pods: list[PodRow]
    nodes: list[NodeRow]
    samples: list[Sample]
    changes: list[Change]
    virtual_duration_s: float
    # Whether the run was ended before its time, by a person or a limit; rows are as of then.
    is_partial: bool = False
    # Changes beyond the limit of the list.
    dropped_changes: int = 0
    failed_attempts: int = 0
    # The first of them.
    failures: list[Failure] = []
    # Pods that were never created; they have no rows.
    refused_pods: int = 0
    # By owner, the first of them.
    refusals: list[RefusedPods] = []
    # Of one placement only.
    placing: PlacingFacts | UnsetType = UNSET
    # Of scenarios that say what pods use.
    usage: RunUsage | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"<RunResult: {self._caption()}>"

    def _repr_html_(self) -> str:
        rows = ((pod.namespace, pod.name, pod.outcome, pod.node, pod.message) for pod in self.pods)
        columns = ("namespace", "name", "outcome", "node", "message")
        return html_table(self._caption(), columns, rows, len(self.pods))

    def _caption(self) -> str:
        return (
            f"{self.name}, {counted(len(self.pods), 'pod')}, {counted(len(self.nodes), 'node')}, "
            f"{self.virtual_duration_s:,.0f} s of virtual time"
        )


def amounts_of(resources: Resources) -> dict[str, int]:
    """The amounts by name of the resource; those of zero are left out."""
    amounts = {
        "cpu": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        **resources.scalar,
    }
    return {name: amount for name, amount in amounts.items() if amount}
