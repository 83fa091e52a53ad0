"""Groups of pods as the scheduler knows them: their rules, which members are placed (spec 11 §4).

The state of a group is built from pods alone: it exists while a pod names the group, with or
without an object that has the rules. Members are kept in the order in which they were first seen.

      add ──► unscheduled ── assume ──► assumed ── add (bound) ──► assigned
                   ▲                      │                            │
                   └────── forget ────────┘          remove ◄──────────┘

By choice (`options`) members that have succeeded count, and groups belong together as pod sets.
Not here: which pods of a group are tried together (`engine.groups`).
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from kubestow.api.gang_dialects import Dialect, DialectReader
from kubestow.api.group import (
    AS_UPSTREAM,
    GangOptions,
    Group,
    GroupKey,
    group_key_of,
    group_of,
)
from kubestow.api.pod import Pod, is_terminating
from kubestow.api.pod_group import AnyPodGroup, PodGroup
from kubestow.cache.objects import ObjectStore
from kubestow.errors import CacheError

log = logging.getLogger(__name__)


class GroupMembers:
    """The members of one group.

    `pods` has all of them by UID; each is unscheduled, assumed (with the copy that names the node)
    or assigned. `tried` are the unscheduled ones that the current cycle has taken from the queue.
    `leaving` are the scheduled ones that are being evicted or deleted.
    """

    __slots__ = ("assigned", "assumed", "leaving", "pods", "tried", "unscheduled")

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        # Dictionaries without values are sets that keep the order.
        self.unscheduled: dict[str, None] = {}
        self.assumed: dict[str, Pod] = {}
        self.assigned: dict[str, None] = {}
        self.tried: set[str] = set()
        self.leaving: set[str] = set()

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def scheduled_count(self) -> int:
        return len(self.assumed) + len(self.assigned)

    @property
    def staying_count(self) -> int:
        """How many of those scheduled are not about to leave."""
        return self.scheduled_count - len(self.leaving)

    def unscheduled_pods(self) -> list[Pod]:
        return [self.pods[uid] for uid in self.unscheduled]

    def idle_pods(self) -> list[Pod]:
        """Unscheduled members that the current cycle does not try."""
        if len(self.tried) == len(self.unscheduled):
            return []
        return [self.pods[uid] for uid in self.unscheduled if uid not in self.tried]

    def scheduled_pods(self) -> list[Pod]:
        """Assigned members, then the copies of the assumed ones."""
        return [*(self.pods[uid] for uid in self.assigned), *self.assumed.values()]

    def add(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.pods[uid] = pod
        if not pod.spec.node_name:
            self.unscheduled[uid] = None
            return
        self.assigned[uid] = None
        # Another process has bound it. Upstream counts it as unscheduled, too, until the pod
        # changes again.
        self._leave_unscheduled(uid)

    def update(self, old: Pod, new: Pod) -> None:
        uid = new.metadata.uid
        self.pods[uid] = new
        if not old.spec.node_name and new.spec.node_name:
            self.assigned[uid] = None
            self._leave_unscheduled(uid)
            self.assumed.pop(uid, None)

    def remove(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.assumed.pop(uid, None)
        self.assigned.pop(uid, None)
        self.leaving.discard(uid)
        self._leave_unscheduled(uid)

    def assume(self, pod: Pod) -> None:
        """Count a member as placed; no effect for a pod that was removed meanwhile."""
        uid = pod.metadata.uid
        known = self.pods.get(uid)
        if known is None:
            return
        if known.spec.node_name:
            self.assigned[uid] = None
        else:
            self.assumed[uid] = pod
        self._leave_unscheduled(uid)

    def forget(self, uid: str) -> None:
        known = self.pods.get(uid)
        if known is None:
            return
        self.assumed.pop(uid, None)
        if known.spec.node_name:
            self.assigned[uid] = None
        else:
            self.unscheduled[uid] = None
            self.leaving.discard(uid)

    def copy(self) -> "GroupMembers":
        copy = GroupMembers()
        copy.pods = self.pods.copy()
        copy.unscheduled = self.unscheduled.copy()
        copy.assumed = self.assumed.copy()
        copy.assigned = self.assigned.copy()
        copy.tried = self.tried.copy()
        copy.leaving = self.leaving.copy()
        return copy

    def _leave_unscheduled(self, uid: str) -> None:
        self.unscheduled.pop(uid, None)
        self.tried.discard(uid)


class Groups:
    """The groups of a cluster; their rules are those of the objects that the informer delivers."""

    # Whether the object of a group is part of its state, with or without members.
    keeps_objects: ClassVar[bool] = False

    def __init__(self, pod_groups: ObjectStore[PodGroup]) -> None:
        self.options: GangOptions = AS_UPSTREAM
        self._reader = DialectReader(AS_UPSTREAM)
        # The objects of other APIs that have rules of groups.
        self.other_objects: dict[Dialect, ObjectStore[Any]] = {}
        self._pod_groups = pod_groups
        self._members: dict[GroupKey, GroupMembers] = {}
        self._rules: dict[GroupKey, Group] = {}
        # UIDs of pods whose eviction has begun, perhaps without a sign of it in the API yet.
        self._evicted: set[str] = set()
        # UIDs of members that have succeeded.
        self._finished: dict[GroupKey, dict[str, None]] = {}
        pod_groups.subscribe(self._forget_rules)

    def __len__(self) -> int:
        return len(self._members)

    def configure(self, options: GangOptions) -> None:
        """Use these options; before the first pod arrives."""
        self.options = options
        self._reader = DialectReader(options)
        # Any: the objects of a dialect have its own type.
        self.other_objects = {dialect: ObjectStore[Any]() for dialect in self._reader.dialects}
        for store in self.other_objects.values():
            store.subscribe(self._forget_rules)

    # --- reading ---

    def key_of(self, pod: Pod) -> GroupKey | None:
        """The group that the pod is a member of."""
        key = group_key_of(pod)
        if key is None:
            for label in self._reader.labels:
                name = pod.metadata.labels.get(label)
                if name:
                    return GroupKey(pod.metadata.namespace, name)
        return key

    def rules(self, key: GroupKey) -> Group | None:
        """The rules of a group; None as long as no object has them."""
        rules = self._rules.get(key)
        if rules is None:
            rules = self._read(key)
            if rules is None:
                return None
            self._rules[key] = rules
        if rules.min_count is None or key not in self._finished:
            return rules
        return rules._replace(min_count=max(rules.min_count - self.finished_count(key), 0))

    def _read(self, key: GroupKey) -> Group | None:
        """The rules of the object that has the name; upstream's comes first."""
        pod_group = self._pod_groups.get(*key)
        if pod_group is not None:
            return group_of(pod_group, self.options)
        for dialect, store in self.other_objects.items():
            other = store.get(*key)
            if other is not None:
                return self._reader.read(dialect, other)
        return None

    def finished_count(self, key: GroupKey) -> int:
        """How many members have succeeded and are known as nothing else."""
        finished, members = self._finished.get(key), self._members.get(key)
        if finished is None:
            return 0
        # The watch that reports the end of a pod may be ahead of the one that lets it go.
        return len(finished) if members is None else len(finished.keys() - members.pods.keys())

    def pod_sets(self, key: GroupKey) -> tuple[GroupKey, ...]:
        """The groups that are placed together with this one, itself included."""
        rules = self._rules.get(key) or self.rules(key)
        return (key,) if rules is None or not rules.pod_sets else rules.pod_sets

    def concerns(self, changed: GroupKey | None, pod: Pod) -> bool:
        """Whether that group is the pod's, or placed together with it."""
        key = self.key_of(pod)
        return key is not None and changed in self.pod_sets(key)

    def missing_count(
        self, key: GroupKey, trial: Mapping[GroupKey, GroupMembers] | None = None
    ) -> int:
        """How many members have to be placed until the group and its pod sets have their minimum.

        `trial` has the members as a cycle has placed them; None: as they are.
        """
        placed = self._members if trial is None else trial
        missing = 0
        for pod_set in self.pod_sets(key):
            rules, members = self.rules(pod_set), placed.get(pod_set)
            # A group that is not known yet has at least one member.
            min_count = 1 if rules is None else rules.min_count or 0
            count = 0
            if members is not None:
                # By choice, what is about to leave is no part of a gang any more.
                is_own = self.options.evicts_whole
                count = members.staying_count if is_own else members.scheduled_count
            missing += max(min_count - count, 0)
        return missing

    def is_leaving(self, pod: Pod) -> bool:
        """Whether a member is being evicted or deleted."""
        key = self.key_of(pod)
        members = None if key is None else self._members.get(key)
        return members is not None and pod.metadata.uid in members.leaving

    def required_rules(self, key: GroupKey) -> Group:
        """The rules of a group; CacheError with the text of a lister if no object has them."""
        rules = self.rules(key)
        if rules is None:
            raise CacheError(f'podgroup.scheduling.k8s.io "{key.name}" not found')
        return rules

    def object_of(self, key: GroupKey) -> AnyPodGroup | None:
        """The API object of a group, for its status and for events."""
        stores = (self._pod_groups, *self.other_objects.values())
        return next((found for store in stores if (found := store.get(*key)) is not None), None)

    def members(self, key: GroupKey) -> GroupMembers:
        members = self._members.get(key)
        if members is None:
            raise CacheError(f"pod group state not found for pod group {key}")
        return members

    def find(self, key: GroupKey) -> GroupMembers | None:
        return self._members.get(key)

    def all_members(self) -> Mapping[GroupKey, GroupMembers]:
        return self._members

    # --- changes ---

    def add(self, pod: Pod) -> None:
        key = self.key_of(pod)
        if key is None:
            return
        members = self._members.setdefault(key, GroupMembers())
        members.add(pod)
        uid = pod.metadata.uid
        if pod.spec.node_name and (is_terminating(pod) or uid in self._evicted):
            members.leaving.add(uid)

    def update(self, old: Pod, new: Pod) -> None:
        key = self.key_of(new)
        if key is None:
            return
        members = self._members.get(key)
        if members is None:
            log.error("group %s of updated pod %s is not known", key, new.metadata.name)
            return
        members.update(old, new)

    def remove(self, pod: Pod) -> None:
        key = self.key_of(pod)
        members = None if key is None else self._members.get(key)
        if key is None or members is None:
            return
        members.remove(pod.metadata.uid)
        if not members.pods:
            del self._members[key]

    def assume(self, pod: Pod) -> None:
        key = self.key_of(pod)
        if key is None:
            return
        members = self._members.get(key)
        if members is None:
            # Spec 11 §4.3, S6: the copy has a node, so the member counts as assigned.
            members = self._members[key] = GroupMembers()
            members.pods[pod.metadata.uid] = pod
        members.assume(pod)

    def forget(self, pod: Pod) -> None:
        key = self.key_of(pod)
        if key is None:
            return
        members = self._members.get(key)
        if members is None:
            log.error("group %s of forgotten pod %s is not known", key, pod.metadata.name)
            return
        members.forget(pod.metadata.uid)

    def start_leaving(self, pods: Iterable[Pod]) -> None:
        """Note pods that are about to be evicted: they no longer count as members of a gang."""
        for pod in pods if self._members else ():
            key, uid = self.key_of(pod), pod.metadata.uid
            members = None if key is None else self._members.get(key)
            if members is not None and uid in members.pods and uid not in members.unscheduled:
                self._evicted.add(uid)
                members.leaving.add(uid)

    def stop_leaving(self, pods: Iterable[Pod]) -> None:
        """The evictions were requested, or have failed: from now on the pods themselves show it."""
        for pod in pods:
            key, uid = self.key_of(pod), pod.metadata.uid
            members = None if key is None else self._members.get(key)
            self._evicted.discard(uid)
            known = None if members is None else members.pods.get(uid)
            if members is not None and known is not None and not is_terminating(known):
                members.leaving.discard(uid)

    def finish(self, pod: Pod) -> None:
        """The pod has succeeded."""
        key = self.key_of(pod)
        if key is not None:
            self._finished.setdefault(key, {})[pod.metadata.uid] = None

    def forget_finished(self, pod: Pod) -> None:
        """A pod that had succeeded was deleted."""
        key = self.key_of(pod)
        finished = None if key is None else self._finished.get(key)
        if key is None or finished is None:
            return
        finished.pop(pod.metadata.uid, None)
        if not finished:
            del self._finished[key]

    def _forget_rules(self, old: AnyPodGroup | None, new: AnyPodGroup | None) -> None:
        changed = old if new is None else new
        assert changed is not None
        self._rules.pop(GroupKey(changed.metadata.namespace, changed.metadata.name), None)

    def start_trying(self, key: GroupKey, uids: Iterable[str]) -> None:
        """The current cycle tries these members."""
        members = self._members.get(key)
        if members is not None:
            members.tried = {uid for uid in uids if uid in members.unscheduled}

    def stop_trying(self, pod: Pod) -> None:
        """The member went back to the queue."""
        key = self.key_of(pod)
        members = None if key is None else self._members.get(key)
        if members is not None:
            members.tried.discard(pod.metadata.uid)
