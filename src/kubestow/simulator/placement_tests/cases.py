"""What is run: a test, and the cases that its matrix makes of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.simulator.comparison.task import SchedulerVariant
from kubestow.simulator.scenario.action_reading import ReadStep
from kubestow.simulator.scenario.actions import NodeTarget

if TYPE_CHECKING:
    from kubestow.simulator.placement_tests.judged import JudgedCluster

FailureKind = Literal["fail", "drain", "upgrade", "leave", "cordon"]
# Failures of one forEach; more are refused.
FAILURES_PER_TEST: Final = 100_000


class Unmet(NamedTuple):
    """What was found where an expectation does not hold; `pods` are those that are concerned."""

    text: str
    pods: Sequence[str] = ()
    short: str = ""


# None: the expectation holds.
Judge = Callable[["JudgedCluster"], Unmet | None]


class Expectation(NamedTuple):
    """What must hold, and where that is written."""

    kind: str
    field: str
    line: int
    text: str
    judge: Judge


class CaseStep(NamedTuple):
    """One of: an action, time that passes, expectations."""

    place: str
    action: ReadStep | None = None
    wait_s: float = 0.0
    expectations: Sequence[Expectation] = ()


class ForEach(NamedTuple):
    """What happens to every node, or to the nodes with each value of a label, in turn.

    over     `node`, or the label
    noun     what one of them is called: node, zone, pool
    """

    kind: FailureKind
    over: str
    noun: str
    at_once: int
    nodes: NodeTarget
    place: str
    field: str
    line: int


class PlacementCase(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of a test's matrix."""

    name: str
    test: str
    file: str
    matrix: Mapping[str, str]
    documents: Sequence[Document]
    variant: SchedulerVariant
    gates: tuple[str, ...]
    steps: Sequence[CaseStep]
    expectations: Sequence[Expectation]
    for_each: tuple[ForEach, ...]
    start_delay_s: float
    stop_s: float
    seed: int
    limit_s: float
    # Where objects are written, by kind, namespace and name.
    sources: Mapping[tuple[str, str, str], str] = {}
    # What steps apply and another state of the files does not have.
    missing: tuple[str, ...] = ()
