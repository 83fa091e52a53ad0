"""What a scheduler found of some nodes when it placed a pod.

The result of a run says where pods went, not why. Runs are repeatable, so a run is made a second
time with the nodes of interest known, and only these are kept.
"""

from collections.abc import Mapping, Sequence

from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.verdicts import search_end
from kubestow.queue import QueuedPod
from kubestow.simulator.comparison.task import NodeView, PodChoice


class WatchedChoices:
    """A `DecisionListener`. Of several attempts that placed a pod the last counts."""

    def __init__(self, watched: Mapping[str, Sequence[str]]) -> None:
        """`watched` are names of nodes by pod (NAMESPACE/NAME)."""
        self._watched = watched
        self.choices: dict[str, PodChoice] = {}

    def __call__(self, decision: Decision, queued_pod: QueuedPod) -> None:
        names = self._watched.get(decision.pod.key)
        if names is None or not decision.is_scheduled:
            return
        attempt = decision.freeze()
        views = {name: view_of(attempt, name) for name in dict.fromkeys((attempt.node, *names))}
        self.choices[decision.pod.key] = PodChoice(node=attempt.node, views=views)


def view_of(attempt: FrozenDecision, name: str) -> NodeView:
    """What the attempt found of the node of this name."""
    feasible = list(attempt.feasible)
    if name in feasible:
        return _scored(attempt, feasible.index(name))
    for group in attempt.rejected:
        if name in group.nodes:
            status = group.status
            return NodeView(verdict="Rejected", plugin=status.plugin, reason=status.message)
    if name not in attempt.absent.nodes:
        return NodeView(verdict="Absent")
    if attempt.restricted_by:
        return NodeView(
            verdict="Rejected",
            plugin=", ".join(attempt.restricted_by),
            reason=attempt.absent.status.message,
        )
    return NodeView(verdict="NotLookedAt", reason=search_end(attempt))


def _scored(attempt: FrozenDecision, position: int) -> NodeView:
    return NodeView(
        verdict="Feasible",
        scores={part.plugin: int(part.weighted[position]) for part in attempt.scores},
        total=None if attempt.total is None else int(attempt.total[position]),
    )
