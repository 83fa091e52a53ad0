"""What must hold for pod groups: a gang is whole or absent, and waits only if it does not fit.

Upstream places a gang as a whole, but each member is bound by itself (spec 11 §7.5): a binding that
fails, a process that ends between two bindings, or a member that is deleted leaves a part of a
gang. So a gang may be in parts only if one of these has happened to it, which is noted here.
"""

from collections import Counter
from collections.abc import Iterable

from kubestow.api.group import GroupKey, group_key_of
from kubestow.api.pod import Pod, first_condition, is_terminal, is_terminating
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cache.groups import GroupMembers
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import POD_GROUPS, PODS
from kubestow.engine.groups.collect import CollectedGroup
from kubestow.engine.groups.condition import type_of
from kubestow.engine.scheduler import Scheduler
from kubestow.plugins.gang_scheduling import GangScheduling
from kubestow.queue import QueuedPod
from tools.faults.invariants import Report
from tools.faults.queued import entries, tried_pods


class Gangs:
    def __init__(self, cluster: MemoryCluster, report: Report) -> None:
        self._cluster = cluster
        self._report = report
        # Groups of which a member was lost after it was placed, or may have been.
        self._broken_up: set[GroupKey] = set()
        # How many gangs were found whole, absent, or in parts.
        self.found: Counter[str] = Counter()

    # --- what breaks gangs up ---

    def member_lost(self, pod: Pod) -> None:
        """The pod is deleted, is placed by another client, or its placement has failed."""
        key = group_key_of(pod)
        if key is not None:
            self._broken_up.add(key)

    def interrupted(self, scheduler: Scheduler) -> None:
        """A scheduler ends: the members that it is placing may be lost."""
        groups = scheduler.cache.groups
        if groups is not None:
            self._broken_up.update(
                key for key, members in groups.all_members().items() if members.assumed
            )

    async def watch_deletions(self) -> None:
        watch = self._cluster.watch(PODS, from_version=max(self._cluster.version, 1))
        while batch := await watch.next_batch():
            for event in batch:
                pod = event.object
                if isinstance(pod, Pod) and (event.type == "DELETED" or is_terminating(pod)):
                    self.member_lost(pod)

    # --- once it is quiet ---

    def judge(self, scheduler: Scheduler) -> None:
        """`scheduler` is that of the leader."""
        pods_of: dict[GroupKey, list[Pod]] = {}
        for stored in self._cluster.objects_of(PODS):
            pod = stored.typed
            if isinstance(pod, Pod) and not is_terminal(pod):
                key = group_key_of(pod)
                if key is not None:
                    pods_of.setdefault(key, []).append(pod)
        for key, pods in pods_of.items():
            self._check_whole(key, pods)
        self._compare_state(scheduler, pods_of)
        self._check_conditions(scheduler)

    def _check_whole(self, key: GroupKey, pods: Iterable[Pod]) -> None:
        group = self._stored(key)
        # As the server has it: the API versions of the editions differ in other parts.
        gang = group and value_at(group.document, "spec", "schedulingPolicy", "gang")
        if not gang:
            return
        min_count: int = gang["minCount"]
        bound_count = sum(1 for pod in pods if pod.spec.node_name)
        is_whole, is_absent = bound_count >= min_count, bound_count == 0
        self.found["whole" if is_whole else "absent" if is_absent else "in parts"] += 1
        if not is_whole and not is_absent and key not in self._broken_up:
            text = f"{bound_count} of {min_count} members of {key.name} are bound"
            self._report("a gang is whole or absent", text)

    def _compare_state(self, scheduler: Scheduler, pods_of: dict[GroupKey, list[Pod]]) -> None:
        """The groups of the cache are those of the server."""
        groups = scheduler.cache.groups
        assert groups is not None
        shown = {key: _shown_pods(pods) for key, pods in pods_of.items()}
        cached = {key: _shown_members(each) for key, each in groups.all_members().items()}
        for key in sorted(shown.keys() | cached.keys()):
            if shown.get(key) != cached.get(key):
                text = f"{key.name} is {shown.get(key)}, the scheduler has {cached.get(key)}"
                self._report("cache equals server", text)

    def _check_conditions(self, scheduler: Scheduler) -> None:
        """Groups that are tried again and again have a condition."""
        assert scheduler.groups is not None
        if count := scheduler.groups.conditions.pending_count:
            self._report("no leftovers", f"{count} conditions of groups are still being written")
        for attempt in waiting_groups(scheduler):
            stored = self._stored(attempt.key)
            group = None if stored is None else stored.typed
            if (
                isinstance(group, UpstreamPodGroup)
                and first_condition(group.status.conditions, type_of(group)) is None
            ):
                self._report("every waiting group has its condition", attempt.key.name)

    def judge_forgotten(self, scheduler: Scheduler) -> None:
        """No group waits that could be placed."""
        scheduler.snapshot.refresh(scheduler.cache)
        for attempt in waiting_groups(scheduler):
            if scheduler.groups is not None and scheduler.groups.fits(attempt):
                text = f"{attempt.key.name} waits though it fits"
                self._report("no gang forgotten", text)
        for queued_pod in _held_back(scheduler):
            text = f"{queued_pod.key} waits for members that are there"
            self._report("no gang forgotten", text)

    def _stored(self, key: GroupKey) -> StoredObject | None:
        resource = self._cluster.resources.named(POD_GROUPS.qualified_name)
        return self._cluster.find(resource, key.namespace, key.name)


def waiting_groups(scheduler: Scheduler) -> list[CollectedGroup]:
    """The groups with members in the queue that are not held back by a gate."""
    found: dict[GroupKey, list[QueuedPod]] = {}
    for queued_pod in tried_pods(scheduler):
        key = group_key_of(queued_pod.pod)
        if key is not None and not is_terminating(queued_pod.pod):
            found.setdefault(key, []).append(queued_pod)
    return [
        CollectedGroup(key, scheduler.profiles[members[0].scheduler_name], members)
        for key, members in found.items()
    ]


def _held_back(scheduler: Scheduler) -> list[QueuedPod]:
    """Entries whose members wait for others of their gang, though enough exist."""
    found: list[QueuedPod] = []
    for entry in entries(scheduler):
        plugin = scheduler.profiles[entry.scheduler_name].plugins.get(GangScheduling.name)
        if isinstance(plugin, GangScheduling) and entry.gating_plugin == plugin.name:
            key = plugin.gate_key(entry.pod)
            if key is not None and plugin.is_open(key):
                found.append(entry)
    return found


def _shown_pods(pods: Iterable[Pod]) -> list[str]:
    return sorted(f"{pod.metadata.name} on {pod.spec.node_name or 'no node'}" for pod in pods)


def _shown_members(members: GroupMembers) -> list[str]:
    shown = _shown_pods(members.pods.values())
    if (
        members.assumed
        or members.tried
        or len(members.unscheduled) + len(members.assigned) != len(shown)
    ):
        shown.append(f"{len(members.assumed)} assumed, {len(members.tried)} being tried")
    return shown
