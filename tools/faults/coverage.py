"""Which faults met which states: what has been tried, and what has not.

A fault counts once for every state that its replica is in when it happens. What happens to a pod or
a node counts for the states of the pods concerned; faults of plugins count for the extension point.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from kubestow.api.group import group_key_of
from kubestow.api.pod import Pod
from kubestow.cache.cache import Cache
from kubestow.errors import CacheError
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue
from kubestow.service.run import SchedulerProcess
from tools.faults.fault import (
    EXTENDER_FAULTS,
    PLUGIN_FAULTS,
    PROVISION_FAULTS,
    REQUEST_FAULTS,
    WATCH_FAULTS,
    Point,
)
from tools.faults.link import Link


class PodState(StrEnum):
    """What a replica is doing, or what a pod is waiting for."""

    DOWN = "no process"
    STARTING = "starting"
    STANDBY = "standby"
    RELISTING = "relisting"
    IDLE = "idle"
    QUEUED = "queued"
    PARKED = "parked"
    IN_CYCLE = "in cycle"
    ASSUMED = "assumed"
    PERMIT = "at permit"
    PRE_BIND = "in prebind"
    BINDING = "binding sent"
    BOUND = "bound"
    GANG = "gang"  # some members are placed and not bound yet; of a pod, that it is a member


class Met(NamedTuple):
    """A fault, or an action of a plan, by its name, and the state that it met."""

    fault: str
    state: PodState | Point


_STEPS: Final = (
    PodState.IN_CYCLE,
    PodState.ASSUMED,
    PodState.PERMIT,
    PodState.PRE_BIND,
    PodState.BINDING,
)
_LEADING: Final = (
    PodState.RELISTING,
    PodState.IDLE,
    PodState.QUEUED,
    PodState.PARKED,
    *_STEPS,
    PodState.GANG,
)
_RUNNING: Final = (PodState.STARTING, PodState.STANDBY, *_LEADING)
_OF_PODS: Final = (PodState.QUEUED, PodState.PARKED, *_STEPS, PodState.BOUND, PodState.GANG)

# What can happen to a replica, a pod and a node, besides faults.
PROCESS_ACTIONS: Final = ("kill", "pause", "cut_off", "move_clock")
POD_ACTIONS: Final = ("delete_pod", "bind_elsewhere", "delete_node")


def _possible() -> dict[str, tuple[PodState | Point, ...]]:
    possible: dict[str, tuple[PodState | Point, ...]] = {}
    for fault in (*REQUEST_FAULTS, *WATCH_FAULTS):
        possible[fault.name] = _RUNNING
    for fault in EXTENDER_FAULTS:
        possible[fault.name] = (PodState.RELISTING, PodState.QUEUED, PodState.PARKED, *_STEPS)
    for fault in PROVISION_FAULTS:
        possible[fault.name] = _LEADING
    possible |= dict.fromkeys(PROCESS_ACTIONS, _RUNNING)
    possible |= dict.fromkeys(POD_ACTIONS, _OF_PODS)
    # Pods that are being placed on it, or were.
    possible["delete_node"] = (*_STEPS[1:], PodState.BOUND, PodState.GANG)
    possible |= {fault.name: tuple(Point) for fault in PLUGIN_FAULTS}
    return possible


# Fault → the states in which it can happen.
POSSIBLE: Final[Mapping[str, tuple[PodState | Point, ...]]] = _possible()


def _important() -> tuple[Met, ...]:
    anytime = (
        PodState.STANDBY,
        PodState.QUEUED,
        PodState.PARKED,
        PodState.ASSUMED,
        PodState.BINDING,
    )
    wanted: dict[str, tuple[PodState | Point, ...]] = {
        "BUSY": (*anytime, PodState.STARTING, PodState.PERMIT, PodState.PRE_BIND),
        "RETRY_AFTER": (PodState.STANDBY, PodState.QUEUED),
        "ERROR": (*anytime, PodState.STARTING, PodState.PERMIT, PodState.PRE_BIND),
        "CONFLICT": (PodState.QUEUED, PodState.ASSUMED, PodState.BINDING),
        "DROPPED": (*anytime, PodState.STARTING),
        "ANSWER_LOST": (PodState.QUEUED, PodState.ASSUMED, PodState.BINDING),
        "TRUNCATED": (PodState.STANDBY, PodState.QUEUED, PodState.ASSUMED),
        "SLOW": (*anytime, PodState.PERMIT, PodState.PRE_BIND),
        "SLOW_LIST": (PodState.STARTING,),
        "WATCH_CLOSED": (PodState.STANDBY, PodState.QUEUED, PodState.ASSUMED),
        "WATCH_CUT": (PodState.STANDBY, PodState.QUEUED, PodState.ASSUMED),
        "WATCH_GONE": (PodState.STANDBY, PodState.QUEUED, PodState.ASSUMED),
        "WATCH_DELAYED": anytime,
        "WATCH_REPEATED": (PodState.STANDBY, PodState.QUEUED, PodState.ASSUMED),
        "WATCH_LOST": (PodState.STANDBY, PodState.QUEUED, PodState.ASSUMED),
        "EXTENDER_SLOW": (PodState.QUEUED, PodState.ASSUMED),
        "EXTENDER_SILENT": (PodState.QUEUED,),
        "EXTENDER_ERROR": (PodState.QUEUED,),
        "EXTENDER_JUNK": (PodState.QUEUED,),
        "PROVISION_LATE": (PodState.PRE_BIND, PodState.IDLE),
        "PROVISION_FAILS": (PodState.PRE_BIND,),
        "PROVISION_ELSEWHERE": (PodState.PRE_BIND,),
        "kill": (PodState.STANDBY, PodState.QUEUED, *_STEPS[1:]),
        "pause": (PodState.STANDBY, PodState.QUEUED, *_STEPS[1:]),
        "cut_off": (PodState.STANDBY, PodState.QUEUED, *_STEPS[1:]),
        "move_clock": (PodState.STANDBY,),
        "delete_pod": (PodState.QUEUED, PodState.PARKED, *_STEPS[1:], PodState.BOUND),
        "bind_elsewhere": (PodState.QUEUED, PodState.PARKED, *_STEPS[1:]),
        "delete_node": (*_STEPS[1:], PodState.BOUND),
        "PLUGIN_RAISES": tuple(Point),
        "PLUGIN_JUNK": tuple(Point),
    }
    for fault in ("ERROR", "ANSWER_LOST", "SLOW", "kill", "pause", *POD_ACTIONS):
        wanted[fault] = (*wanted[fault], PodState.GANG)
    return tuple(Met(fault, state) for fault, states in wanted.items() for state in states)


# What a run of some dozens of seeds has to meet.
IMPORTANT: Final = _important()


def never_met(met: Counter[Met]) -> list[Met]:
    """The combinations that are possible and have not been met."""
    pairs = (Met(fault, state) for fault, states in POSSIBLE.items() for state in states)
    return [pair for pair in pairs if not met[pair]]


def replica_states(process: SchedulerProcess | None, link: Link) -> set[PodState]:
    """What a replica is doing now."""
    if process is None:
        return {PodState.DOWN}
    if not process.has_synced:
        return {PodState.STARTING}
    states: set[PodState] = set()
    if any(informer.is_listing for informer in process.watcher.informers):
        states.add(PodState.RELISTING)
    if not process.is_active:
        return states | {PodState.STANDBY}
    scheduler = process.scheduler
    queue = scheduler.queue.statistics()
    is_cycling = scheduler.cycles is not None and not scheduler.cycles.are_idle.is_set()
    busy = (
        (PodState.QUEUED, queue.active or queue.backoff or queue.error_backoff),
        (PodState.IN_CYCLE, is_cycling),
        (PodState.ASSUMED, scheduler.cache.statistics().assumed_pods),
        (PodState.PERMIT, any(True for _ in scheduler.waiting_pods)),
        (PodState.PRE_BIND, scheduler.binder.in_pre_bind),
        (PodState.BINDING, link.binding),
        (PodState.GANG, _places_a_gang(scheduler.cache)),
    )
    doing = {state for state, is_so in busy if is_so} or {PodState.IDLE}
    if queue.unschedulable or queue.gated:
        doing.add(PodState.PARKED)
    return states | doing


_OF_PLACES: Final = {
    Place.ACTIVE: PodState.QUEUED,
    Place.BACKOFF: PodState.QUEUED,
    Place.ERROR_BACKOFF: PodState.QUEUED,
    Place.UNSCHEDULABLE: PodState.PARKED,
    Place.GATED: PodState.PARKED,
}


def pod_states(process: SchedulerProcess, link: Link, pods: Iterable[Pod]) -> set[PodState]:
    """Where these pods are, at the scheduler that leads."""
    states: set[PodState] = set()
    scheduler = process.scheduler
    assert isinstance(scheduler.queue, SchedulingQueue)
    for pod in pods:
        uid = pod.metadata.uid
        place = scheduler.queue.place_of(pod)
        is_assumed = _is_assumed(scheduler.cache, pod)
        if place in _OF_PLACES:
            states.add(_OF_PLACES[place])
        elif place is Place.IN_FLIGHT and not is_assumed:
            states.add(PodState.IN_CYCLE)
        if is_assumed:
            states.add(PodState.ASSUMED)
        elif pod.spec.node_name:
            states.add(PodState.BOUND)
        if scheduler.waiting_pods.get(uid) is not None:
            states.add(PodState.PERMIT)
        if uid in scheduler.binder.in_pre_bind:
            states.add(PodState.PRE_BIND)
        if uid in link.binding:
            states.add(PodState.BINDING)
        if scheduler.groups is not None and group_key_of(pod) is not None:
            states.add(PodState.GANG)
    return states


def _places_a_gang(cache: Cache) -> bool:
    groups = cache.groups
    return groups is not None and any(each.assumed for each in groups.all_members().values())


def _is_assumed(cache: Cache, pod: Pod) -> bool:
    try:
        return cache.is_assumed(pod)
    except CacheError:
        return False
