"""Holds the members of a gang back until enough of them are there, and placed (spec 11 §6).

PreEnqueue   enough members exist        else the pod stays out of the queue
Permit       enough members are placed   else the pod waits, and the last one releases all
"""

from collections.abc import Hashable
from typing import ClassVar, Final

from kubestow.api.group import GroupKey, group_key_of
from kubestow.api.pod import Pod
from kubestow.api.pod_group import PodGroup
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import GroupMembers
from kubestow.errors import CacheError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status

PERMIT_TIMEOUT_S: Final = 300.0
TOO_FEW_EXIST: Final = Status.unresolvable(
    "waiting for minCount pods from a gang to appear in scheduling queue"
)
TOO_FEW_PLACED: Final = Status.wait("waiting for minCount pods from a gang to be scheduled")


class GangScheduling:
    name: ClassVar[str] = "GangScheduling"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._groups = handle.groups

    def events(self) -> Registrations:
        return [
            on(Resource.POD, Action.ADD, _hint_for_pod),
            on(Resource.POD_GROUP, Action.ADD, _hint_for_group),
        ]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        key = self._groups.key_of(pod)
        if key is None:
            return None
        rules = self._groups.rules(key)
        if rules is None:
            return Status.unresolvable(
                f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            )
        if rules.min_count is None:
            return None
        return TOO_FEW_EXIST if len(self._groups.members(key)) < rules.min_count else None

    def gate_key(self, subject: object) -> GroupKey | None:
        if isinstance(subject, Pod):
            return self._groups.key_of(subject)
        if isinstance(subject, PodGroup):
            return GroupKey(subject.metadata.namespace, subject.metadata.name)
        return None

    def is_open(self, key: Hashable) -> bool:
        assert isinstance(key, GroupKey), key
        rules, members = self._groups.rules(key), self._groups.find(key)
        if rules is None or members is None:
            return False
        return rules.min_count is None or len(members) >= rules.min_count

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        key = self._groups.key_of(pod.pod)
        if key is None:
            return None, 0
        try:
            rules = self._groups.required_rules(key)
        except CacheError as error:
            raise PluginError(f"failed to get podGroup {key}: {error}") from error
        if rules.min_count is None:
            return None, 0
        cycle = state.group_cycle
        members = self._groups.members(key) if cycle is None else cycle.known_members()
        if members.scheduled_count < rules.min_count:
            idle = members.idle_pods() if cycle is None else cycle.idle
            if idle:
                self._handle.activate(idle)
            return TOO_FEW_PLACED, PERMIT_TIMEOUT_S
        self._release(members)
        return None, 0

    def _release(self, members: GroupMembers) -> None:
        """Let the members that wait be bound, also if only the trial has enough of them (§7.4)."""
        waiting_pods = self._handle.waiting_pods
        if not len(waiting_pods):
            return
        for uid in members.assumed:
            waiting = waiting_pods.get(uid)
            if waiting is not None:
                waiting.allow(self.name)


def _hint_for_pod(pod: Pod, old: object, new: Pod) -> Hint:
    key = group_key_of(pod)
    return Hint.QUEUE if key is not None and key == group_key_of(new) else Hint.SKIP


def _hint_for_group(pod: Pod, old: object, new: PodGroup) -> Hint:
    key = group_key_of(pod)
    meta = new.metadata
    return Hint.QUEUE if key == (meta.namespace, meta.name) else Hint.SKIP
