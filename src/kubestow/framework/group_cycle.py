"""What the attempts of one group share during its cycle (spec 11 §7).

    GroupCycle ── members      the group as of the snapshot; assumed members of the trial included
              ├── by_key       the same for all pod sets that are placed together
              ├── placement    the nodes that may be used now
              └── shared       data of plugins, for all members

An attempt of a member refers to it by `CycleState.group_cycle`; outside of such a cycle, and when a
member is really placed, that is None.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from kubestow.api.group import GroupKey
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntpArray
from kubestow.cache.groups import GroupMembers
from kubestow.errors import CacheError


class GroupPlacement(NamedTuple):
    """A set of nodes on which a group may be placed: intp[node], rows in visiting order.

    Placements of a higher tier are tried only if none of the lower ones is possible.
    """

    name: str
    rows: IntpArray
    tier: int = 0


class Assignments(NamedTuple):
    """A placement, and the members that would run there."""

    placement: GroupPlacement
    pods: Sequence[PodInfo]


class GroupCycle:
    """`members` is None if the group is not known; `idle` are unscheduled members not tried now.

    `placement` None means all nodes. `runs_post_filter` is off in simulations of a preemption.
    `is_surplus`: by choice, the members tried from now on must not hold up the others.
    `has_post_filter`: members are given to PostFilter one by one, if it runs at all.
    """

    has_post_filter: ClassVar[bool] = True

    __slots__ = (
        "by_key",
        "idle",
        "is_surplus",
        "key",
        "members",
        "placement",
        "runs_post_filter",
        "shared",
    )

    def __init__(
        self,
        key: GroupKey,
        by_key: Mapping[GroupKey, GroupMembers] = MappingProxyType({}),
        idle: Sequence[Pod] = (),
    ) -> None:
        self.key = key
        self.by_key = by_key
        self.members = by_key.get(key)
        self.idle = idle
        self.placement: GroupPlacement | None = None
        self.runs_post_filter = True
        self.is_surplus = False
        # Any: each plugin keeps its own kind of value under its name.
        self.shared: dict[str, Any] = {}

    def assume(self, pod: Pod) -> None:
        """Count a member as placed; each pod set has its own members."""
        for members in self.by_key.values():
            members.assume(pod)

    def forget(self, uid: str) -> None:
        for members in self.by_key.values():
            members.forget(uid)

    def scheduled_pods(self) -> list[Pod]:
        """The members of all pod sets that are placed."""
        return [pod for members in self.by_key.values() for pod in members.scheduled_pods()]

    def known_members(self) -> GroupMembers:
        if self.members is None:
            raise CacheError(f"pod group state not found for pod group {self.key}")
        return self.members
