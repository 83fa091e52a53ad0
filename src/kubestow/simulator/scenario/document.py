"""The YAML form of a scenario, as structs; `scenario.schema.json` is made of them.

Field names and what they mean are described in docs/guides/scenarios.md. Fields that are not here
are refused.

Not here: reading files, checks between fields (`reading`), what is done with it (`arrivals`,
`actions`).
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

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
    count: Annotated[int, Meta(ge=1, le=10_000)] = 1
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


class ActionEntry(TimingEntry, frozen=True, kw_only=True):
    """A change of the cluster; exactly one of the fields from `cordon` on is given."""

    # Needed where chance is involved: it decides on the random numbers.
    name: str = ""
    # How long it lasts, for `cordon`, `drain`, `fail` and `taint`; else it stays.
    lasts: RandomDuration | None = msgspec.field(default=None, name="for")
    cordon: Nodes | None = None
    uncordon: Nodes | None = None
    drain: Nodes | None = None
    fail: Nodes | None = None
    repair: Nodes | None = None
    leave: Nodes | None = None
    join: NodeEntry | None = None
    taint: TaintChange | None = None
    untaint: TaintChange | None = None
    scale: Scale | None = None
    # Manifests, or a file with them.
    apply: str | list[Manifest] | None = None
    delete: ObjectEntry | None = None


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
    seed: Annotated[int, Meta(ge=0)] = 0
    # The date at the start, as CronJobs see it: RFC 3339.
    start: str | None = None
    sample_every: Duration = "5m"
    # The label of nodes by which reports group them.
    pool_label: str = ""
    # Files with manifests, relative to the scenario; and manifests.
    cluster: list[str] = []
    nodes: list[NodeEntry] = []
    objects: list[Manifest] = []
    # Priority classes: name and value.
    priorities: dict[str, int] = {}
    kubelets: Kubelets = Kubelets()
    arrivals: list[ArrivalEntry] = []
    actions: list[ActionEntry] = []
