"""GangScheduling as of v1.37: it answers after each member whether the group can be placed.

PreEnqueue          enough members exist, in every part of a tree of groups (spec 12 §14.4, §17)
PlacementFeasible   enough members can still be placed (§15.2)
Permit              enough members are placed; not asked in trials
"""

from collections.abc import Hashable
from typing import Final

from kubestow.api.decode import is_map
from kubestow.api.gang_dialects import key_of_object
from kubestow.api.group import GroupKey, TreeNode
from kubestow.api.pod import Pod
from kubestow.api.pod_group import AnyPodGroup, CompositePodGroup
from kubestow.api.pod_info import PodInfo
from kubestow.editions.v1_37.engine.groups.tree import GroupCycleV137
from kubestow.editions.v1_37.groups.state import groups_of
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.plugins.gang_scheduling import PERMIT_TIMEOUT_S, GangScheduling

NO_TREE: Final = "failed to build hierarchy snapshot"


class GangSchedulingV137(GangScheduling):
    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._trees = groups_of(handle.groups, handle.objects)

    def events(self) -> Registrations:
        return [
            on(Resource.UNSCHEDULED_POD, Action.ADD, self._hint_for_pod),
            on(Resource.ASSIGNED_POD, Action.ADD, self._hint_for_pod),
            on(Resource.POD_GROUP, Action.ADD, self._hint_for_group),
            on(Resource.POD_GROUP, Action.UPDATE, self._hint_for_changed_group),
            on(Resource.COMPOSITE_POD_GROUP, Action.ADD, self._hint_for_composite),
        ]

    # --- the queue ---

    def pre_enqueue(self, pod: Pod) -> Status | None:
        key = self._trees.key_of(pod)
        if key is None or self._trees.rules(key) is None:
            return super().pre_enqueue(pod)
        path = self._trees.path_of(key)
        if path is None:
            return Status.unresolvable(f"{NO_TREE}: {self._trees.why_incomplete(key)}")
        root = path[-1]
        if not root.is_composite:
            return super().pre_enqueue(pod)
        return None if self._trees.is_ready(root) else Status.unresolvable(_no_quorum(root))

    def gate_key(self, subject: object) -> Hashable | None:  # type: ignore[override]
        if isinstance(subject, CompositePodGroup):
            meta = subject.metadata
            return self._top_of(TreeNode(GroupKey(meta.namespace, meta.name), True))
        key = self._trees.key_of(subject) if isinstance(subject, Pod) else key_of_object(subject)
        root = None if key is None else self._trees.root_of(key)
        return root if root is not None and root.is_composite else key

    def is_open(self, key: Hashable) -> bool:
        return self._trees.is_ready(key) if isinstance(key, TreeNode) else super().is_open(key)

    def _top_of(self, node: TreeNode) -> TreeNode:
        for _ in range(4):
            parent = self._trees.parent_of(node)
            if parent is None:
                break
            node = parent
        return node

    # --- the cycle ---

    def placement_feasible(
        self, cycle: GroupCycle, scheduled_count: int, remaining_count: int
    ) -> Status | None:
        assert isinstance(cycle, GroupCycleV137), cycle
        needed = self._trees.min_count_of(cycle.node)
        if scheduled_count >= needed:
            return None
        counts = f"{scheduled_count} scheduled, {remaining_count} remaining"
        if scheduled_count + remaining_count < needed:
            return Status.unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
        return Status.wait(f"minCount ({needed}) is not yet satisfied: {counts}")

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        root = self._trees.root_of_pod(pod.pod)
        if root is None or not root.is_composite:
            return super().permit(state, pod, node_name)
        leaves = [self._trees.find(key) for key in self._trees.leaves_of(root)]
        if not self._trees.is_ready(root, scheduled=True):
            waiting = [each for leaf in leaves if leaf for each in leaf.unscheduled_pods()]
            if waiting:
                self._handle.activate(waiting)
            return Status.wait(_no_quorum(root)), PERMIT_TIMEOUT_S
        for leaf in leaves:
            for uid in () if leaf is None else leaf.assumed:
                allowed = self._handle.waiting_pods.get(uid)
                if allowed is not None:
                    allowed.allow(self.name)
        return None, 0

    # --- hints ---

    def _hint_for_pod(self, pod: Pod, old: object, new: Pod) -> Hint:
        return self._if_together(pod, self._trees.key_of(new))

    def _hint_for_group(self, pod: Pod, old: object, new: AnyPodGroup) -> Hint:
        return self._if_together(pod, key_of_object(new))

    def _hint_for_changed_group(self, pod: Pod, old: AnyPodGroup, new: AnyPodGroup) -> Hint:
        """Fewer members are enough now."""
        before, after = _min_count(old), _min_count(new)
        if before is None or after is None or after >= before:
            return Hint.SKIP
        return self._if_together(pod, key_of_object(new))

    def _hint_for_composite(self, pod: Pod, old: object, new: CompositePodGroup) -> Hint:
        key = self._trees.key_of(pod)
        path = None if key is None else self._trees.path_of(key)
        node = TreeNode(GroupKey(new.metadata.namespace, new.metadata.name), True)
        if path is None:
            return Hint.SKIP
        return Hint.QUEUE if path[-1] == self._top_of(node) else Hint.SKIP

    def _if_together(self, pod: Pod, key: GroupKey | None) -> Hint:
        """Queue if the pod is queued with members of this group."""
        own = self._trees.key_of(pod)
        if key is None or own is None:
            return Hint.SKIP
        if key in self._trees.pod_sets(own):
            return Hint.QUEUE
        if not self._trees.has_trees:
            return Hint.SKIP
        root = self._trees.root_of(own)
        return Hint.QUEUE if root is not None and root == self._trees.root_of(key) else Hint.SKIP


def _no_quorum(root: TreeNode) -> str:
    return f'waiting for composite pod group "{root.key.name}" tree to meet quorum'


def _min_count(pod_group: AnyPodGroup) -> int | None:
    """The minimum of a gang; None if the object is none. The documents of objects are not decoded
    here: a wrong one has no rules, and its members wait."""
    spec: object = pod_group.spec
    policy = spec.get("schedulingPolicy") if is_map(spec) else None
    gang = policy.get("gang") if is_map(policy) else None
    count = gang.get("minCount") if is_map(gang) else None
    return count if isinstance(count, int) else None
