"""The cycle of a group, or of a tree of groups, from its entry in the queue to its condition.

See spec 12 §15. The parts are those of the core where v1.37 does the same.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kubestow.api.group import GroupKey, TreeNode
from kubestow.api.pod import Pod
from kubestow.cache.cache import Cache
from kubestow.cache.groups import GroupMembers
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_37.engine.groups.checks import why_refused
from kubestow.editions.v1_37.engine.groups.post_filter import run_pod_group_post_filter
from kubestow.editions.v1_37.engine.groups.submit import TreeSubmitter
from kubestow.editions.v1_37.engine.groups.tree import (
    Findings,
    GroupCycleV137,
    PartFinding,
    Tree,
    completed,
)
from kubestow.editions.v1_37.engine.groups.trial import TreeTrials
from kubestow.editions.v1_37.groups.state import GroupsV137
from kubestow.editions.v1_37.groups.trial import WholeTrial
from kubestow.editions.v1_37.queue.group_queue import GroupQueue
from kubestow.editions.v1_37.queue.queued_group import QueuedGroup
from kubestow.engine.decision import CLEAR_NOMINATION, FitError
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.collect import CollectedGroup
from kubestow.engine.groups.condition import ConditionWriter
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.observer import Observer, callers
from kubestow.errors import CacheError, PluginError
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.plugin import (
    GroupNominations,
    PlacedMember,
    TriedMember,
    UnplacedGroup,
)
from kubestow.framework.profile import Profile
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod

log = logging.getLogger(__name__)


class TreeScheduler:
    """Schedules the groups that the queue returns.

    `skips` says whether a pod of a profile is no longer to be tried. `has_policies`: groups have
    preemption policies of their own.
    """

    def __init__(
        self,
        groups: GroupsV137,
        cache: Cache,
        snapshot: Snapshot,
        queue: GroupQueue,
        profiles: Mapping[str, Profile],
        trials: TreeTrials,
        submitter: TreeSubmitter,
        failures: FailureHandler,
        conditions: ConditionWriter,
        metrics: SchedulerMetrics,
        skips: Callable[[Pod, Profile], bool],
        observers: Sequence[Observer] = (),
        *,
        has_policies: bool,
    ) -> None:
        self._groups = groups
        self._cache = cache
        self._snapshot = snapshot
        self._queue = queue
        self._profiles = profiles
        self._trials = trials
        self._submitter = submitter
        self._failures = failures
        self.conditions = conditions
        self._metrics = metrics
        self._skips = skips
        self._has_policies = has_policies
        self._on_collected = callers(observers, Observer.collected)
        self._on_post_filtered = callers(observers, Observer.group_post_filtered)

    def is_member(self, queued_pod: QueuedPod) -> bool:
        return isinstance(queued_pod, QueuedGroup)

    # --- before the first member ---

    def begin(self, popped: QueuedPod) -> "TreeAttempt | None":
        """The attempt of the group; None if there is nothing to try."""
        assert isinstance(popped, QueuedGroup), popped
        waiting = self._by_group(popped.members)
        members = [queued_pod for leaf in waiting.values() for queued_pod in leaf]
        for call in self._on_collected:
            call(popped.root.key, members)
        try:
            self._snapshot.refresh(self._cache)
            for key in waiting:
                self._groups.required_path(key)
        except CacheError as error:
            self._refuse(popped, members, Status.from_error(error), is_shown=False)
            return None
        refusal = why_refused(
            self._groups,
            popped.root,
            [*(queued_pod.pod for queued_pod in members), *self._scheduled(popped.root)],
            has_policies=self._has_policies,
        )
        if refusal:
            self._refuse(popped, members, Status.from_error(PluginError(refusal)), is_shown=True)
            return None
        profile = self._profiles.get(members[0].scheduler_name)
        if profile is None:
            log.error('profile not found for scheduler name "%s"', members[0].scheduler_name)
            for queued_pod in members:
                self._queue.done(queued_pod.uid)
            self._queue.group_done(popped, None)
            return None
        tried = {
            key: [member for member in leaf if self._is_tried(member, profile)]
            for key, leaf in waiting.items()
        }
        if not any(tried.values()):
            self._queue.group_done(popped, None)
            return None
        tree = Tree(popped.root, profile, tried)
        return TreeAttempt(self, popped, tree, self._metrics.now_s())

    def _by_group(self, members: Sequence[QueuedPod]) -> dict[GroupKey, list[QueuedPod]]:
        """The members of each group, groups by name."""
        by_group: dict[GroupKey, list[QueuedPod]] = {}
        for member in members:
            key = self._groups.key_of(member.pod)
            assert key is not None, member
            by_group.setdefault(key, []).append(member)
        return dict(sorted(by_group.items()))

    def _scheduled(self, root: TreeNode) -> list[Pod]:
        found = map(self._groups.find, self._groups.leaves_of(root))
        return [pod for members in found if members for pod in members.scheduled_pods()]

    def _refuse(
        self, entry: QueuedGroup, members: Sequence[QueuedPod], status: Status, *, is_shown: bool
    ) -> None:
        """Send all members back with an error; `is_shown` in the conditions of the groups, too."""
        for queued_pod in members:
            if queued_pod.scheduler_name in self._profiles:
                self._failures.handle(queued_pod, status, CLEAR_NOMINATION)
            else:
                self._queue.done(queued_pod.uid)
        if is_shown:
            for key in self._groups.leaves_of(entry.root):
                self.conditions.write(key, GroupOutcome((), status))
        self._queue.group_done(entry, status)

    def _is_tried(self, queued_pod: QueuedPod, profile: Profile) -> bool:
        if not self._skips(queued_pod.pod, profile):
            return True
        self._queue.done(queued_pod.uid)
        return False

    # --- the cycle ---

    def decide_tree(self, tree: Tree) -> "TreeOutcome":
        """Where the members go; the snapshot is as before afterwards."""
        started_s = self._metrics.now_s()
        findings = self._trials.run_tree(tree, self._new_cycle(tree.root))
        status = findings[tree.root].status
        completed(self._groups, tree.root, findings)
        self._metrics.group_decided(started_s)
        if status is None or status.code != Code.UNSCHEDULABLE:
            return TreeOutcome(tree.root, findings, status)
        nominations, answer = self._post_filter(tree, findings)
        _add_answer(findings, answer)
        return TreeOutcome(tree.root, findings, status, nominations, is_waiting=answer.is_success)

    def decide(self, collected: CollectedGroup) -> GroupOutcome:
        """What would be decided for these members of a group; for explanations."""
        self._snapshot.refresh(self._cache)
        return self.decide_tree(self._tree_of(collected)).of_group(collected.key)

    def fits(self, collected: CollectedGroup) -> bool:
        tree = self._tree_of(collected)
        cycle = self._new_cycle(tree.root)
        cycle.runs_post_filter = False
        return self._trials.run_tree(tree, cycle)[tree.root].status is None

    def _tree_of(self, collected: CollectedGroup) -> Tree:
        root = self._groups.root_of(collected.key) or TreeNode(collected.key)
        return Tree(root, collected.profile, {collected.key: collected.queued_pods})

    def _new_cycle(self, root: TreeNode) -> GroupCycleV137:
        by_key: dict[GroupKey, GroupMembers] = {}
        for key in self._groups.leaves_of(root):
            members = self._groups.find(key)
            if members is not None:
                by_key[key] = members.copy()
        return GroupCycleV137(root, by_key)

    def _post_filter(
        self, tree: Tree, findings: Findings
    ) -> tuple[GroupNominations | None, Status]:
        trial, cycle = WholeTrial(self._snapshot), self._new_cycle(tree.root)
        cycle.runs_post_filter = False

        def place() -> Sequence[PlacedMember] | Status:
            found = self._trials.run_tree(tree, cycle)
            # As upstream also members of groups that do not fit, where the tree does without them.
            return found[tree.root].status or [
                PlacedMember(member.queued_pod.pod_info, member.node_name)
                for part in found.values()
                for member in part.fitting()
            ]

        group = UnplacedGroup(
            tree.root,
            [queued_pod.pod_info for queued_pod in tree.queued_pods],
            _tried_members(findings),
            trial,
            place,
            partial(self._trials.passes, tree, cycle),
        )
        try:
            nominations, answer = run_pod_group_post_filter(tree.profile, group)
        finally:
            trial.undo()
        for call in self._on_post_filtered:
            call(answer, nominations or {})
        return nominations, answer

    # --- after it ---

    def conclude(self, attempt: "TreeAttempt", outcome: "TreeOutcome") -> None:
        """Place the members or send them back, and write the conditions of the groups."""
        tree, leaves = attempt.tree, outcome.leaves()
        for key in sorted(leaves):
            waiting = tree.waiting.get(key, ())
            self._submitter.submit(tree.profile, waiting, leaves[key], outcome.nominations)
        self._metrics.group_ended(outcome.result, tree.profile.name, attempt.started_s)
        for key in sorted(leaves):
            self.conditions.write(key, leaves[key].outcome)
        self._queue.group_done(attempt.entry, outcome.status)


class TreeOutcome:
    """What was decided for a tree: `status` is that of its root before PodGroupPostFilter."""

    def __init__(
        self,
        root: TreeNode,
        findings: Findings,
        status: Status | None,
        nominations: GroupNominations | None = None,
        *,
        is_waiting: bool = False,
    ) -> None:
        self._root = root
        self._findings = findings
        self.status = status
        self.nominations = nominations
        self.is_waiting = is_waiting

    def leaves(self) -> dict[GroupKey, PartFinding]:
        """What was found for each group of pods."""
        return {node.key: found for node, found in self._findings.items() if not node.is_composite}

    @property
    def result(self) -> str:
        """The label of the metric."""
        status = self._findings[self._root].status
        if status is None:
            return "scheduled"
        if not status.is_rejected:
            return "error"
        return "waiting_on_preemption" if self.is_waiting else "unschedulable"

    def of_group(self, key: GroupKey) -> GroupOutcome:
        found = self._findings.get(TreeNode(key)) or self._findings[self._root]
        return GroupOutcome(found.members, found.status, self.is_waiting, asks_permit=False)


class TreeAttempt:
    """The attempt of a group, as `GroupAttempt` of the core."""

    def __init__(
        self, groups: TreeScheduler, entry: QueuedGroup, tree: Tree, started_s: float
    ) -> None:
        self._groups = groups
        self.entry = entry
        self.tree = tree
        self.started_s = started_s
        self.outcome: TreeOutcome | None = None

    @property
    def has_victims(self) -> bool:
        return self.outcome is not None and self.outcome.is_waiting

    @property
    def is_unplaced_group(self) -> bool:
        """False: a group that cannot be placed waits for its backoff, so no pause is needed."""
        return False

    def decide(self) -> None:
        self.outcome = self._groups.decide_tree(self.tree)

    def conclude(self) -> None:
        assert self.outcome is not None
        self._groups.conclude(self, self.outcome)


def _add_answer(findings: Findings, answer: Status) -> None:
    """Add what PodGroupPostFilter answered to every part; to a finding that several parts share,
    as upstream, once for each of them."""
    for found in findings.values():
        finding = found.finding
        if answer.code == Code.ERROR:
            finding.status = answer
        elif finding.status is not None:
            finding.status = finding.status.with_reasons(answer.message)


def _tried_members(findings: Findings) -> list[TriedMember]:
    return [
        TriedMember(member.decision.state, member.queued_pod.pod_info, _diagnosis(member.status))
        for found in findings.values()
        for member in found.members
    ]


def _diagnosis(status: Status | None) -> Diagnosis | None:
    error = None if status is None else status.error
    return error.diagnosis if isinstance(error, FitError) else None
