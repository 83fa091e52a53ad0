"""What a policy comes to, as a value."""

from typing import Final, Literal

import msgspec

from kubestow.simulator.rebalance.plan import API_VERSION

KIND: Final = "PolicyJudgement"

# Where the replacement of an evicted pod is: on another node, on the same one, or on none.
Outcome = Literal["moved", "returned", "waits"]


class JudgedEviction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An eviction of the policy. `message`: why the replacement waits."""

    plugin: str
    pod: str  # namespace and name
    owner: str
    node: str
    outcome: Outcome
    to_node: str = ""
    message: str = ""


class JudgedRound(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One run of the descheduler on what the run before left.

    refused   evictions that disruption budgets do not allow
    failed    pods that have failed and are deleted; none is placed in their stead
    """

    number: int
    evictions: tuple[JudgedEviction, ...]
    refused: int = 0
    failed: int = 0
    figure_after: float | None = None

    def count(self, outcome: Outcome) -> int:
        return sum(eviction.outcome == outcome for eviction in self.evictions)


class PolicyJudgement(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """What a policy would do, round after round.

    settles_after   after this many rounds nothing is left to evict; absent if it goes on
    goal, figure_*  with a goal: its figure before the first round
    notes           what of the policy is not judged
    """

    api_version: str = API_VERSION
    kind: str = KIND
    rounds: tuple[JudgedRound, ...]
    settles_after: int | None = None
    goal: str = ""
    unit: str = ""
    figure_before: float | None = None
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        return sum(each.count(outcome) for each in self.rounds)

    @property
    def eviction_count(self) -> int:
        return sum(len(each.evictions) for each in self.rounds)
