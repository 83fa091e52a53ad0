"""Tries a group on each of its placements and chooses among those that fit (spec 11 §8.3, §8.4)."""

from collections.abc import Sequence

import numpy as np

from kubestow.cache.snapshot import Snapshot
from kubestow.engine.groups.collect import CollectedGroup
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.engine.groups.trial import GroupTrials
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.observer import Observer, callers
from kubestow.errors import PluginError
from kubestow.framework.group_cycle import Assignments, GroupCycle, GroupPlacement
from kubestow.framework.placements import PlacementTotals, generate_placements, score_placements
from kubestow.framework.status import Code, Status


class PlacementTrials:
    def __init__(
        self,
        snapshot: Snapshot,
        trials: GroupTrials,
        metrics: SchedulerMetrics,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._snapshot = snapshot
        self._trials = trials
        self._metrics = metrics
        self._on_generated = callers(observers, Observer.placements_generated)
        self._on_scored = callers(observers, Observer.placements_scored)

    def run(self, collected: CollectedGroup, cycle: GroupCycle) -> GroupOutcome:
        """The result on the best placement; if none fits, that on the first one tried."""
        placements = self.generate(collected, cycle)
        if isinstance(placements, Status):
            return GroupOutcome((), placements)
        outcomes: list[GroupOutcome] = []
        for placement in placements:
            is_next_tier = placement.tier > placements[len(outcomes) - 1].tier
            if outcomes and is_next_tier and any(map(_is_possible, outcomes)):
                break
            outcome = self._trials.run(collected, cycle, placement)
            if outcome.status is not None and outcome.status.code == Code.ERROR:
                return outcome
            outcomes.append(outcome)
        return self.choose(collected, cycle, placements[: len(outcomes)], outcomes)

    def generate(
        self, collected: CollectedGroup, cycle: GroupCycle
    ) -> Sequence[GroupPlacement] | Status:
        """The placements to try, or why there is none."""
        parent = GroupPlacement("", np.arange(len(self._snapshot)))
        meter = self._metrics.start_group_point(collected.profile.name)
        placements = generate_placements(collected.profile, cycle, parent, meter.plugin_ended)
        meter.generated(placements if isinstance(placements, Status) else None)
        if cycle.runs_post_filter:
            for call in self._on_generated:
                call(placements, self._snapshot.names)
        return placements

    def choose(
        self,
        collected: CollectedGroup,
        cycle: GroupCycle,
        placements: Sequence[GroupPlacement],
        outcomes: Sequence[GroupOutcome],
    ) -> GroupOutcome:
        possible = [
            (placement, outcome)
            for placement, outcome in zip(placements, outcomes, strict=True)
            if _is_possible(outcome)
        ]
        if not possible:
            return _on_none(outcomes)
        if len(possible) == 1:
            return possible[0][1]
        candidates = [_assignments(*pair) for pair in possible]
        try:
            totals = self.score(collected, cycle, candidates)
        except PluginError as error:
            return GroupOutcome((), Status.from_error(error))
        # Upstream breaks ties at random; here the first wins, so that runs can be repeated.
        return possible[totals.total.index(max(totals.total))][1]

    def score(
        self, collected: CollectedGroup, cycle: GroupCycle, candidates: Sequence[Assignments]
    ) -> PlacementTotals:
        """The totals of the placements on which the group fits."""
        meter = self._metrics.start_group_point(collected.profile.name)
        try:
            totals = score_placements(collected.profile, cycle, candidates, meter.plugin_ended)
        except PluginError as error:
            meter.scored(Status.from_error(error))
            raise
        meter.scored(None)
        if cycle.runs_post_filter:
            for call in self._on_scored:
                call(candidates, totals)
        return totals


def _is_possible(outcome: GroupOutcome) -> bool:
    return outcome.status is None or outcome.is_waiting


def _on_none(outcomes: Sequence[GroupOutcome]) -> GroupOutcome:
    first = outcomes[0]
    assert first.status is not None, first
    text = (
        f"0/{len(outcomes)} placements are available, "
        f"first placement status: {first.status.as_error()}"
    )
    return GroupOutcome(first.members, Status.unschedulable(text))


def _assignments(placement: GroupPlacement, outcome: GroupOutcome) -> Assignments:
    pods = [member.queued_pod.pod_info for member in outcome.members if member.node_name]
    return Assignments(placement, pods)
