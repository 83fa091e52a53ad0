"""The queue with groups as entries: all waiting members of a group are one (spec 12 §14).

        member added ──┬── group not known ──────────► INCOMPLETE ── group added ──┐
                       ├── group is being tried ─────► PENDING ── attempt ends ────┤
                       ├── group waits ──► joins it                                │
                       └── else ─────────► new entry ──► ACTIVE or GATED ◄─────────┘

A group is popped as a whole. Its members that could not be placed are pending until the attempt
of the group ends (`group_done`); then they are one entry again, in backoff, or active at once if
the others were placed. Pods that belong to no group are queued as ever.

Invariants: a member is in one entry, incomplete, pending or in flight; `_entry_of` has the entries
that are in a container, by the keys of their members.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubestow.api.group import GroupKey, TreeNode
from kubestow.api.pod import Pod, key_of
from kubestow.api.pod_info import PodInfo
from kubestow.editions.v1_37.groups.state import GroupsV137
from kubestow.editions.v1_37.queue.group_policy import (
    GroupBackoffPolicy,
    GroupGatekeeper,
    GroupJudge,
)
from kubestow.editions.v1_37.queue.pod_queue import PodQueueV137
from kubestow.editions.v1_37.queue.queued_group import QueuedGroup
from kubestow.errors import QueueError
from kubestow.framework.events import FORCE_ACTIVATE
from kubestow.framework.status import Status
from kubestow.queue.metrics import SCHEDULE_ATTEMPT_FAILURE
from kubestow.queue.moves import Place, Verdict, judge
from kubestow.queue.queued_pod import QueuedPod


class GroupQueue(PodQueueV137):
    """`groups` say which pods are members of which group."""

    policy_type = GroupBackoffPolicy
    gatekeeper_type = GroupGatekeeper

    # Any: the arguments are those of the base class.
    def __init__(self, *, groups: GroupsV137, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._groups = groups
        self._judge = GroupJudge(self._interest)
        self._entry_of: dict[str, QueuedGroup] = {}
        self._incomplete: dict[str, QueuedPod] = {}
        # Group → the keys of its members that are incomplete.
        self._unknown: dict[GroupKey, dict[str, None]] = {}
        self._pending: dict[str, QueuedPod] = {}
        self._popped: QueuedGroup | None = None
        self._popped_uids: frozenset[str] = frozenset()

    # --- adding and deleting ---

    def add(self, pod: Pod) -> None:
        if not self._is_queued_with_group(pod):
            super().add(pod)
            return
        self.nominator.add(pod)
        self._drop_member(key_of(pod))
        self._add_member(self._new_record(pod), self._added_label)

    def update(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid in self._in_flight or not self._is_queued_with_group(new):
            super().update(old, new)
            return
        key = key_of(old)
        entry, alone = self._entry_of.get(key), self._outside(key)
        if alone is not None:
            self._swap_pod(alone, old, new)
        elif entry is None:
            self.nominator.add(new)
            self._add_member(self._new_record(new), self._added_label)
        else:
            self._update_member(entry, old, new)

    def delete(self, pod: Pod) -> None:
        member = self._drop_member(key_of(pod))
        if member is None:
            super().delete(pod)
            return
        self.nominator.delete(pod)
        self._count_rejectors(member, -1)
        entry = self._find_entry_of(pod)
        if entry is not None and entry.key not in self._parked:
            # Without the member the gates may refuse the others.
            self._put_back(entry, self._events.deleted.label)

    def _is_queued_with_group(self, pod: Pod) -> bool:
        """A member that has a node is queued for its resize, and by itself (§11)."""
        return not pod.spec.node_name and self._groups.key_of(pod) is not None

    def _add_member(self, member: QueuedPod, label: str) -> None:
        """Put a member where it belongs now."""
        key = self._groups.key_of(member.pod)
        assert key is not None, member
        root = self._groups.root_of(key)
        if root is None:
            self._put_incomplete(key, member)
            return
        entry = self._find_entry(root)
        if entry is not None:
            self._join(entry, member, label)
        elif self._popped is not None and self._popped.root == root:
            self._pending[member.key] = member
            self._moved(member)
        else:
            self._enter(root, [member], label, timestamp_ns=member.timestamp_ns)

    def _enter(
        self, root: TreeNode, members: Iterable[QueuedPod], label: str, *, timestamp_ns: int
    ) -> None:
        """Make a new entry of these members."""
        priority = self._groups.priority_of(root)
        entry = QueuedGroup(root, priority, members, timestamp_ns=timestamp_ns)
        self._map(entry)
        if self._move_to_active(entry, label):
            self._wake_pops()

    def _join(self, entry: QueuedGroup, member: QueuedPod, label: str) -> None:
        """Insert a member into an entry, which is put back where it was if the gates admit it.

        A parked one stays parked: the event of the new pod moves it.
        """
        entry.put(member)
        self._entry_of[member.key] = entry
        self._moved(member)
        self._put_back(entry, label)

    def _put_back(self, entry: QueuedGroup, label: str) -> None:
        """Put an entry whose members changed back where it is, if the gates admit it."""
        if self._active.discard(entry.key) is not None:
            if self._move_to_active(entry, label):
                self._wake_pops()
        elif self._backoff.discard(entry.key) is not None:
            self._move_to_backoff(entry, label)
        else:
            self._park(entry, label)

    def _update_member(self, entry: QueuedGroup, old: Pod, new: Pod) -> None:
        member = entry.find(key_of(old))
        assert member is not None, entry
        self._swap_pod(member, old, new)
        entry.sort()
        if entry.key in self._active:
            self._active.update(entry)
        elif entry.key in self._backoff:
            self._backoff.update(entry)
        else:
            self._requeue_updated_member(entry, member, old, new)

    def _requeue_updated_member(
        self, entry: QueuedGroup, member: QueuedPod, old: Pod, new: Pod
    ) -> None:
        """Apply the own update of a member of a parked entry, until an event moves it."""
        for event in self._events.of_own_update(old, new):
            audience = self._interest.audience_of(event)
            mask = self._interest.mask_of(member.rejectors)
            verdict = judge(member, mask, audience, old, new, self._ask)
            if verdict is Verdict.SKIP:
                continue
            place = self._requeue(entry, verdict, audience.label)
            if place is not Place.UNSCHEDULABLE:
                if self._is_poppable(place):
                    self._wake_pops()
                return

    def _drop_member(self, key: str) -> QueuedPod | None:
        """Take a member out of its entry, or from where it waits outside of one."""
        member = self._pending.pop(key, None) or self._take_incomplete(key)
        if member is not None:
            return member
        entry = self._entry_of.pop(key, None)
        if entry is None:
            return None
        member = entry.take(key)
        if not entry.members:
            self._discard(entry)
        return member

    # --- groups ---

    def group_known(self, node: TreeNode, label: str) -> None:
        """A group, or a part of its tree, was added: members that waited for it are queued."""
        keys = list(self._unknown) if self._groups.has_trees else [node.key]
        for key in keys:
            if key in self._unknown and self._groups.root_of(key) is not None:
                for name in list(self._unknown[key]):
                    member = self._take_incomplete(name)
                    assert member is not None, name
                    self._add_member(member, label)

    def group_gone(self, node: TreeNode) -> None:
        """A group, or a part of its tree, was deleted: its members wait until it is there again."""
        entry = self._find_entry(node)
        for found in self._entries() if self._groups.has_trees else filter(None, (entry,)):
            for member in list(found.members):
                key = self._group_of(member)
                if self._groups.root_of(key) != found.root:
                    self._drop_member(member.key)
                    self._put_incomplete(key, member)

    def _put_incomplete(self, key: GroupKey, member: QueuedPod) -> None:
        self._incomplete[member.key] = member
        self._unknown.setdefault(key, {})[member.key] = None
        self._moved(member)

    def _take_incomplete(self, key: str) -> QueuedPod | None:
        member = self._incomplete.pop(key, None)
        if member is not None:
            group = self._group_of(member)
            del self._unknown[group][key]
            if not self._unknown[group]:
                del self._unknown[group]
        return member

    def _group_of(self, member: QueuedPod) -> GroupKey:
        key = self._groups.key_of(member.pod)
        assert key is not None, member
        return key

    # --- attempts ---

    def _start_attempt(self, queued_pod: QueuedPod) -> bool:
        if not isinstance(queued_pod, QueuedGroup):
            return super()._start_attempt(queued_pod)
        queued_pod.attempts += 1
        for member in queued_pod.members:
            self._entry_of.pop(member.key, None)
        start, cycle = super()._start_attempt, self.scheduling_cycle
        queued_pod.members = [member for member in queued_pod.members if start(member)]
        if not queued_pod.members:
            return False
        self.scheduling_cycle = cycle + 1
        self._popped = queued_pod
        self._popped_uids = frozenset(member.uid for member in queued_pod.members)
        return True

    def add_unschedulable_if_not_present(self, queued_pod: QueuedPod) -> None:
        if not self._is_queued_with_group(queued_pod.pod):
            super().add_unschedulable_if_not_present(queued_pod)
            return
        try:
            if self._outside(queued_pod.key) or queued_pod.key in self._entry_of:
                raise QueueError(f"Pod {queued_pod.key} is already present in the queue")
            self._note_failure(queued_pod)
            self._add_member(queued_pod, SCHEDULE_ATTEMPT_FAILURE)
        finally:
            self.done(queued_pod.uid)

    def group_done(self, entry: QueuedGroup, status: Status | None) -> None:
        """The attempt of the group has ended: None if it could be placed.

        What is left of it, and what came meanwhile, is one entry again.
        """
        pending, self._pending, self._popped = self._pending, {}, None
        members = [member for member in pending.values() if self._is_still_known(entry, member)]
        if not members:
            return
        entry.members = members
        entry.sort()
        entry.gating_plugin, entry.gating_events = "", ()
        entry.backoff_expiry_ns = None
        self._map(entry)
        was_tried = any(member.uid in self._popped_uids for member in members)
        if status is not None or not was_tried:
            entry.timestamp_ns = self._clock.now_ns()
        entry.was_flushed_from_unschedulable = False
        entry.flush_timestamp_ns = None
        verdict = Verdict.AFTER_BACKOFF
        if status is None:
            # The next cycle follows at once, for what is left.
            entry.unschedulable_count = entry.consecutive_errors_count = 0
            verdict = Verdict.IMMEDIATELY
        elif status.is_rejected:
            entry.unschedulable_count += 1
            entry.consecutive_errors_count = 0
        else:
            entry.consecutive_errors_count += 1
        if self._is_poppable(self._requeue(entry, verdict, SCHEDULE_ATTEMPT_FAILURE)):
            self._wake_pops()

    def _is_still_known(self, entry: QueuedGroup, member: QueuedPod) -> bool:
        """Whether the member belongs to the entry; one whose group has gone waits for it."""
        key = self._group_of(member)
        if self._groups.root_of(key) == entry.root:
            return True
        self._add_member(member, SCHEDULE_ATTEMPT_FAILURE)
        return False

    # --- moves ---

    def _activate(self, pod: Pod) -> bool:
        entry = self._entry_of.get(key_of(pod))
        if entry is None:
            return super()._activate(pod)
        if entry.key in self._parked:
            return self._move_to_active(entry, FORCE_ACTIVATE.label)
        if self._backoff.discard(entry.key) is None:
            return False
        return self._move_to_active(entry, FORCE_ACTIVATE.label, is_from_backoff=True)

    # --- reading ---

    def get_pod(self, name: str, namespace: str) -> QueuedPod | None:
        key = f"{namespace}/{name}"
        return self._member(key) or super().get_pod(name, namespace)

    def place_of(self, pod: Pod) -> Place | None:
        key = key_of(pod)
        entry = self._entry_of.get(key)
        if entry is None:
            if self._outside(key) is not None:
                return Place.GATED
            return super().place_of(pod)
        if entry.key in self._active:
            return Place.ACTIVE
        if entry.key in self._backoff:
            failed = self._backoff.has_failed(entry.key)
            return Place.ERROR_BACKOFF if failed else Place.BACKOFF
        return Place.GATED if entry.is_gated else Place.UNSCHEDULABLE

    def next_try_ns(self, pod: Pod) -> int | None:
        entry = self._entry_of.get(key_of(pod))
        if entry is None:
            return super().next_try_ns(pod)
        return self._policy.expiry_ns(entry) if entry.key in self._backoff else None

    def pods_in_active(self) -> list[Pod]:
        return [member.pod for member in _members(self._active)]

    def pods_in_backoff(self) -> list[Pod]:
        return [member.pod for member in _members(self._backoff)]

    def pods_in_unschedulable(self) -> list[Pod]:
        """All parked pods, and the members that are in no entry."""
        outside = [member.pod for member in (*self.incomplete(), *self.pending())]
        return [*(member.pod for member in _members(self._parked)), *outside]

    def incomplete(self) -> Iterator[QueuedPod]:
        """Members whose group, or a part of its tree, is not known."""
        yield from self._incomplete.values()

    def pending(self) -> Iterator[QueuedPod]:
        """Members that wait for the attempt of their group to end."""
        yield from self._pending.values()

    # --- inside ---

    def _find_pod_info(self, key: str) -> PodInfo | None:
        member = self._member(key)
        return super()._find_pod_info(key) if member is None else member.pod_info

    def _member(self, key: str) -> QueuedPod | None:
        entry = self._entry_of.get(key)
        return self._outside(key) if entry is None else entry.find(key)

    def _outside(self, key: str) -> QueuedPod | None:
        """A member that is in no entry."""
        return self._pending.get(key) or self._incomplete.get(key)

    def _find_entry_of(self, pod: Pod) -> QueuedGroup | None:
        root = self._groups.root_of_pod(pod)
        return None if root is None else self._find_entry(root)

    def _find_entry(self, root: TreeNode) -> QueuedGroup | None:
        key = f"podgroup/{root.key}"
        found = self._active.get(key) or self._backoff.get(key) or self._parked.get(key)
        return found if isinstance(found, QueuedGroup) else None

    def _entries(self) -> list[QueuedGroup]:
        return list({id(entry): entry for entry in self._entry_of.values()}.values())

    def _map(self, entry: QueuedGroup) -> None:
        for member in entry.members:
            self._entry_of[member.key] = entry

    def _discard(self, entry: QueuedGroup) -> None:
        for container in (self._active, self._backoff, self._parked):
            container.discard(entry.key)

    def _moved(self, member: QueuedPod) -> None:
        call: Callable[[str], None] | None = self.on_moved
        if call is not None:
            call(member.key)


def _members(entries: Iterable[QueuedPod]) -> Iterator[QueuedPod]:
    for entry in entries:
        if isinstance(entry, QueuedGroup):
            yield from entry.members
        else:
            yield entry
