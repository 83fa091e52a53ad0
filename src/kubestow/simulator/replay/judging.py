"""One decision of another scheduler beside the one made here, on the same cluster."""

from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.pod import Pod, first_condition
from kubestow.engine.decision import Decision
from kubestow.engine.failure import POD_SCHEDULED, REASON_UNSCHEDULABLE
from kubestow.engine.feasible import enough_nodes


class Agreement(StrEnum):
    """How a decision of the other scheduler compares with the one made here."""

    SAME = "same"
    TIE = "tie"  # another node, with the same score
    LOWER = "lower score"  # its node fits, but another one scores higher
    MISFIT = "does not fit"  # its node does not fit here
    PENDING = "pending here"  # it found a node, here none fits
    PLACED = "placed here"  # it found none, here one fits
    MESSAGE = "other reason"  # neither found one, and the messages differ


AGREEING: Final = frozenset((Agreement.SAME, Agreement.TIE))


class SeenOutcome(NamedTuple):
    """What another scheduler decided: a node, or why there is none."""

    node: str
    message: str = ""


def outcome_of(old: Pod, new: Pod) -> SeenOutcome | None:
    """What the change of a waiting pod shows; None if it shows no decision."""
    if new.spec.node_name:
        return SeenOutcome(new.spec.node_name)
    message, before = _message_of(new), _message_of(old)
    if message and message != before:
        return SeenOutcome("", message)
    nominated = new.status.nominated_node_name
    if nominated and nominated != old.status.nominated_node_name and not message:
        # Before volumes are bound or devices are written, the node is announced.
        return SeenOutcome(nominated)
    return None


def _message_of(pod: Pod) -> str:
    condition = first_condition(pod.status.conditions, POD_SCHEDULED)
    if condition is None or condition.reason != REASON_UNSCHEDULABLE:
        return ""
    return condition.message


class AgreementFinding(NamedTuple):
    """How an outcome compares.

    behind      by how much the score of its node is lower than the best
    better      how many nodes that fit have a higher score
    feasible    how many nodes fit; `sampled` how many of them are enough to end the search
    excess      how many points the better nodes have more, in sum
    here        the message of a decision for no node
    """

    agreement: Agreement
    behind: int = 0
    better: int = 0
    feasible: int = 0
    sampled: int = 0
    excess: int = 0
    here: str = ""

    @property
    def agrees(self) -> bool:
        return self.agreement in AGREEING

    @property
    def is_sampled(self) -> bool:
        """Whether the search may have left nodes out."""
        return self.sampled < self.feasible

    @property
    def is_best_of_a_sample(self) -> bool:
        """Whether all better nodes may have been left out."""
        return self.agreement is Agreement.LOWER and self.better <= self.feasible - self.sampled


def compare(decision: Decision, outcome: SeenOutcome, percentage: int) -> AgreementFinding:
    """`decision` has looked at all nodes, the other scheduler at this percentage of them."""
    if not outcome.node:
        return AgreementFinding(
            _of_message(decision, outcome.message),
            feasible=decision.feasible_count,
            here=decision.message,
        )
    if not decision.is_scheduled:
        return AgreementFinding(Agreement.PENDING, here=decision.message)
    feasible = decision.feasible_count
    sampled = min(enough_nodes(decision.nodes_to_find, percentage), feasible)
    if decision.node_name == outcome.node or decision.scores is None:
        # One node fits, or it is the nominated one, which is tried alone.
        is_same = decision.node_name == outcome.node
        return AgreementFinding(
            Agreement.SAME if is_same else Agreement.MISFIT, 0, 0, feasible, sampled
        )
    names = decision.node_names
    rows: list[int] = decision.feasible.tolist()
    position = {names[row]: position for position, row in enumerate(rows)}.get(outcome.node)
    if position is None:
        return AgreementFinding(Agreement.MISFIT, 0, 0, feasible, sampled)
    totals = decision.scores.total
    behind = int(totals.max() - totals[position])
    ahead = np.maximum(totals - totals[position], 0)
    return AgreementFinding(
        Agreement.LOWER if behind else Agreement.TIE,
        behind,
        int(np.count_nonzero(ahead)),
        feasible,
        sampled,
        int(ahead.sum()),
    )


def _of_message(decision: Decision, message: str) -> Agreement:
    if decision.is_scheduled:
        return Agreement.PLACED
    return Agreement.SAME if decision.message == message else Agreement.MESSAGE
