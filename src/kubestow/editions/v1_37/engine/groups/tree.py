"""The groups of one cycle, their members, and what was found for them (spec 12 §17).

A group is the only leaf of its own tree, unless it is part of composite groups. What was found for
a group that is not placed is a status. Parts of a tree that fail together share one
(`GroupFinding`), so what is added to it for one of them shows in all, as upstream.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from kubestow.api.group import GroupKey, TreeNode
from kubestow.cache.groups import GroupMembers
from kubestow.editions.v1_37.groups.state import GroupsV137
from kubestow.engine.groups.outcome import GroupOutcome, MemberOutcome
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod


class GroupCycleV137(GroupCycle):
    """`node` is the part of the tree that is tried now."""

    __slots__ = ("node", "root")

    has_post_filter: ClassVar[bool] = False

    def __init__(self, root: TreeNode, by_key: Mapping[GroupKey, GroupMembers]) -> None:
        super().__init__(root.key, by_key)
        self.root = self.node = root

    def turn_to(self, node: TreeNode) -> None:
        """Try this part from now on."""
        self.node = node
        self.key = node.key
        self.members = None if node.is_composite else self.by_key.get(node.key)


class Tree(NamedTuple):
    """What is tried: members that wait, by group, each group in the order of its members."""

    root: TreeNode
    profile: Profile
    waiting: Mapping[GroupKey, Sequence[QueuedPod]]

    @property
    def queued_pods(self) -> list[QueuedPod]:
        return [queued_pod for members in self.waiting.values() for queued_pod in members]


class GroupFinding:
    """Why a part of a tree is not placed; `status` None if it is."""

    __slots__ = ("status",)

    def __init__(self, status: Status | None) -> None:
        self.status = status


class PartFinding:
    """What was found for a group, or for a composite group.

    members      those that were tried, of a group of pods; the others were not
    untried      the status of the others, without what is added to that of the group later
    has_placed   whether a member is placed by this, if it is placed at all
    """

    __slots__ = ("finding", "has_placed", "members", "untried")

    def __init__(
        self,
        finding: GroupFinding,
        members: Sequence[MemberOutcome] = (),
        *,
        has_placed: bool = False,
    ) -> None:
        self.finding = finding
        self.members = members
        self.untried = finding.status
        self.has_placed = has_placed and finding.status is None

    @property
    def status(self) -> Status | None:
        return self.finding.status

    @property
    def outcome(self) -> GroupOutcome:
        return GroupOutcome(self.members, self.finding.status, asks_permit=False)

    def fail(self, status: Status) -> None:
        """Replace what was found; members keep what was found for them."""
        self.finding = GroupFinding(status)
        self.untried = status
        self.has_placed = False

    def fitting(self) -> Iterator[MemberOutcome]:
        """The members that fit, whether the group does or not."""
        return (member for member in self.members if member.assumed is not None)


# Parts that were not tried are missing, until `completed`.
Findings = dict[TreeNode, PartFinding]


def placed(groups: GroupsV137, node: TreeNode, findings: Findings) -> Iterator[MemberOutcome]:
    """The members that are placed: those of groups that are, and all that these are part of."""
    found = findings.get(node)
    if found is None or found.status is not None:
        return
    if not node.is_composite:
        yield from found.fitting()
        return
    for part in groups.children_of(node):
        yield from placed(groups, part, findings)


def completed(
    groups: GroupsV137, node: TreeNode, findings: Findings, above: GroupFinding | None = None
) -> None:
    """Give every part of a tree a finding: one that could be placed, and one that was not tried,
    fails with what it is part of. It shares that finding."""
    found = findings.get(node)
    fails = above is not None and above.status is not None
    if above is not None and (found is None or (fails and found.status is None)):
        found = findings[node] = PartFinding(above)
    assert found is not None, node
    for part in groups.children_of(node) if node.is_composite else ():
        completed(groups, part, findings, found.finding)
