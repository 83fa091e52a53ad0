"""The queue's record of a group: its members that wait, as one entry (spec 12 §14)."""

from bisect import insort
from collections.abc import Iterable, Sequence

from kubestow.api.group import TreeNode, group_key_of
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.queue.queued_pod import NO_PLUGINS, QueuedPod


class GroupInfo(PodInfo):
    """What the containers of the queue read of an entry: its key and its priority.

    `pod` is that of a member, for readers that need a namespace or a scheduler name.
    """

    __slots__ = ()

    def __init__(self, pod: Pod, root: TreeNode, priority: int) -> None:
        super().__init__(pod)
        # As upstream, composite groups have the same prefix: two of one name are one entry.
        self.key = self.uid = f"podgroup/{root.key}"
        self.namespace, self.name = root.key
        self.priority = priority


class QueuedGroup(QueuedPod):
    """`members` are in the order in which they are tried. There is at least one, except between a
    removal and what follows from it."""

    __slots__ = ("members", "root")

    def __init__(
        self, root: TreeNode, priority: int, members: Iterable[QueuedPod], *, timestamp_ns: int
    ) -> None:
        self.root = root
        self.members = sorted(members, key=_order)
        info = GroupInfo(self.members[0].pod, root, priority)
        super().__init__(info, timestamp_ns=timestamp_ns)

    @property
    def pod(self) -> Pod:
        return self.members[0].pod if self.members else self.pod_info.pod

    @property
    def scheduler_name(self) -> str:
        return self.pod.spec.scheduler_name

    @property
    def title(self) -> str:
        return f"{self.root.kind} {self.root.key}"

    @property
    def entity_type(self) -> str:
        """Trees count as groups, too (spec 12 §17)."""
        return "podgroup"

    @property
    def waiting_pods(self) -> Sequence[QueuedPod]:
        """The members; those of a tree by group, groups by name."""
        if not self.root.is_composite:
            return self.members
        return sorted(self.members, key=lambda member: str(group_key_of(member.pod)))

    @property
    def rejectors(self) -> frozenset[str]:
        """None: after a failed attempt a group waits for its backoff, never for an event."""
        return NO_PLUGINS

    @property
    def has_rejectors(self) -> bool:
        return False

    def put(self, member: QueuedPod) -> None:
        """Insert a member that is not in it."""
        insort(self.members, member, key=_order)

    def take(self, key: str) -> QueuedPod | None:
        """Remove a member."""
        for position, member in enumerate(self.members):
            if member.key == key:
                return self.members.pop(position)
        return None

    def find(self, key: str) -> QueuedPod | None:
        return next((member for member in self.members if member.key == key), None)

    def sort(self) -> None:
        """Reorder after a member has changed."""
        self.members.sort(key=_order)

    def __repr__(self) -> str:
        return f"QueuedGroup({self.root}, {self.members})"


def _order(member: QueuedPod) -> tuple[int, int, int, str]:
    """More important members first, then those tried more often, then by time and name."""
    info = member.pod_info
    return -info.priority, -member.attempts, member.timestamp_ns, info.name
