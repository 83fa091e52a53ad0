"""What a group must be for its members to be tried together (spec 12 §15.1)."""

from collections.abc import Sequence

from kubestow.api.group import TreeNode
from kubestow.api.pod import Pod, priority_of
from kubestow.editions.v1_37.groups.state import GroupsV137
from kubestow.engine.groups.collect import different_names_text

_DEFAULT_POLICY = "PreemptLowerPriority"


def why_refused(
    groups: GroupsV137, root: TreeNode, pods: Sequence[Pod], *, has_policies: bool
) -> str:
    """Why the group is not tried; empty if it is.

    `pods` are the members that wait, then those that are placed. `has_policies`: groups have
    preemption policies of their own.
    """
    name, priority = pods[0].spec.scheduler_name, groups.priority_of(root)
    of_group = groups.preemption_policy_of(root) if has_policies else None
    policy = of_group or policy_of(pods[0])
    for pod in pods:
        if pod.spec.scheduler_name != name:
            return different_names_text(pod.spec.scheduler_name, name)
        if priority_of(pod) != priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's "
                f"priority, got {priority_of(pod)} and {priority}"
            )
        if policy_of(pod) != policy:
            rule = "" if of_group is None else " as the pod group's preemption policy"
            return (
                f"all pods in a single pod group should have the same preemption policy{rule}, "
                f"got {policy_of(pod)} and {policy}"
            )
    return ""


def policy_of(pod: Pod) -> str:
    return pod.spec.preemption_policy or _DEFAULT_POLICY
