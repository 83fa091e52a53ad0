"""Holds the members of a gang back until enough of them are there, and placed (spec 11 §6).

PreEnqueue   enough members exist        else the pod stays out of the queue
Permit       enough members are placed   else the pod waits, and the last one releases all
"""

from collections.abc import Hashable
from typing import ClassVar, Final

from kubestow.api.gang_dialects import key_of_object
from kubestow.api.group import GroupKey
from kubestow.api.pod import Pod
from kubestow.api.pod_group import AnyPodGroup
from kubestow.api.pod_info import PodInfo
from kubestow.errors import CacheError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.group_cycle import GroupCycle
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.framework.waiting import PERMIT_WAIT_S_MAX

PERMIT_TIMEOUT_S: Final = 300.0
TOO_FEW_EXIST: Final = Status.unresolvable(
    "waiting for minCount pods from a gang to appear in scheduling queue"
)
OTHERS_MISSING: Final = Status.unresolvable(
    "waiting for the pod groups that are placed together with this one, and their pods"
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
            on(Resource.POD, Action.ADD, self._hint_for_pod),
            on(Resource.POD_GROUP, Action.ADD, self._hint_for_group),
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
        if rules.min_count is not None and len(self._groups.members(key)) < rules.min_count:
            return TOO_FEW_EXIST
        return None if all(map(self._has_enough, rules.pod_sets)) else OTHERS_MISSING

    def gate_key(self, subject: object) -> GroupKey | None:
        if isinstance(subject, Pod):
            return self._groups.key_of(subject)
        return key_of_object(subject)

    def is_open(self, key: Hashable) -> bool:
        assert isinstance(key, GroupKey), key
        return all(map(self._has_enough, self._groups.pod_sets(key)))

    def _has_enough(self, key: GroupKey) -> bool:
        """Whether the group's object and enough members exist."""
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
        if rules.min_count is None and not rules.pod_sets:
            return None, 0
        cycle = state.group_cycle
        members = self._groups.members(key) if cycle is None else cycle.known_members()
        if self._groups.missing_count(key, None if cycle is None else cycle.by_key):
            idle = members.idle_pods() if cycle is None else cycle.idle
            if idle:
                self._handle.activate(idle)
            # By choice another plugin ends the wait of all members at once.
            is_own = rules.timeout_s is None
            return TOO_FEW_PLACED, PERMIT_TIMEOUT_S if is_own else PERMIT_WAIT_S_MAX
        # A timeout is that of members which are released together, so not by a trial.
        if cycle is None or rules.timeout_s is None:
            self._release(key, cycle)
        return None, 0

    def _release(self, key: GroupKey, cycle: GroupCycle | None) -> None:
        """Let the members that wait be bound, also if only the trial has enough of them (§7.4)."""
        waiting_pods = self._handle.waiting_pods
        if not len(waiting_pods):
            return
        for pod_set in self._groups.pod_sets(key):
            members = self._groups.find(pod_set) if cycle is None else cycle.by_key.get(pod_set)
            for uid in () if members is None else members.assumed:
                waiting = waiting_pods.get(uid)
                if waiting is not None:
                    waiting.allow(self.name)

    def _hint_for_pod(self, pod: Pod, old: object, new: Pod) -> Hint:
        return Hint.QUEUE if self._groups.concerns(self._groups.key_of(new), pod) else Hint.SKIP

    def _hint_for_group(self, pod: Pod, old: object, new: AnyPodGroup) -> Hint:
        return Hint.QUEUE if self._groups.concerns(key_of_object(new), pod) else Hint.SKIP
