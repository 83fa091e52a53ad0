"""DefaultPreemption for groups, and against them (spec 12 §9.4, §16)."""

from collections.abc import Sequence
from typing import Final

from kubestow.api.group import TreeNode
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.editions.v1_37.groups.state import groups_of
from kubestow.editions.v1_37.plugins.default_preemption import DefaultPreemptionV137
from kubestow.editions.v1_37.plugins.group_preemption.group_victims import select_victims
from kubestow.editions.v1_37.plugins.group_preemption.unit_trials import UnitTrials
from kubestow.editions.v1_37.plugins.group_preemption.units import Units
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import GroupNominations, PostFilterResult, UnplacedGroup
from kubestow.framework.status import Code, Status
from kubestow.plugins.default_preemption.dry_run import Evaluator, TrialInputs
from kubestow.plugins.default_preemption.eligibility import NEVER, is_leaving_for_preemption
from kubestow.plugins.default_preemption.executor import Preemptor
from kubestow.plugins.default_preemption.group_victims import CLUSTER
from kubestow.plugins.default_preemption.plugin import GROUP_GATED

PREFIX: Final = "pod group preemption: "
ONGOING: Final = Status(Code.SUCCESS, f"{PREFIX}ongoing preemption on nominated nodes")


class PreemptsForGroups(DefaultPreemptionV137):
    """The part of the plugin that concerns groups, with the gate GenericWorkload."""

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._trees = groups_of(handle.groups, handle.objects)
        self._has_policies = handle.feature_gates.enabled("PodGroupPreemptionPolicy")

    def pre_enqueue(self, pod: Pod) -> Status | None:
        # A member that has a node is queued for its resize, by itself (§11).
        is_member = self._has_groups and not pod.spec.node_name
        root = self._trees.root_of_pod(pod) if is_member else None
        if root is None or not self._is_async:
            return super().pre_enqueue(pod)
        is_gated = self.executor.is_preempting(self._trees.uid_of(root))
        return GROUP_GATED if is_gated else None

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        started_s = self._handle.clock.monotonic_s()
        result, status = super().post_filter(state, pod, diagnosis)
        duration_s = self._handle.clock.monotonic_s() - started_s
        self._handle.metrics.preemption_evaluated("pod", status, duration_s)
        return result, status

    def _why_member_ineligible(self, pod: PodInfo) -> Status | None:
        """Members are not tried one by one, except for their resizes."""
        return None

    def pod_group_post_filter(self, group: UnplacedGroup) -> tuple[GroupNominations | None, Status]:
        """Evict pods for a whole group, any number of them and anywhere."""
        started_s = self._handle.clock.monotonic_s()
        nominations, status = self._preempt_for(group)
        duration_s = self._handle.clock.monotonic_s() - started_s
        self._handle.metrics.preemption_evaluated(group.node.kind, status, duration_s)
        if status is ONGOING or status.code == Code.ERROR:
            return nominations, status
        return nominations, Status(status.code, f"{PREFIX}{status.message}")

    def _preempt_for(self, group: UnplacedGroup) -> tuple[GroupNominations | None, Status]:
        handle, root = self._handle, group.node
        if self._never_preempts(group):
            return None, Status.unschedulable(NEVER)
        priority = self._trees.priority_of(root)
        if self._is_waiting(group, priority):
            return None, ONGOING
        units = Units(self._trees, handle.snapshot, handle.clock.now_ns())
        found = select_victims(group, handle.snapshot, units, priority, self._budget_table())
        if isinstance(found, Status):
            return None, found
        pods = [pod.pod for pod in group.pods]
        preemptor = Preemptor(
            root.kind,
            self._trees.uid_of(root),
            str(root.key),
            pods[0].spec.scheduler_name,
            priority,
            pods,
            related=self._trees.object_of_node(root),
        )
        handle.metrics.preemption_disrupts(root.kind, found.disruption_count, found.violation_count)
        self.executor.evict(preemptor, CLUSTER, found.victims)
        text = f"found a placement for podgroup, preempting {len(found.victims)} victims"
        nominations = {member.pod.uid: member.node_name for member in found.placed}
        return nominations, Status(Code.SUCCESS, text)

    def _note_victims(self, victims: Sequence[PodInfo], violation_count: int) -> None:
        if not self._has_groups:
            return
        handle = self._handle
        units = Units(self._trees, handle.snapshot, handle.clock.now_ns()).of_pods(victims)
        count = sum(unit.is_of_group for unit in units)
        handle.metrics.preemption_disrupts("pod", count, violation_count)

    @property
    def _evicts_units(self) -> bool:
        return self._has_groups and self._trees.has_placed()

    def _is_lowest(self, pod: PodInfo) -> bool:
        # Members of a group are as important as it is.
        return not self._evicts_units and super()._is_lowest(pod)

    def _evaluator(self, inputs: TrialInputs) -> Evaluator:
        if not self._evicts_units:
            return super()._evaluator(inputs)
        return UnitTrials(inputs, Units(self._trees, inputs.snapshot, inputs.now_ns))

    def _never_preempts(self, group: UnplacedGroup) -> bool:
        if self._has_policies:
            return self._trees.preemption_policy_of(group.node) == "Never"
        return any(pod.pod.spec.preemption_policy == "Never" for pod in group.pods)

    def _is_waiting(self, group: UnplacedGroup, priority: int) -> bool:
        """Whether pods are leaving a node that was kept for a member."""
        snapshot = self._handle.snapshot
        for name in {pod.pod.status.nominated_node_name for pod in group.pods} - {""}:
            row = snapshot.row_of(name)
            for victim in () if row is None else snapshot.node_infos[row].pods:
                is_leaving = is_leaving_for_preemption(victim) or self._handle.victims.is_requested(
                    victim.uid
                )
                if is_leaving and self._priority_of(victim) < priority:
                    return True
        return False

    def _priority_of(self, pod: PodInfo) -> int:
        """The priority of its group, if the pod is a member."""
        root: TreeNode | None = self._trees.root_of_pod(pod.pod)
        return pod.priority if root is None else self._trees.priority_of(root)
