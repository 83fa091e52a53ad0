"""What a group of pods asks of the scheduler, whichever API object has it.

    PodGroup ── group_of ──► Group ──► queue gate, Permit, placements, preemption

Pods name their group (`group_key_of`); the `Group` has the rules that apply to all of them. Where
the behaviour differs from upstream's by choice, `GangOptions` says how (docs/guides/pod-groups.md).
Not here: who the members are and which of them are placed (`cache.groups`).
"""

from typing import Final, NamedTuple

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.api.pod_group import PodGroup
from kubestow.api.quantity import Quantity


class GroupKey(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TreeNode(NamedTuple):
    """A group of pods, or a group of groups (spec 12 §17)."""

    key: GroupKey
    is_composite: bool = False

    @property
    def kind(self) -> str:
        return "compositepodgroup" if self.is_composite else "podgroup"

    def __str__(self) -> str:
        return f"{self.kind}/{self.key}"


# Annotations of a group's object that upstream does not have.
POD_SETS: Final = "kubestow.io/pod-sets"
REQUIRED_TOPOLOGY: Final = "kubestow.io/required-topology"
PREFERRED_TOPOLOGY: Final = "kubestow.io/preferred-topology"


class GangOptions(NamedTuple):
    """What is done better than upstream, by choice. The default is upstream's behaviour.

    evicts_for_whole   pods are evicted only for groups that then run as a whole
    waits_for_events   a group that does not fit is tried again after an event that may help it
    ignores_surplus    members beyond the minimum do not delay a group that has it
    counts_finished    members that have succeeded count towards the minimum
    timeout_s          how long placed members wait for the others; all are given up together.
                       None: five minutes, each by itself
    joins_pod_sets     groups that name each other are placed together or not at all
    topology_levels    node labels from the widest domain to the narrowest
    evicts_whole       a gang of which too few members would be left is evicted as a whole
    dialects           further APIs whose groups are read (`api.gang_dialects`)
    """

    evicts_for_whole: bool = False
    waits_for_events: bool = False
    ignores_surplus: bool = False
    counts_finished: bool = False
    timeout_s: float | None = None
    joins_pod_sets: bool = False
    topology_levels: tuple[str, ...] = ()
    evicts_whole: bool = False
    dialects: tuple[str, ...] = ()

    @property
    def uses_pod_priority(self) -> bool:
        """Whether the priority of a group that has none is that of its pods."""
        return self.evicts_for_whole or self.evicts_whole


AS_UPSTREAM: Final = GangOptions()


class Group(NamedTuple):
    """The rules of one group.

    min_count         how many members are placed together or not at all; None: any number
    topology_key      all members run on nodes with one value of this label; None: anywhere
    is_constrained    whether placements are restricted in any way, be it by an empty list
    is_evicted_whole  whether evicting one member evicts all
    priority          None: that of its pods
    timeout_s         how long placed members wait for the others, if not as upstream
    pod_sets          the groups that are placed together, this one included; empty: it alone
    min_resources     what the nodes must have free together for the group to be tried
    preferred_domains label keys, wide to narrow, that together identify a domain; the members run
                      in one domain of the first of these that is possible, if one is
    required_domain   the same for `topology_key`; empty: that label alone
    parent            the name of the composite group that it is part of; empty: it is none's
    preemption_policy that of the group itself, where it has one
    """

    key: GroupKey
    uid: str
    min_count: int | None = None
    topology_key: str | None = None
    is_constrained: bool = False
    is_evicted_whole: bool = False
    priority: int | None = 0
    resource_claims: tuple[PodResourceClaim, ...] = ()
    timeout_s: float | None = None
    pod_sets: tuple[GroupKey, ...] = ()
    min_resources: tuple[tuple[str, Quantity], ...] = ()
    preferred_domains: tuple[tuple[str, ...], ...] = ()
    required_domain: tuple[str, ...] = ()
    parent: str = ""
    preemption_policy: str | None = None


def group_key_of(pod: Pod) -> GroupKey | None:
    """The group that the pod is a member of; None for a pod of its own."""
    group = pod.spec.scheduling_group
    if group is None or group.pod_group_name is None:
        return None
    return GroupKey(pod.metadata.namespace, group.pod_group_name)


def group_of(pod_group: PodGroup, options: GangOptions = AS_UPSTREAM) -> Group:
    meta, spec = pod_group.metadata, pod_group.spec
    gang, constraints = spec.scheduling_policy.gang, spec.scheduling_constraints
    topology = () if constraints is None else constraints.topology
    group = Group(
        GroupKey(meta.namespace, meta.name),
        meta.uid,
        min_count=None if gang is None else gang.min_count,
        topology_key=topology[0].key if topology else None,
        is_constrained=constraints is not None,
        is_evicted_whole=spec.disruption_mode == "PodGroup",
        priority=spec.priority if options.uses_pod_priority else spec.priority or 0,
        resource_claims=spec.resource_claims,
        timeout_s=options.timeout_s,
        pod_sets=_pod_sets(meta) if options.joins_pod_sets else (),
    )
    return _in_levels(group, meta, options.topology_levels) if options.topology_levels else group


def _in_levels(group: Group, meta: ObjectMeta, levels: tuple[str, ...]) -> Group:
    """The group with the topology that its annotations ask for, level by level."""
    required = group.topology_key or meta.annotations.get(REQUIRED_TOPOLOGY)
    preferred = meta.annotations.get(PREFERRED_TOPOLOGY)

    def domain(key: str) -> tuple[str, ...]:
        # A rack may have the same name in two blocks.
        return levels[: levels.index(key) + 1] if key in levels else (key,)

    tiers: list[tuple[str, ...]] = []
    if preferred is not None:
        narrowest = domain(preferred)
        widest = len(domain(required)) if required is not None and required in levels else 0
        tiers = [narrowest[:length] for length in range(len(narrowest), widest, -1)]
        if preferred not in levels:
            tiers = [narrowest]
    return group._replace(
        topology_key=required,
        is_constrained=group.is_constrained or required is not None,
        preferred_domains=tuple(tiers),
        required_domain=() if required is None else domain(required),
    )


def _pod_sets(meta: ObjectMeta) -> tuple[GroupKey, ...]:
    """The groups that the annotation names, and the object's own."""
    text = meta.annotations.get(POD_SETS)
    if text is None:
        return ()
    names = {meta.name, *(name for part in text.split(",") if (name := part.strip()))}
    return tuple(GroupKey(meta.namespace, name) for name in sorted(names))
