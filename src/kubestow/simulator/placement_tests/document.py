"""The YAML form of a placement test, as structs; `placement_test.schema.json` is made of them.

Steps of `given` are those of scenarios, without times. Field names and what they mean are described
in docs/guides/placement-tests.md. Fields that are not here are refused.

Not here: reading files, checks between fields (`reading`), how expectations are judged (`judge`).
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from kubestow.simulator.defaults import LARGEST_SEED
from kubestow.simulator.scenario.document import (
    API_VERSION,
    Duration,
    Kubelets,
    Manifest,
    NodeEntry,
    Nodes,
    Part,
    Pods,
    StepEntry,
)

KIND: Final = "PlacementTest"
# What is tested has this name, unless files are named one by one.
SUFFIX: Final = ".placement.yaml"
Count = Annotated[int, Meta(ge=0)]
# A label of nodes.
TopologyKey = Annotated[str, Meta(min_length=1, examples=["topology.kubernetes.io/zone"])]
GangState = Literal["whole", "absent", "whole or absent"]


# --- Expectations -------------------------------------------------------------------------------


class PlacedEntry(Part, frozen=True, kw_only=True):
    """Pods have a node, and workloads have as many pods as they ask for."""

    pods: Pods | None = None
    # From the creation of each pod to when it got its node.
    within: Duration | None = None
    # At least this many have a node, instead of all.
    at_least: Count | None = None


class PendingEntry(Part, frozen=True, kw_only=True):
    """Pods wait for a node."""

    pods: Pods | None = None
    # One of the reasons of nodes in the message, such as "Insufficient cpu".
    reason: str | None = None
    # Exactly this many wait, instead of all.
    count: Count | None = None


class OnNodesEntry(Part, frozen=True, kw_only=True):
    """Pods that have a node are on some of the nodes; or, of `neverOn`, were on none of them."""

    pods: Pods | None = None
    nodes: Nodes


class SpreadEntry(Part, frozen=True, kw_only=True):
    """The numbers of pods in two domains differ by at most `maxSkew`."""

    pods: Pods
    over: TopologyKey
    max_skew: Annotated[int, Meta(ge=0)] = 1
    # The nodes whose domains count; without it those that are ready and open.
    nodes: Nodes | None = None


class TogetherEntry(Part, frozen=True, kw_only=True):
    """All pods are in one domain."""

    pods: Pods
    over: TopologyKey = "kubernetes.io/hostname"


class ApartEntry(Part, frozen=True, kw_only=True):
    """No two of the pods are in one domain; or none is in a domain with one of `others`."""

    pods: Pods
    over: TopologyKey = "kubernetes.io/hostname"
    others: Pods | None = msgspec.field(default=None, name="from")


class EvictedEntry(Part, frozen=True, kw_only=True):
    """Pods that lost their node since the start: at most this many."""

    pods: Pods | None = None
    at_most: Count = 0


class HeadroomEntry(Part, frozen=True, kw_only=True):
    """This many copies of what the manifests have fit besides."""

    at_least: Annotated[int, Meta(ge=1)]
    # A file, or manifests.
    of: str | list[Manifest]


class GangsEntry(Part, frozen=True, kw_only=True):
    """Groups of pods have the members they need on nodes, or none of them."""

    name: str | None = None
    namespace: str | None = None
    are: GangState = "whole or absent"


class BudgetEntry(Part, frozen=True, kw_only=True):
    """Disruption budgets had the healthy pods they ask for, from when they first had them."""

    name: str | None = None
    namespace: str | None = None


class MessageEntry(Part, frozen=True, kw_only=True):
    """The condition of each waiting pod has this text in its message."""

    pods: Pods | None = None
    contains: Annotated[str, Meta(min_length=1)]


class ExpectEntry(Part, frozen=True, kw_only=True):
    """What must hold; exactly one field is given."""

    # "all", what made the pods (Deployment/web), or more about it.
    placed: str | PlacedEntry | None = None
    pending: str | PendingEntry | None = None
    on: OnNodesEntry | None = None
    never_on: OnNodesEntry | None = None
    spread: SpreadEntry | None = None
    together: str | TogetherEntry | None = None
    apart: str | ApartEntry | None = None
    # "none", or more about it. By preemption, a drain, a taint or the loss of a node.
    evicted: Literal["none"] | EvictedEntry | None = None
    # Evicted by the scheduler for others.
    preempted: Literal["none"] | EvictedEntry | None = None
    headroom: HeadroomEntry | None = None
    gangs: GangState | GangsEntry | None = None
    # "all", the name of a budget, or more about it.
    budget: str | BudgetEntry | None = None
    message: MessageEntry | None = None


class GivenEntry(StepEntry, frozen=True, kw_only=True):
    """A step: what a scenario can do, time that passes, or what must hold by then."""

    wait: Duration | None = None
    expect: ExpectEntry | list[ExpectEntry] | None = None


# --- The file -----------------------------------------------------------------------------------


class TestedCluster(Part, frozen=True, kw_only=True):
    """A cluster: nodes that are described, files with manifests or a saved cluster, manifests."""

    nodes: list[NodeEntry] = []
    # Relative to the test.
    files: list[str] = []
    objects: list[Manifest] = []
    # Priority classes: name and value.
    priorities: dict[str, int] = {}
    # Forget where pods run, and place all of them again.
    reschedule: bool = False


class ForEachEntry(Part, frozen=True, kw_only=True):
    """What happens to every node or every domain in turn; one of the first five is given.

    A value is `node`, `zone` or a label of nodes, such as `pool`.
    """

    fail: str | None = None
    drain: str | None = None
    upgrade: str | None = None
    leave: str | None = None
    cordon: str | None = None
    # Up to this many of them at once: 2 are all pairs, besides every single one.
    at_once: Annotated[int, Meta(ge=1, le=3)] = 1
    # Only these nodes.
    nodes: Nodes | None = None


class MatrixEntry(Part, frozen=True, kw_only=True):
    """Each combination is a case of its own."""

    # Versions of the scheduler, such as v1.36.
    editions: list[str] = []
    # Files with configurations of the scheduler; "" is the default one.
    configs: list[str] = []
    # Names of `clusters`; without it all of them.
    clusters: list[str] = []
    # Factors for the count of each entry of `nodes`.
    sizes: list[Annotated[float, Meta(gt=0, le=1000)]] = []
    # Files with values for the charts of `given`, after those that they name.
    values: list[str] = []


class PlacementTestDocument(Part, frozen=True, kw_only=True):
    """A cluster, what happens to it, and what must hold then."""

    api_version: str = API_VERSION
    kind: str = KIND
    # By default that of the file.
    name: str = ""
    cluster: TestedCluster | None = None
    # Several, by name: each is a case of its own.
    clusters: dict[str, TestedCluster] = {}
    # The scheduler: a file with its configuration, and features.
    config: str = ""
    feature_gates: list[str] = []
    kubelets: Kubelets = Kubelets()
    seed: Annotated[int, Meta(ge=0, le=LARGEST_SEED)] = 0
    given: list[GivenEntry] = []
    expect: ExpectEntry | list[ExpectEntry] = []
    matrix: MatrixEntry = MatrixEntry()
    # `node` is short for {fail: node}. One, or several: those of the first one are tried first.
    for_each: str | ForEachEntry | list[str | ForEachEntry] | None = None
    # How much virtual time a step may take until nothing is left to do.
    limit: Duration = "1h"
