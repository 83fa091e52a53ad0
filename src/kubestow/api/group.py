"""What a group of pods asks of the scheduler, whichever API object says so.

    PodGroup ── group_of ──► Group ──► queue gate, Permit, placements, preemption

Pods name their group (`group_key_of`); the `Group` has the rules that apply to all of them.
Not here: who the members are and which of them are placed (`cache.groups`).
"""

from typing import NamedTuple

from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.api.pod_group import PodGroup


class GroupKey(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Group(NamedTuple):
    """The rules of one group.

    min_count         how many members are placed together or not at all; None: any number
    topology_key      all members run on nodes with one value of this label; None: anywhere
    is_constrained    whether placements are restricted in any way, be it by an empty list
    is_evicted_whole  whether evicting one member evicts all
    """

    key: GroupKey
    uid: str
    min_count: int | None = None
    topology_key: str | None = None
    is_constrained: bool = False
    is_evicted_whole: bool = False
    priority: int = 0
    resource_claims: tuple[PodResourceClaim, ...] = ()


def group_key_of(pod: Pod) -> GroupKey | None:
    """The group that the pod is a member of; None for a pod of its own."""
    group = pod.spec.scheduling_group
    if group is None or group.pod_group_name is None:
        return None
    return GroupKey(pod.metadata.namespace, group.pod_group_name)


def group_of(pod_group: PodGroup) -> Group:
    meta, spec = pod_group.metadata, pod_group.spec
    gang, constraints = spec.scheduling_policy.gang, spec.scheduling_constraints
    topology = () if constraints is None else constraints.topology
    return Group(
        GroupKey(meta.namespace, meta.name),
        meta.uid,
        min_count=None if gang is None else gang.min_count,
        topology_key=topology[0].key if topology else None,
        is_constrained=constraints is not None,
        is_evicted_whole=spec.disruption_mode == "PodGroup",
        priority=spec.priority or 0,
        resource_claims=spec.resource_claims,
    )
