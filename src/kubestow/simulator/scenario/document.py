"""The YAML form of a scenario, as structs; `scenario.schema.json` is made of them.

Field names and what they mean are described in docs/guides/scenarios.md. Fields that are not here
are refused.

Not here: reading files, checks between fields (`reading`), what is done with it (`arrivals`,
`actions`).
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from kubestow.simulator.defaults import LARGEST_SEED, NODES_PER_CLUSTER

API_VERSION: Final = "kubestow.dev/v1alpha1"
KIND: Final = "Scenario"
# Of an entry of arrivals: with a number behind it, a valid name of a pod.
NAME: Final = "^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$"

# As Go writes durations, or a number of seconds.
Duration = Annotated[
    str | int | float, Meta(description="A duration such as 90s, 10m or 1h30m, or seconds.")
]
Manifest = Annotated[dict[str, Any], Meta(description="A Kubernetes object.")]


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of all parts: unknown fields are refused."""


# --- Numbers ------------------------------------------------------------------------------------


class Uniform(Part, frozen=True, kw_only=True):
    """Any duration between two is equally likely."""

    min: Duration
    max: Duration


class LogNormal(Part, frozen=True, kw_only=True):
    """Many short durations and a few long ones, as of batch jobs."""

    median: Duration
    # The standard deviation of the logarithm.
    sigma: Annotated[float, Meta(ge=0, le=10)]


class Distribution(Part, frozen=True, kw_only=True):
    """A random duration; exactly one field is given."""

    # The mean.
    exponential: Duration | None = None
    uniform: Uniform | None = None
    log_normal: LogNormal | None = None
    # One of these, each equally likely.
    choice: list[Duration] | None = None


RandomDuration = Duration | Distribution


# --- Entries ------------------------------------------------------------------------------------


class TimingEntry(Part, frozen=True, kw_only=True):
    """When something happens; one of the first three fields is given."""

    # Times from the start of the run.
    at: Duration | list[Duration] | None = None
    # Regularly, beginning with `from`.
    every: Duration | None = None
    # At random, on average this often: "30/h", "2/24h".
    poisson: Annotated[str, Meta(examples=["30/h"])] | None = None
    # The first and the last time of `every` and `poisson`.
    from_: Duration = msgspec.field(default=0, name="from")
    until: Duration | None = None
    # At most this many times.
    count: Annotated[int, Meta(ge=1)] | None = None


class ArrivalEntry(TimingEntry, frozen=True, kw_only=True):
    """Objects that are created: pods, jobs, deployments."""

    # Objects without a name are called after it: NAME-1, NAME-2, …
    name: Annotated[str, Meta(pattern=NAME)]
    # What is created; or a file with it.
    template: Manifest | None = None
    file: str | None = None
    # Instead of times: a file with a line for each arrival.
    csv: str | None = None
    # How many at each time.
    replicas: Annotated[int, Meta(ge=1, le=100_000)] = 1
    # How long pods run once they started.
    duration: RandomDuration | None = None
    # How long after its arrival an object is deleted, whether it runs or not.
    leave_after: RandomDuration | None = None


class NodeEntry(Part, frozen=True, kw_only=True):
    """Nodes that are alike."""

    name: Annotated[str, Meta(min_length=1)] = "node"
    count: Annotated[int, Meta(ge=1, le=NODES_PER_CLUSTER)] = 1
    capacity: dict[str, str | int | float] = {}
    labels: dict[str, str] = {}
    # KEY=VALUE:EFFECT or KEY:EFFECT
    taints: list[str] = []
    zones: list[str] | None = None


class NodesEntry(Part, frozen=True, kw_only=True):
    """Some nodes; without any field, all of them."""

    name: str | None = None
    # A label selector, as of kubectl.
    selector: str | None = None
    # This many of them, chosen at random.
    random: Annotated[int, Meta(ge=1)] | None = None


Nodes = str | NodesEntry


class TaintChange(Part, frozen=True, kw_only=True):
    nodes: Nodes
    # KEY=VALUE:EFFECT or KEY:EFFECT
    taints: Annotated[list[str], Meta(min_length=1)]


class ObjectEntry(Part, frozen=True, kw_only=True):
    kind: str
    # Of kinds that are not built in, or that several groups have.
    api_version: str = ""
    namespace: str = "default"
    name: str


class Scale(ObjectEntry, frozen=True, kw_only=True):
    replicas: Annotated[int, Meta(ge=0, le=100_000)]


class PodsEntry(Part, frozen=True, kw_only=True):
    """Some pods; without any field, all of them."""

    name: str | None = None
    # What made them, as KIND/NAME: Deployment/web.
    owner: str | None = None
    # A label selector, as of kubectl.
    selector: str | None = None
    # Of all namespaces, if it is not given.
    namespace: str | None = None


# A text is what made them, as KIND/NAME, or Pod/NAME.
Pods = str | PodsEntry


class Chart(Part, frozen=True, kw_only=True):
    """A Helm chart, rendered by `helm template`."""

    # A folder or a packed chart.
    path: Annotated[str, Meta(min_length=1)]
    release: str = "release"
    namespace: str = "default"
    values: str | list[str] = []
    # As of --set: path of a value → the value.
    set: dict[str, str | int | float | bool] = {}


class Rebalance(Part, frozen=True, kw_only=True):
    """Evictions by a plan of `kubestow rebalance`, each after the replacement of the last."""

    goal: Annotated[str, Meta(examples=["spread", "empty-nodes"])]
    max_moves: Annotated[int, Meta(ge=1)] = 20


class StepEntry(Part, frozen=True, kw_only=True):
    """A change of the cluster; exactly one of the fields from `cordon` on is given."""

    # Needed where chance is involved: it decides on the random numbers.
    name: str = ""
    # How long it lasts, for `cordon`, `drain`, `fail` and `taint`; else it stays. Of `upgrade`, how
    # long each node is away.
    lasts: RandomDuration | None = msgspec.field(default=None, name="for")
    cordon: Nodes | None = None
    uncordon: Nodes | None = None
    drain: Nodes | None = None
    fail: Nodes | None = None
    repair: Nodes | None = None
    leave: Nodes | None = None
    # One after the other: drained, away for a time, open again.
    upgrade: Nodes | None = None
    join: NodeEntry | None = None
    taint: TaintChange | None = None
    untaint: TaintChange | None = None
    scale: Scale | None = None
    # As the eviction API does: disruption budgets are obeyed.
    evict: Pods | None = None
    # A goal of `kubestow rebalance`, or more about it: a plan is made and carried out.
    rebalance: str | Rebalance | None = None
    # A file with a policy of the descheduler, which runs once.
    descheduler: str | None = None
    # Manifests, or a file or folder with them.
    apply: str | list[Manifest] | None = None
    # A folder, rendered by `kubectl kustomize` and applied.
    kustomize: str | None = None
    # The path of a chart, or more about it; rendered and applied.
    chart: str | Chart | None = None
    delete: ObjectEntry | None = None


class ActionEntry(StepEntry, frozen=True, kw_only=True):
    """A change of the cluster at a time. The times are those of a `TimingEntry`."""

    at: Duration | list[Duration] | None = None
    every: Duration | None = None
    poisson: Annotated[str, Meta(examples=["30/h"])] | None = None
    from_: Duration = msgspec.field(default=0, name="from")
    until: Duration | None = None
    count: Annotated[int, Meta(ge=1)] | None = None


# --- Usage --------------------------------------------------------------------------------------

Level = Annotated[
    str | int | float,
    Meta(description="A share of what a pod requests, such as 60%, or an amount, such as 300m."),
]
Share = Annotated[str | float, Meta(description="A share such as 80% or 0.8.")]


class DailyCurve(Part, frozen=True, kw_only=True):
    """A wave between two levels, with one peak in each period."""

    low: Level
    high: Level
    # The time of the day of the peak.
    peak_at: Duration = "14h"
    period: Duration = "24h"


class BurstCurve(Part, frozen=True, kw_only=True):
    """High for a while, once in each period, at a random time of its own for each pod."""

    low: Level
    high: Level
    every: Duration
    lasts: Duration = msgspec.field(name="for")


class PeakCurve(BurstCurve, frozen=True, kw_only=True):
    """As bursts, but at the same time for all pods of all curves with the same group."""

    group: str = ""


class CurveEntry(Part, frozen=True, kw_only=True):
    """Use over time; exactly one field is given."""

    constant: Level | None = None
    daily: DailyCurve | None = None
    bursts: BurstCurve | None = None
    peaks: PeakCurve | None = None


class PodCurves(Part, frozen=True, kw_only=True):
    """What some pods use; of a resource without a curve, what they request."""

    # The name of an entry of arrivals, what made them as KIND/NAME, or more about them; all pods,
    # if it is not given.
    pods: Pods | None = None
    cpu: Level | CurveEntry | None = None
    memory: Level | CurveEntry | None = None
    # How pods differ: the standard deviation of the logarithm of use.
    spread: Annotated[float, Meta(ge=0, le=3)] = 0.0
    # By how much the CPU use of a pod differs at most from minute to minute.
    noise: Share = 0.0


class Metrics(Part, frozen=True, kw_only=True):
    """What schedulers can read of the use."""

    # How often it is measured, and how much later a measurement can be read.
    every: Duration = "60s"
    delay: Duration = "30s"


class Usage(Part, frozen=True, kw_only=True):
    """What pods really use. The first curve that selects a pod holds for it."""

    curves: list[PodCurves] = []
    # How often use is computed; it holds until the next time.
    every: Duration = "30s"
    # The share of a node from which on it is hot.
    hot: Share = "80%"
    # Free memory below which a kubelet evicts pods: an amount, or a share of the node.
    eviction_hard: str = "100Mi"
    metrics: Metrics = Metrics()


class Trace(Part, frozen=True, kw_only=True):
    """Files of a trace, relative to the scenario."""

    format: Literal["csv", "openb", "alibaba2018", "azure2019"] = "csv"
    pods: Annotated[str, Meta(min_length=1)]
    nodes: str | None = None
    # What the pods used.
    usage: str | None = None


class Kubelets(Part, frozen=True, kw_only=True):
    # How long pods take to start, and at most to stop.
    start_delay: Duration = "1s"
    stop: Duration = "1s"


class ScenarioDocument(Part, frozen=True, kw_only=True):
    """A cluster, and what happens to it."""

    api_version: str = API_VERSION
    kind: str = KIND
    name: Annotated[str, Meta(min_length=1)]
    # How much virtual time is played.
    until: Duration
    seed: Annotated[int, Meta(ge=0, le=LARGEST_SEED)] = 0
    # The date at the start, as CronJobs see it: RFC 3339.
    start: str | None = None
    sample_every: Duration = "5m"
    # The label of nodes by which reports group them.
    pool_label: str = ""
    # Goals of `kubestow rebalance` whose figures samples have; those of actions always are.
    goals: list[str] = []
    # Files with manifests, relative to the scenario; and manifests.
    cluster: list[str] = []
    nodes: list[NodeEntry] = []
    objects: list[Manifest] = []
    # Priority classes: name and value.
    priorities: dict[str, int] = {}
    kubelets: Kubelets = Kubelets()
    arrivals: list[ArrivalEntry] = []
    actions: list[ActionEntry] = []
    # Further nodes and arrivals, and what they used.
    trace: Trace | None = None
    usage: Usage | None = None
