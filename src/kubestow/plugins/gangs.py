"""Gangs as people ask for them, where upstream decides otherwise (docs/guides/pod-groups.md).

The plugin has the options, which the parts that schedule groups read from `Groups.options`, and
gives up gangs that wait too long for the rest of their members:

    placed ── waits at Permit of GangScheduling ──┬── enough members are placed ──► bound
                                                  └── timeout ──► all go back to the queue
"""

import asyncio
from collections.abc import Iterator
from typing import ClassVar

from kubestow.api.gang_dialects import key_of_object
from kubestow.api.group import GangOptions, Group, GroupKey
from kubestow.api.pod import Pod
from kubestow.api.pod_group import AnyPodGroup
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import CPU, PODS
from kubestow.config.plugin_args import GangsArgs
from kubestow.config.scalars import Duration
from kubestow.errors import ConfigError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import PreFilterResult
from kubestow.framework.reuse import Concern, PodReads, Reuse
from kubestow.framework.status import Status
from kubestow.framework.waiting import WaitingPod, go_duration
from kubestow.index.nodes import Nodes


class Gangs:
    name: ClassVar[str] = "Gangs"
    args_type: ClassVar[type[GangsArgs]] = GangsArgs

    def __init__(self, args: object, handle: Handle) -> None:
        if not isinstance(args, GangsArgs):
            raise ConfigError(f"got args of type {type(args).__name__}, want GangsArgs")
        self.options = options_of(args)
        self.reuse = Reuse(pod=PodReads.CLUSTER, basis=self._concern)
        self._groups = handle.groups
        self._waiting_pods = handle.waiting_pods
        self._timers: dict[GroupKey, asyncio.TimerHandle] = {}

    # --- minResources of scheduler-plugins ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        """Reject members while all nodes together have less free than the group asks for."""
        rules, cycle = self._rules(pod), state.group_cycle
        if rules is None or not rules.min_resources:
            return Status.skip()
        if cycle is not None and cycle.known_members().scheduled_count:
            return None  # What members use already is part of what the group needs.
        for name, quantity in rules.min_resources:
            needed = quantity.milli_value() if name == CPU else quantity.value()
            if _free(nodes, name) < needed:
                return Status.unschedulable(
                    f"the nodes have less {name} free than the minResources of pod group "
                    f"{rules.key}: {quantity}"
                )
        return None

    def _concern(self, pod: PodInfo) -> Concern:
        rules = self._rules(pod)
        has_any = rules is not None and bool(rules.min_resources)
        return Concern.BOTH if has_any else Concern.NOTHING

    def _rules(self, pod: PodInfo) -> Group | None:
        key = self._groups.key_of(pod.pod)
        return None if key is None else self._groups.rules(key)

    # --- waiting ---

    def events(self) -> Registrations:
        """For members that fit, of a group that does not: what lets it be placed differently."""
        return [
            on(Resource.POD, Action.ADD, self._hint_for_pod),
            on(Resource.POD_GROUP, Action.ADD, self._hint_for_group),
            on(Resource.POD, Action.DELETE),
            on(
                Resource.NODE,
                Action.ADD
                | Action.UPDATE_NODE_ALLOCATABLE
                | Action.UPDATE_NODE_LABEL
                | Action.UPDATE_NODE_TAINT,
            ),
        ]

    def _hint_for_pod(self, pod: Pod, old: object, new: Pod) -> Hint:
        return Hint.QUEUE if self._groups.concerns(self._groups.key_of(new), pod) else Hint.SKIP

    def _hint_for_group(self, pod: Pod, old: object, new: AnyPodGroup) -> Hint:
        return Hint.QUEUE if self._groups.concerns(key_of_object(new), pod) else Hint.SKIP

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """Start the time of a gang when its first member waits; stop it when the gang is whole."""
        key = self._groups.key_of(pod.pod)
        rules = None if key is None else self._groups.rules(key)
        if key is None or rules is None or state.group_cycle is not None:
            return None, 0
        first = self._groups.pod_sets(key)[0]
        if not self._groups.missing_count(key):
            self._stop(first)
        elif next(self._waiting_members(key), None) is None:
            self._stop(first)  # of members that have gone since
            assert rules.timeout_s is not None, rules
            self._timers[first] = asyncio.get_running_loop().call_later(
                rules.timeout_s, self._give_up, key, first, rules.timeout_s
            )
        return None, 0

    def _stop(self, first: GroupKey) -> None:
        timer = self._timers.pop(first, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self, key: GroupKey, first: GroupKey, timeout_s: float) -> None:
        """Send the members that wait back to the queue, with all that they hold."""
        del self._timers[first]
        text = (
            f"pod group {key} was given up after waiting {go_duration(timeout_s)} "
            f"for {self._groups.missing_count(key)} more members to be placed"
        )
        for waiting in tuple(self._waiting_members(key)):
            waiting.reject(self.name, text)

    def _waiting_members(self, key: GroupKey) -> Iterator[WaitingPod]:
        for pod_set in self._groups.pod_sets(key):
            members = self._groups.find(pod_set)
            for uid in () if members is None else members.assumed:
                waiting = self._waiting_pods.get(uid)
                if waiting is not None:
                    yield waiting


def _free(nodes: Nodes, name: str) -> int:
    """What all nodes together have left of a resource."""
    if name == PODS:
        return int((nodes.allowed_pods - nodes.pod_count).clip(0).sum())
    column = nodes.resource_column(name)
    if column is None:
        return 0
    return int((nodes.allocatable(column) - nodes.requested(column)).clip(0).sum())


def options_of(args: GangsArgs) -> GangOptions:
    return GangOptions(
        evicts_for_whole=args.evict_for_whole_groups,
        waits_for_events=args.wait_for_events,
        ignores_surplus=args.ignore_surplus,
        counts_finished=args.count_finished,
        timeout_s=Duration.parse(args.scheduling_timeout).seconds,
        joins_pod_sets=args.join_pod_sets,
        topology_levels=args.topology_levels,
        evicts_whole=args.evict_whole_gangs,
        dialects=args.dialects,
    )
