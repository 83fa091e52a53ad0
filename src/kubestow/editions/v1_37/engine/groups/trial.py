"""Places the members of a group, or of a tree, on the snapshot and undoes it (spec 12 §15.2-§15.4).

    evaluate(node, nodes)      the best of its placements, or why there is none
      └─ try_on(node, placement)
           ├─ a group: its members one by one, asking after each whether it can still be placed
           └─ a composite group: evaluate(part, nodes of the placement), one part after the other;
              what was found for a part is held while the next ones are tried

Members have neither PostFilter nor Permit. Everything is undone in reverse order.
"""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np

from kubestow.api.group import TreeNode
from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.cache.trial import SnapshotTrial
from kubestow.editions.v1_37.engine.groups.tree import (
    Findings,
    GroupCycleV137,
    GroupFinding,
    PartFinding,
    Tree,
    placed,
)
from kubestow.editions.v1_37.groups.state import GroupsV137
from kubestow.editions.v1_37.groups.trial import WholeTrial
from kubestow.engine.decide import Decider
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.evaluation import PlainEvaluation
from kubestow.engine.groups.outcome import GROUP_UNSCHEDULABLE, MemberOutcome
from kubestow.engine.groups.trial import GroupTrials, failed_by
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.observer import DecisionListener, Observer, callers
from kubestow.engine.placing import as_misfit
from kubestow.errors import CacheError, PluginError
from kubestow.framework.faults import fault_status
from kubestow.framework.group_cycle import Assignments, GroupCycle, GroupPlacement
from kubestow.framework.handle import Nominator
from kubestow.framework.metrics import RESERVE
from kubestow.framework.placements import generate_placements, score_placements
from kubestow.framework.plugin import PlacedMember
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.runner import run_filters_with_nominated, run_reserve
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import SimulatedNode
from kubestow.queue import QueuedPod

if TYPE_CHECKING:
    from kubestow.engine.batching import Batches

PLACEMENT_FEASIBLE = "PlacementFeasible"


class TreeTrials(GroupTrials):
    """`has_placements`: the gate TopologyAwareWorkloadScheduling is on."""

    def __init__(
        self,
        groups: GroupsV137,
        snapshot: Snapshot,
        decider: Decider,
        nominator: Nominator,
        metrics: SchedulerMetrics,
        listeners: Sequence[DecisionListener] = (),
        observers: Sequence[Observer] = (),
        *,
        has_placements: bool,
        batches: "Batches | None" = None,
    ) -> None:
        super().__init__(
            snapshot, decider, nominator, metrics, listeners, observers, batches=batches
        )
        self._groups = groups
        self._has_placements = has_placements
        self._on_asked = callers(observers, Observer.placement_asked)
        self._on_generated = callers(observers, Observer.placements_generated)
        self._on_scored = callers(observers, Observer.placements_scored)

    def run_tree(self, tree: Tree, cycle: GroupCycleV137) -> Findings:
        """Try all members; the snapshot is as before afterwards."""
        self._decider.group_cycle = cycle
        try:
            findings = _TreeTrial(self, tree, cycle).evaluate(tree.root, None)
        finally:
            self._decider.group_cycle = None
            cycle.turn_to(tree.root)
        root = findings[tree.root]
        if root.status is None and not root.has_placed:
            root.fail(GROUP_UNSCHEDULABLE)
        return findings

    def passes(self, tree: Tree, cycle: GroupCycleV137, members: Sequence[PlacedMember]) -> bool:
        """Whether these members fit on their nodes, one beside the other, as the snapshot is."""
        with self.reverted(tree.profile, cycle) as (trial, kept):
            for pod, node_name in members:
                decision = Decision(pod, tree.profile.name, self._snapshot.names)
                evaluation = PlainEvaluation(tree.profile, pod, self._snapshot)
                evaluation.state.group_cycle = cycle
                decision.state = evaluation.state
                row = self._snapshot.row_of(node_name)
                outcome = evaluation.pre_filter()
                names = outcome.node_names
                if row is None or outcome.status is not None:
                    return False
                if names is not None and node_name not in names:
                    return False
                status = run_filters_with_nominated(
                    tree.profile,
                    evaluation.state,
                    pod,
                    SimulatedNode(self._snapshot, row),
                    self._nominator.nominated_pods_for_node(node_name),
                )
                if status is not None:
                    return False
                assumed = pod.assigned_to(node_name)
                if self.assume(tree.profile, decision, assumed, cycle, trial) is not None:
                    return False
                kept.append((decision, assumed))
        return True

    # --- one member ---

    def try_one(
        self, profile: Profile, queued_pod: QueuedPod, cycle: GroupCycle, trial: SnapshotTrial
    ) -> MemberOutcome:
        decision = self._decide(profile, queued_pod, cycle)
        if decision.status is not None:
            return MemberOutcome(queued_pod, decision, decision.status, decision.nomination)
        assumed = queued_pod.pod_info.assigned_to(decision.node_name)
        failed = self.assume(profile, decision, assumed, cycle, trial)
        if failed is not None:
            return MemberOutcome(queued_pod, decision, failed, CLEAR_NOMINATION)
        return MemberOutcome(
            queued_pod, decision, None, node_name=decision.node_name, assumed=assumed
        )

    def assume(
        self,
        profile: Profile,
        decision: Decision,
        pod: PodInfo,
        cycle: GroupCycle,
        trial: SnapshotTrial,
    ) -> Status | None:
        """Put the member on its node and reserve; what failed."""
        state, node_name = decision.state, pod.pod.spec.node_name
        try:
            trial.add(pod)
        except CacheError as error:
            return Status.from_error(error)
        cycle.assume(pod.pod)
        self._nominator.delete(pod.pod)
        state.timer.resume()
        failed = run_reserve(profile, state, pod, node_name)
        state.meter.point_ended(RESERVE, failed)
        if failed is None:
            return None
        self._give_back(profile, cycle, decision, pod)
        trial.remove(pod)
        return as_misfit(node_name, failed)

    @contextmanager
    def reverted(
        self, profile: Profile, cycle: GroupCycle
    ) -> Generator[tuple[SnapshotTrial, list[tuple[Decision, PodInfo]]]]:
        """A trial, and the members that were assumed in it: all is given back at the end."""
        trial = WholeTrial(self._snapshot)
        kept: list[tuple[Decision, PodInfo]] = []
        try:
            yield trial, kept
        finally:
            for decision, pod in reversed(kept):
                self._give_back(profile, cycle, decision, pod)
            trial.undo()

    # --- whether a group can be placed ---

    def ask(
        self, profile: Profile, cycle: GroupCycleV137, scheduled_count: int, remaining_count: int
    ) -> Status | None:
        answer: Status | None = None
        for plugin in profile.placement_feasible:
            try:
                answer = plugin.placement_feasible(cycle, scheduled_count, remaining_count)
            except BaseException as error:  # A fault in one plugin must not stop the scheduler.
                fault = fault_status(error, plugin_name(plugin), PLACEMENT_FEASIBLE)
                text = f"failed to evaluate placement feasibility: {fault.as_error()}"
                answer = Status.from_error(PluginError(text))
            if answer is not None and answer.code != Code.WAIT:
                break
        if cycle.runs_post_filter:
            for call in self._on_asked:
                call(cycle.node, scheduled_count, remaining_count, answer)
        return answer

    # --- placements ---

    def placements_of(
        self, profile: Profile, cycle: GroupCycleV137, parent: GroupPlacement | None
    ) -> Sequence[GroupPlacement] | Status:
        if parent is None:
            parent = GroupPlacement("", np.arange(len(self._snapshot)))
        # The name is that of a value, not of the parent's.
        parent = parent._replace(name="")
        meter = self._metrics.start_group_point(profile.name)
        placements = generate_placements(profile, cycle, parent, meter.plugin_ended)
        meter.generated(placements if isinstance(placements, Status) else None)
        if not isinstance(placements, Status):
            self._metrics.placements_generated(profile.name, len(placements))
        if cycle.runs_post_filter:
            for call in self._on_generated:
                call(placements, self._snapshot.names, self._part(cycle))
        return placements

    def best_of(
        self,
        profile: Profile,
        cycle: GroupCycleV137,
        possible: Sequence[tuple[GroupPlacement, Findings]],
    ) -> Findings | Status:
        """The findings on the placement with the best score, the first of several."""
        if len(possible) == 1:
            return possible[0][1]
        candidates = [
            Assignments(
                placement,
                [
                    member.queued_pod.pod_info
                    for member in placed(self._groups, cycle.node, findings)
                ],
            )
            for placement, findings in possible
        ]
        meter = self._metrics.start_group_point(profile.name)
        try:
            totals = score_placements(profile, cycle, candidates, meter.plugin_ended)
        except PluginError as error:
            status = Status.from_error(error)
            meter.scored(status)
            return status
        meter.scored(None)
        if cycle.runs_post_filter:
            for call in self._on_scored:
                call(candidates, totals, self._part(cycle))
        return possible[totals.total.index(max(totals.total))][1]

    def _part(self, cycle: GroupCycleV137) -> TreeNode | None:
        """The part of the tree that is tried; None if there is only one."""
        return cycle.node if cycle.root.is_composite else None

    # --- for the trial of a tree ---

    @property
    def groups(self) -> GroupsV137:
        return self._groups

    @property
    def has_placements(self) -> bool:
        return self._has_placements

    def now_s(self) -> float:
        return self._metrics.now_s()

    def evaluated(self, profile: Profile, started_s: float, *, is_feasible: bool) -> None:
        self._metrics.placement_evaluated(profile.name, started_s, is_feasible=is_feasible)

    def is_all(self, placement: GroupPlacement | None) -> bool:
        return placement is None or len(placement.rows) == len(self._snapshot)

    def tried(self, found: PartFinding, placement: GroupPlacement | None) -> None:
        for call in self._on_tried:
            call(found.outcome, placement)


class _TreeTrial:
    """One run over a tree."""

    def __init__(self, trials: TreeTrials, tree: Tree, cycle: GroupCycleV137) -> None:
        self._trials = trials
        self._groups = trials.groups
        self._tree = tree
        self._profile = tree.profile
        self._cycle = cycle

    def evaluate(self, node: TreeNode, parent: GroupPlacement | None) -> Findings:
        """The findings on the best placement of the part within the nodes of its parent."""
        cycle = self._cycle
        if not self._trials.has_placements:
            return self._try_on(node, None)
        cycle.turn_to(node)
        placements = self._trials.placements_of(self._profile, cycle, parent)
        if isinstance(placements, Status):
            return {node: PartFinding(GroupFinding(placements))}
        tried: list[Findings] = []
        for placement in placements:
            started_s = self._trials.now_s()
            findings = self._try_on(node, placement)
            status = findings[node].status
            self._trials.evaluated(self._profile, started_s, is_feasible=status is None)
            if status is not None and status.code == Code.ERROR:
                return {node: findings[node]}
            tried.append(findings)
        possible = [
            (placement, findings)
            for placement, findings in zip(placements, tried, strict=True)
            if findings[node].status is None
        ]
        if not possible:
            first = tried[0]
            first[node].fail(_no_placement(first[node].status, len(tried)))
            return first
        cycle.turn_to(node)
        best = self._trials.best_of(self._profile, cycle, possible)
        return {node: PartFinding(GroupFinding(best))} if isinstance(best, Status) else best

    def _try_on(self, node: TreeNode, placement: GroupPlacement | None) -> Findings:
        cycle = self._cycle
        cycle.turn_to(node)
        before = cycle.placement
        cycle.placement = None if self._trials.is_all(placement) else placement
        try:
            if node.is_composite:
                return self._try_parts(node, placement)
            found = self._try_members(node)
            if cycle.runs_post_filter:
                self._trials.tried(found, placement)
            return {node: found}
        finally:
            cycle.placement = before

    def _try_members(self, node: TreeNode) -> PartFinding:
        """Try the members of a group one by one."""
        trials, profile, cycle = self._trials, self._profile, self._cycle
        waiting = self._tree.waiting.get(node.key, ())
        known = cycle.by_key.get(node.key)
        scheduled = 0 if known is None else known.scheduled_count
        answer = trials.ask(profile, cycle, scheduled, len(waiting))
        if _ends(answer):
            assert answer is not None, node
            if answer.is_rejected:
                answer = GROUP_UNSCHEDULABLE.with_reasons(*answer.all_reasons)
            return PartFinding(GroupFinding(answer))
        members: list[MemberOutcome] = []
        misfit: MemberOutcome | None = None
        has_placed = False
        with trials.reverted(profile, cycle) as (trial, kept):
            for queued_pod in waiting:
                member = trials.repeat(profile, queued_pod, misfit, cycle)
                if member is None:
                    member = trials.try_one(profile, queued_pod, cycle, trial)
                members.append(member)
                misfit = None
                if member.assumed is not None:
                    kept.append((member.decision, member.assumed))
                    scheduled += 1
                    has_placed = True
                elif member.status is not None and not member.status.is_rejected:
                    return PartFinding(GroupFinding(failed_by(member.status)), members)
                else:
                    misfit = member
                answer = trials.ask(profile, cycle, scheduled, len(waiting) - len(members))
                if _ends(answer):
                    break
        return PartFinding(GroupFinding(_at_the_end(answer)), members, has_placed=has_placed)

    def _try_parts(self, node: TreeNode, placement: GroupPlacement | None) -> Findings:
        """Try the parts of a composite group one after the other."""
        parts = self._groups.children_of(node)
        findings: Findings = {}
        answer = self._ask_parts(node, 0, len(parts))
        placed_count, has_placed = 0, False
        with ExitStack() as held:
            for position, part in enumerate(parts):
                if _ends(answer):
                    break
                found = self.evaluate(part, placement)
                findings |= found
                status = found[part].status
                if status is None:
                    placed_count += 1
                    has_placed |= found[part].has_placed
                    held.enter_context(self._held(part, found))
                elif status.code == Code.ERROR:
                    text = "composite pod group evaluation failed due to child error: "
                    error = Status.from_error(PluginError(f"{text}{status.as_error()}"))
                    findings[node] = PartFinding(GroupFinding(error))
                    return findings
                answer = self._ask_parts(node, placed_count, len(parts) - position - 1)
        self._cycle.turn_to(node)
        findings[node] = PartFinding(GroupFinding(_at_the_end(answer)), has_placed=has_placed)
        return findings

    def _ask_parts(self, node: TreeNode, placed_count: int, remaining_count: int) -> Status | None:
        self._cycle.turn_to(node)
        return self._trials.ask(self._profile, self._cycle, placed_count, remaining_count)

    @contextmanager
    def _held(self, part: TreeNode, findings: Findings) -> Generator[None]:
        """Show the members of a part where they were placed."""
        trials, profile, cycle = self._trials, self._profile, self._cycle
        with trials.reverted(profile, cycle) as (trial, kept):
            for member in placed(self._groups, part, findings):
                assert member.assumed is not None, member
                if trials.assume(profile, member.decision, member.assumed, cycle, trial) is None:
                    kept.append((member.decision, member.assumed))
            yield


def _no_placement(first: Status | None, count: int) -> Status:
    """The status of a part that fits on none of its placements."""
    assert first is not None
    text = f"0/{count} placements are available, first placement status: {first.as_error()}"
    return GROUP_UNSCHEDULABLE.with_reasons(text)


def _at_the_end(answer: Status | None) -> Status | None:
    """The last answer as a result: what is not satisfied when all were tried is not possible."""
    if answer is not None and answer.code == Code.WAIT:
        return GROUP_UNSCHEDULABLE.with_reasons(*answer.reasons)
    return answer


def _ends(answer: Status | None) -> bool:
    """Whether nothing more is to be tried."""
    return answer is not None and answer.code != Code.WAIT
