"""Which faults met which states: what has been tried, and what has not.

A fault counts once for every state that its replica is in when it happens. What happens to a pod or
a node counts for the states of the pods concerned; faults of plugins count for the extension point.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from kubestow.api.pod import Pod
from kubestow.cache.cache import Cache
from kubestow.errors import CacheError
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue
from kubestow.service.run import SchedulerProcess
from kubestow.testing.faults.fault import (
    EXTENDER_FAULTS,
    PLUGIN_FAULTS,
    PROVISION_FAULTS,
    REQUEST_FAULTS,
    WATCH_FAULTS,
    Point,
)
from kubestow.testing.faults.link import Link


class State(StrEnum):
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


class Met(NamedTuple):
    """A fault, or an action of a plan, by its name, and the state that it met."""

    fault: str
    state: State | Point


_STEPS: Final = (
    State.IN_CYCLE,
    State.ASSUMED,
    State.PERMIT,
    State.PRE_BIND,
    State.BINDING,
)
_LEADING: Final = (State.RELISTING, State.IDLE, State.QUEUED, State.PARKED, *_STEPS)
_RUNNING: Final = (State.STARTING, State.STANDBY, *_LEADING)
_OF_PODS: Final = (State.QUEUED, State.PARKED, *_STEPS, State.BOUND)

# What can happen to a replica, a pod and a node, besides faults.
PROCESS_ACTIONS: Final = ("kill", "pause", "cut_off", "move_clock")
POD_ACTIONS: Final = ("delete_pod", "bind_elsewhere", "delete_node")


def _possible() -> dict[str, tuple[State | Point, ...]]:
    possible: dict[str, tuple[State | Point, ...]] = {}
    for fault in (*REQUEST_FAULTS, *WATCH_FAULTS):
        possible[fault.name] = _RUNNING
    for fault in EXTENDER_FAULTS:
        possible[fault.name] = (State.RELISTING, State.QUEUED, State.PARKED, *_STEPS)
    for fault in PROVISION_FAULTS:
        possible[fault.name] = _LEADING
    possible |= dict.fromkeys(PROCESS_ACTIONS, _RUNNING)
    possible |= dict.fromkeys(POD_ACTIONS, _OF_PODS)
    # Pods that are being placed on it, or were.
    possible["delete_node"] = (*_STEPS[1:], State.BOUND)
    possible |= {fault.name: tuple(Point) for fault in PLUGIN_FAULTS}
    return possible


# Fault → the states in which it can happen.
POSSIBLE: Final[Mapping[str, tuple[State | Point, ...]]] = _possible()


def _important() -> tuple[Met, ...]:
    anytime = (State.STANDBY, State.QUEUED, State.PARKED, State.ASSUMED, State.BINDING)
    wanted: dict[str, tuple[State | Point, ...]] = {
        "BUSY": (*anytime, State.STARTING, State.PERMIT, State.PRE_BIND),
        "RETRY_AFTER": (State.STANDBY, State.QUEUED),
        "ERROR": (*anytime, State.STARTING, State.PERMIT, State.PRE_BIND),
        "CONFLICT": (State.QUEUED, State.ASSUMED, State.BINDING),
        "DROPPED": (*anytime, State.STARTING),
        "ANSWER_LOST": (State.QUEUED, State.ASSUMED, State.BINDING),
        "TRUNCATED": (State.STANDBY, State.QUEUED, State.ASSUMED),
        "SLOW": (*anytime, State.PERMIT, State.PRE_BIND),
        "SLOW_LIST": (State.STARTING,),
        "WATCH_CLOSED": (State.STANDBY, State.QUEUED, State.ASSUMED),
        "WATCH_CUT": (State.STANDBY, State.QUEUED, State.ASSUMED),
        "WATCH_GONE": (State.STANDBY, State.QUEUED, State.ASSUMED),
        "WATCH_DELAYED": anytime,
        "WATCH_REPEATED": (State.STANDBY, State.QUEUED, State.ASSUMED),
        "WATCH_LOST": (State.STANDBY, State.QUEUED, State.ASSUMED),
        "EXTENDER_SLOW": (State.QUEUED, State.ASSUMED),
        "EXTENDER_SILENT": (State.QUEUED,),
        "EXTENDER_ERROR": (State.QUEUED,),
        "EXTENDER_JUNK": (State.QUEUED,),
        "PROVISION_LATE": (State.PRE_BIND, State.IDLE),
        "PROVISION_FAILS": (State.PRE_BIND,),
        "PROVISION_ELSEWHERE": (State.PRE_BIND,),
        "kill": (State.STANDBY, State.QUEUED, *_STEPS[1:]),
        "pause": (State.STANDBY, State.QUEUED, *_STEPS[1:]),
        "cut_off": (State.STANDBY, State.QUEUED, *_STEPS[1:]),
        "move_clock": (State.STANDBY,),
        "delete_pod": (State.QUEUED, State.PARKED, *_STEPS[1:], State.BOUND),
        "bind_elsewhere": (State.QUEUED, State.PARKED, *_STEPS[1:]),
        "delete_node": (*_STEPS[1:], State.BOUND),
        "PLUGIN_RAISES": tuple(Point),
        "PLUGIN_JUNK": tuple(Point),
    }
    return tuple(Met(fault, state) for fault, states in wanted.items() for state in states)


# What a run of some dozens of seeds has to meet.
IMPORTANT: Final = _important()


def never_met(met: Counter[Met]) -> list[Met]:
    """The combinations that are possible and have not been met."""
    pairs = (Met(fault, state) for fault, states in POSSIBLE.items() for state in states)
    return [pair for pair in pairs if not met[pair]]


def replica_states(process: SchedulerProcess | None, link: Link) -> set[State]:
    """What a replica is doing now."""
    if process is None:
        return {State.DOWN}
    if not process.has_synced:
        return {State.STARTING}
    states: set[State] = set()
    if any(informer.is_listing for informer in process.watcher.informers):
        states.add(State.RELISTING)
    if not process.is_active:
        return states | {State.STANDBY}
    scheduler = process.scheduler
    queue = scheduler.queue.statistics()
    is_cycling = scheduler.cycles is not None and not scheduler.cycles.are_idle.is_set()
    busy = (
        (State.QUEUED, queue.active or queue.backoff or queue.error_backoff),
        (State.IN_CYCLE, is_cycling),
        (State.ASSUMED, scheduler.cache.statistics().assumed_pods),
        (State.PERMIT, any(True for _ in scheduler.waiting_pods)),
        (State.PRE_BIND, scheduler.binder.in_pre_bind),
        (State.BINDING, link.binding),
    )
    doing = {state for state, is_so in busy if is_so} or {State.IDLE}
    if queue.unschedulable or queue.gated:
        doing.add(State.PARKED)
    return states | doing


_OF_PLACES: Final = {
    Place.ACTIVE: State.QUEUED,
    Place.BACKOFF: State.QUEUED,
    Place.ERROR_BACKOFF: State.QUEUED,
    Place.UNSCHEDULABLE: State.PARKED,
    Place.GATED: State.PARKED,
}


def pod_states(process: SchedulerProcess, link: Link, pods: Iterable[Pod]) -> set[State]:
    """Where these pods are, at the scheduler that leads."""
    states: set[State] = set()
    scheduler = process.scheduler
    assert isinstance(scheduler.queue, SchedulingQueue)
    for pod in pods:
        uid = pod.metadata.uid
        place = scheduler.queue.place_of(pod)
        is_assumed = _is_assumed(scheduler.cache, pod)
        if place in _OF_PLACES:
            states.add(_OF_PLACES[place])
        elif place is Place.IN_FLIGHT and not is_assumed:
            states.add(State.IN_CYCLE)
        if is_assumed:
            states.add(State.ASSUMED)
        elif pod.spec.node_name:
            states.add(State.BOUND)
        if scheduler.waiting_pods.get(uid) is not None:
            states.add(State.PERMIT)
        if uid in scheduler.binder.in_pre_bind:
            states.add(State.PRE_BIND)
        if uid in link.binding:
            states.add(State.BINDING)
    return states


def _is_assumed(cache: Cache, pod: Pod) -> bool:
    try:
        return cache.is_assumed(pod)
    except CacheError:
        return False
