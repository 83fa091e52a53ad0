"""What came of placement tests, as data: `-o json` prints it, and all reports are made of it.

Nothing in it is real time: the same files give the same results, byte for byte.
"""

from typing import Final, Literal

import msgspec

from kubestow.explain.explanation import ObjectPatch
from kubestow.plural import counted

FORMAT: Final = "kubestow.dev/tests/v1alpha1"
# Pods that a verdict names, and failures of a forEach that are kept with their verdicts.
PODS_NAMED: Final = 20
BROKEN_KEPT: Final = 1_000

Status = Literal["passed", "failed", "error"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts."""


class Cause(_Part, frozen=True, kw_only=True):
    """The decision behind a failed expectation, for one pod.

    source       where the manifest of the pod or of what made it is written, if that is known
    suggestion   the smallest change without deleted pods that was found, tried and helps; empty if
                 there is none
    patches      the same for programs
    commands     the same as commands of kubectl
    """

    pod: str
    decision: str
    source: str = ""
    suggestion: str = ""
    patches: tuple[ObjectPatch, ...] = ()
    commands: tuple[str, ...] = ()


class ExpectationVerdict(_Part, frozen=True, kw_only=True):
    """One expectation, judged.

    kind      the field of the expectation
    field     its path in the file
    line      its line there
    holds     whether it does
    found     what was found instead; empty if it holds
    short     the same in a few words
    pods      pods that are concerned, the first of them
    """

    kind: str
    field: str
    line: int
    expected: str
    holds: bool
    found: str = ""
    short: str = ""
    pods: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()


class BreakingFailure(_Part, frozen=True, kw_only=True):
    """A failure after which an expectation does not hold.

    name       what failed, such as "node gpu-3"
    entry      of which forEach of the test it is, from 0
    nodes      the nodes of it
    verdicts   those that do not hold
    """

    name: str
    nodes: tuple[str, ...]
    size: int
    entry: int = 0
    verdicts: tuple[ExpectationVerdict, ...]


class ForEachResult(_Part, frozen=True, kw_only=True):
    """What happened to every node or domain in turn.

    what           such as "fail: node", or several with commas
    count          how many failures were tried
    broken_count   how many of them break an expectation
    broken         these, in the order in which they were tried; at most `BROKEN_KEPT`
    smallest       one with the fewest parts, and of these with the fewest nodes
    """

    what: str
    count: int
    broken_count: int = 0
    broken: tuple[BreakingFailure, ...] = ()
    smallest: BreakingFailure | None = None
    summary: str = ""


class PodPlace(_Part, frozen=True, kw_only=True):
    """Where a pod is after all steps; without a node, why."""

    pod: str
    owner: str = ""
    node: str = ""
    message: str = ""
    source: str = ""


class PoolState(_Part, frozen=True, kw_only=True):
    """A node pool after all steps: its nodes, those with pods, and how many copies of a pod of 1
    cpu and 1Gi fit besides."""

    pool: str
    nodes: int
    used: int
    copies: int


class ClusterRoom(_Part, frozen=True, kw_only=True):
    """How much there is left; `needed` are nodes that pods wait for, None if none would help."""

    pools: tuple[PoolState, ...]
    needed: int | None = 0


class CaseResult(_Part, frozen=True, kw_only=True):
    """One case.

    name       that of the test, with the combination of the matrix
    file       the file of the test
    matrix     the combination
    verdicts   of `given` and `expect`, in their order
    error      why it could not be run; empty if it could
    pods       only for comparisons, as `room`
    """

    name: str
    file: str
    test: str
    matrix: dict[str, str] = {}
    status: Status
    verdicts: tuple[ExpectationVerdict, ...] = ()
    for_each: ForEachResult | None = None
    error: str = ""
    notes: tuple[str, ...] = ()
    pods: tuple[PodPlace, ...] = ()
    room: ClusterRoom | None = None

    @property
    def failed_verdicts(self) -> list[ExpectationVerdict]:
        """What does not hold: without failures, and after the smallest one that breaks it."""
        own = [verdict for verdict in self.verdicts if not verdict.holds]
        smallest = None if self.for_each is None else self.for_each.smallest
        return own + ([] if smallest is None else list(smallest.verdicts))


class PlacementRun(_Part, frozen=True, kw_only=True):
    """All cases, in the order of files and combinations."""

    format: str = FORMAT
    passed: int
    failed: int
    errors: int
    cases: tuple[CaseResult, ...]
    is_partial: bool = False

    @property
    def counts_text(self) -> str:
        """How many cases passed and did not, in words."""
        return f"{self.passed} passed, {self.failed} failed, {counted(self.errors, 'error')}"


def run_of(cases: list[CaseResult], *, is_partial: bool = False) -> PlacementRun:
    """The run of these cases."""
    counts = {status: 0 for status in ("passed", "failed", "error")}
    for case in cases:
        counts[case.status] += 1
    return PlacementRun(
        passed=counts["passed"],
        failed=counts["failed"],
        errors=counts["error"],
        cases=tuple(cases),
        is_partial=is_partial,
    )
