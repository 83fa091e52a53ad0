"""Groups of pods as one thing: members, minimum, where they are, and why not."""

from typing import Final

import msgspec

from kubestow.api.group import GroupKey
from kubestow.api.pod import first_condition
from kubestow.cache.groups import GroupMembers
from kubestow.web.follower import PageFollower
from kubestow.web.protocol import PodRow

GROUPS_MAX: Final = 1_000
MEMBERS_MAX: Final = 1_000


class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class GroupRow(_Sent, frozen=True, kw_only=True):
    """`min_count` is null for a group without a minimum, `exists` false without its object."""

    namespace: str
    name: str
    members: int
    placed: int
    min_count: int | None
    exists: bool


class GroupList(_Sent, frozen=True, kw_only=True):
    """The first groups of `count`, those that wait first."""

    groups: tuple[GroupRow, ...]
    count: int


class GroupDetail(_Sent, frozen=True, kw_only=True):
    """`condition` is what the scheduler wrote about the group; `pods` are rows of its members."""

    row: GroupRow
    topology_key: str
    condition: str
    pods: tuple[PodRow, ...]


def find_groups(follower: PageFollower) -> GroupList:
    groups = follower.scheduler.cache.groups
    if groups is None:
        return GroupList(groups=(), count=0)
    rows = [_row(follower, key, members) for key, members in groups.all_members().items()]
    rows.sort(
        key=lambda row: (row.placed >= (row.min_count or row.members), row.namespace, row.name)
    )
    return GroupList(groups=tuple(rows[:GROUPS_MAX]), count=len(rows))


def find_group(follower: PageFollower, namespace: str, name: str) -> GroupDetail | None:
    groups, key = follower.scheduler.cache.groups, GroupKey(namespace, name)
    members = None if groups is None else groups.find(key)
    if groups is None or members is None:
        return None
    follower.cut()
    rules = groups.rules(key)
    stored = follower.scheduler.objects.pod_groups.get(namespace, name)
    condition = None
    if stored is not None:
        conditions = stored.status.conditions
        scheduled = first_condition(conditions, "PodGroupScheduled")
        condition = scheduled or first_condition(conditions, "PodGroupInitiallyScheduled")
    found = (follower.rows.pod_row(pod) for pod in members.pods.values())
    return GroupDetail(
        row=_row(follower, key, members),
        topology_key="" if rules is None else rules.topology_key or "",
        condition="" if condition is None or condition.status == "True" else condition.message,
        pods=tuple(sorted(found, key=lambda row: row.key))[:MEMBERS_MAX],
    )


def _row(follower: PageFollower, key: GroupKey, members: GroupMembers) -> GroupRow:
    groups = follower.scheduler.cache.groups
    rules = None if groups is None else groups.rules(key)
    return GroupRow(
        namespace=key.namespace,
        name=key.name,
        members=len(members),
        placed=members.scheduled_count,
        min_count=None if rules is None else rules.min_count,
        exists=rules is not None,
    )
