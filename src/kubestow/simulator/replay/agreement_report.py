"""How far another scheduler agrees: verdicts, and what the plugins have to do with them."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from math import sqrt
from typing import Final

import msgspec

from kubestow.explain.difference import DecisionDifference
from kubestow.simulator.replay.judging import Agreement, AgreementFinding
from kubestow.simulator.replay.plugin_parts import PluginPart, summed

# More of each verdict are counted, but not kept.
CASES_MAX: Final = 1000
# Samples of nodes explain that best nodes are missed, up to this many standard deviations more.
_SAMPLING_DEVIATIONS: Final = 4


class RulesVerdict(StrEnum):
    """What a decision says of the rules of the other scheduler; the most telling first."""

    OTHER = "other rules"
    UNDECIDED = "undecided"  # The search for what explains it was too long.
    TIMING = "explained by timing"
    SAMPLING = "explained by sampling"
    AGREES = "agrees"


class AgreementCase(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One decision that is not the one made here.

    recorded   the node, or the message of the condition; `here` the same of the decision made here
    behind     by how much the score of its node is lower
    because    what explains it
    why        what made the difference here, for as many as were asked for
    """

    at_s: float
    pod: str
    verdict: RulesVerdict
    agreement: Agreement
    recorded: str
    here: str
    behind: int = 0
    because: str = ""
    why: DecisionDifference | None = None


class AgreementReport(msgspec.Struct, kw_only=True, rename="camel"):
    """How far two schedulers agree.

    verdicts      of decisions, how many have each
    counts        the same by agreement, on what the other scheduler must have known
    plugins       what the plugins have to do with those by other rules
    cases         all that do not agree, those by other rules first
    unseen        pods that had a node when they were first seen: nothing to compare
    """

    verdicts: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    plugins: list[PluginPart] = msgspec.field(default_factory=list[PluginPart])
    cases: list[AgreementCase] = msgspec.field(default_factory=list[AgreementCase])
    unseen: int = 0
    changes: int = 0
    duration_s: float = 0.0
    cut_at: int | None = None

    @property
    def decisions(self) -> int:
        return sum(self.verdicts.values())

    @property
    def other_rules(self) -> int:
        return self.verdicts.get(RulesVerdict.OTHER, 0)


class AgreementTally:
    """Counts decisions, and says in the end what they mean together."""

    def __init__(self) -> None:
        self._verdicts: Counter[RulesVerdict] = Counter()
        self._agreements: Counter[str] = Counter()
        self._cases: dict[RulesVerdict, list[AgreementCase]] = {
            verdict: [] for verdict in RulesVerdict
        }
        self._parts: dict[RulesVerdict, list[PluginPart]] = {
            verdict: [] for verdict in RulesVerdict
        }
        # Of decisions among a sample of the nodes: in how many the best of all nodes was not taken,
        # in how many it is expected to be left out, and the variance of that number.
        self._not_best = 0
        self._left_out = self._variance = 0.0

    def count(self, verdict: RulesVerdict) -> int:
        return self._verdicts[verdict]

    def note(
        self, case: AgreementCase, finding: AgreementFinding, against: Iterable[PluginPart]
    ) -> None:
        """`against`: the plugins that are against the node, if another one was chosen here."""
        verdict = case.verdict
        self._verdicts[verdict] += 1
        self._agreements[case.agreement.value] += 1
        if verdict is not RulesVerdict.AGREES and len(self._cases[verdict]) < CASES_MAX:
            self._cases[verdict].append(case)
        self._parts[verdict] = summed((*self._parts[verdict], *against))
        if finding.is_sampled:
            is_disputed = verdict in (RulesVerdict.SAMPLING, RulesVerdict.OTHER)
            self._not_best += is_disputed and finding.agreement is Agreement.LOWER
            share = finding.sampled / finding.feasible
            self._left_out += 1 - share
            self._variance += share * (1 - share)

    def report(self, *, unseen: int, changes: int, duration_s: float) -> AgreementReport:
        if not self._is_sampling_plausible():
            self._count_as_other(RulesVerdict.SAMPLING)
        return AgreementReport(
            verdicts={
                each.value: self._verdicts[each] for each in RulesVerdict if self._verdicts[each]
            },
            counts=dict(self._agreements),
            plugins=self._parts[RulesVerdict.OTHER],
            cases=[case for verdict in RulesVerdict for case in self._cases[verdict]],
            unseen=unseen,
            changes=changes,
            duration_s=duration_s,
        )

    def _is_sampling_plausible(self) -> bool:
        """A sample of half of the nodes leaves the best one out every other time, not always."""
        most = self._left_out + _SAMPLING_DEVIATIONS * sqrt(self._variance)
        return self._not_best <= most

    def _count_as_other(self, verdict: RulesVerdict) -> None:
        self._verdicts[RulesVerdict.OTHER] += self._verdicts.pop(verdict)
        cases = self._cases[RulesVerdict.OTHER]
        replaced = (
            msgspec.structs.replace(case, verdict=RulesVerdict.OTHER)
            for case in self._cases[verdict]
        )
        cases.extend(replaced)
        cases.sort(key=lambda case: case.at_s)
        del cases[CASES_MAX:]
        self._cases[verdict] = []
        self._parts[RulesVerdict.OTHER] = summed(
            (*self._parts[RulesVerdict.OTHER], *self._parts[verdict])
        )
