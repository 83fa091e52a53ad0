"""A plan as a value: what JSON, YAML and the table show, and what `--run` carries out."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

API_VERSION: Final = "kubestow.dev/v1alpha1"
KIND: Final = "RebalancePlan"


class EvictedPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str
    name: str
    uid: str
    owner: str  # kind and name

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class ScaledOwner(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The controller that has one replica more during a surge; `replicas` is what it has before."""

    kind: Literal["Deployment", "ReplicaSet"]
    name: str
    uid: str
    replicas: int


class WaitingPlaced(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that waited, and is placed because another left."""

    pod: str  # namespace and name
    node: str


class PlanStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An eviction, a surge, or a node that is closed to new pods or opened.

    The members of a gang are steps that follow one another with the same `gang`. They are done
    together: their times and figures are those of the whole, and which of the replacements goes to
    which of their nodes is open.

    node            the node the pod is on; the node that is closed or opened
    gang            namespace and name of the group that is evicted together
    to_node         where the replacement is placed
    waits_for_end   the replacement is placed once the pod is gone
    scaled          of a surge: the controller that brings up the replacement first
    *_at_s          seconds from the start of the plan, each step after the one before
    """

    number: int
    action: Literal["evict", "surge", "cordon", "uncordon"]
    node: str
    pod: EvictedPod | None = None
    to_node: str = ""
    gang: str = ""
    waits_for_end: bool = False
    scaled: ScaledOwner | None = None
    figure_before: float = msgspec.field(name="figureBefore")
    figure_after: float = msgspec.field(name="figureAfter")
    starts_at_s: float = msgspec.field(name="startsAtSeconds")
    ends_at_s: float = msgspec.field(name="endsAtSeconds")
    also_placed: tuple[WaitingPlaced, ...] = ()
    # The node, by its number, at which the scheduler's search begins.
    search_start: int = 0


# Steps that are done together: those of a gang, or a single one.
PlanUnit = tuple[PlanStep, ...]


def units_of(steps: Sequence[PlanStep]) -> list[PlanUnit]:
    """The steps, those of a gang together."""
    units: list[PlanUnit] = []
    for step in steps:
        if step.gang and units and units[-1][0].gang == step.gang:
            units[-1] = (*units[-1], step)
        else:
            units.append((step,))
    return units


class KeptPods(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods that stay for one reason. `examples` are the first by name."""

    reason: str
    pods: int
    nodes: int
    examples: tuple[str, ...]


class RebalancePlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What to do, in order, and what comes of it.

    kept      pods that must not be touched
    limits    what trials met: why moves that were tried do not help
    stopped   why the search ended before it was done; empty if it was
    """

    api_version: str = API_VERSION
    kind: str = KIND
    goal: str
    unit: str
    more_is_better: bool
    figure_before: float
    figure_after: float
    moves: int
    steps: tuple[PlanStep, ...]
    freed_nodes: tuple[str, ...]
    duration_s: float = msgspec.field(name="durationSeconds")
    kept: tuple[KeptPods, ...]
    limits: tuple[KeptPods, ...]
    notes: tuple[str, ...]
    trials: int
    stopped: str

    @property
    def units(self) -> list[PlanUnit]:
        return units_of(self.steps)

    @property
    def evictions(self) -> list[PlanStep]:
        return [step for step in self.steps if step.pod is not None]
