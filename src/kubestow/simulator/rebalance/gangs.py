"""Members of pod groups: they are evicted together, or not at all.

The replacements of a gang are made while its members are ending on their nodes, so all of them need
a node beside these. Where replacements are made only once a pod is gone, or members end at once,
the first of them would be placed while other members still run, and where it goes depends on the
order: such gangs stay.
"""

from typing import Final

from kubestow.api.group import GroupKey
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.rebalance.budgets import Budgets
from kubestow.simulator.rebalance.rules import MovableRules

UNREAD: Final = "it is a member of a gang, and this scheduler does not read gangs"
JOINED: Final = "its gang is placed together with other gangs"
INCOMPLETE: Final = "members of its gang wait, or are ending"
LATE: Final = "its gang is replaced only once its members are gone, one after the other"
SHORT: Final = "the grace period of its gang is too short to evict all members within it"
# Of a pod; all members are evicted within a part of it.
GRACE_S_MIN: Final = 10


class Gangs:
    """Finds the gang of a pod, and why it stays."""

    def __init__(self, cluster: StillCluster, rules: MovableRules, budgets: Budgets) -> None:
        self._cluster = cluster
        self._rules = rules
        self._budgets = budgets
        # By group; there are as many as the cluster has.
        self._reasons: dict[GroupKey, str] = {}

    def reason(self, pod: Pod) -> str:
        """Why the gang of a pod stays; empty if it has none, or may be evicted."""
        key = gang_key(self._cluster, pod)
        if key is None:
            return UNREAD if pod.spec.scheduling_group is not None else ""
        reason = self._reasons.get(key)
        if reason is None:
            reason = self._reasons[key] = self._found(key)
        return reason

    def _found(self, key: GroupKey) -> str:
        groups = self._cluster.scheduler.cache.groups
        members = None if groups is None else groups.find(key)
        rules = None if groups is None else groups.rules(key)
        if members is None or rules is None or rules.parent or len(rules.pod_sets) > 1:
            return JOINED
        if members.unscheduled or members.leaving:
            return INCOMPLETE
        pods = [info.pod for info in gang_members(self._cluster, key)]
        for pod in pods:
            if reason := self._rules.reason(pod):
                return f"its gang stays because of {pod.metadata.name}: {reason}"
        if any(self._rules.replaced(pod) != "while-ending" for pod in pods):
            return LATE
        graces = [pod.spec.termination_grace_period_seconds for pod in pods]
        if any(grace_s is not None and grace_s < GRACE_S_MIN for grace_s in graces):
            return SHORT
        return self._budgets.reason_for_all(pods)


def gang_key(cluster: StillCluster, pod: Pod) -> GroupKey | None:
    """The group of a pod, as far as the scheduler of the cluster has groups."""
    groups = cluster.scheduler.cache.groups
    return None if groups is None else groups.key_of(pod)


def gang_members(cluster: StillCluster, key: GroupKey) -> list[PodInfo]:
    """The members that are on nodes, by name."""
    groups = cluster.scheduler.cache.groups
    members = None if groups is None else groups.find(key)
    pods = [] if members is None else members.scheduled_pods()
    found = [cluster.scheduler.cache.pod(pod) for pod in pods]
    return sorted(found, key=lambda info: info.name)
