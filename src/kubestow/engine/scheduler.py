"""The scheduler: takes one pod after the other from the queue and places it (spec 04 §3).

    queue ── pop ──► snapshot ──► decide ──► assume, Reserve, Permit ──► a task that binds
                                    │                   │
                                    └──── failure ◄─────┴── back to the queue, condition, event

A scheduling cycle (`schedule_one`) is a plain function that never waits. Binding runs beside it. A
cycle that calls extenders waits for them while the loop goes on, and one that takes long rests
(`waiting_cycle`).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kubestow.api.pod import Pod, is_terminating
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.bind import Binder
from kubestow.engine.decide import Decider
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.collect import GroupAttempt
from kubestow.engine.groups.cycle import GroupScheduler
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.engine.handlers import EventHandlers
from kubestow.engine.listeners import DecisionListener
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.placing import Placer
from kubestow.engine.set_aside import SetAside
from kubestow.engine.tasks import BackgroundTasks
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.errors import CacheError, SetAsideError
from kubestow.framework.faults import attempt_fault
from kubestow.framework.handle import EventSink
from kubestow.framework.metrics import CycleMeter
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.framework.waiting import WaitingPods
from kubestow.queue import Queue, QueuedPod

log = logging.getLogger(__name__)

# Between two turns of the event loop at most this many cycles run, and none begins after this time,
# so that watches and bindings wait for a few milliseconds or one slow cycle.
CYCLES_PER_TURN_MAX: Final = 16
TURN_S: Final = 0.01

SCHEDULING_CYCLE: Final = "scheduling cycle"


class SchedulingAttempt(NamedTuple):
    profile: Profile
    queued_pod: QueuedPod
    meter: CycleMeter
    earlier_s: float  # what it took before it was set aside
    may_be_set_aside: bool


@dataclass(kw_only=True, eq=False)
class Scheduler:
    """The loop over parts that `engine.factory` makes.

    `events` and `profiles` are by scheduler name. The watches feed `objects` and `handlers`.
    """

    profiles: Mapping[str, Profile]
    objects: ClusterObjects
    cache: Cache
    snapshot: Snapshot
    queue: Queue
    waiting_pods: WaitingPods
    decider: Decider
    binder: Binder
    placer: Placer
    failures: FailureHandler
    handlers: EventHandlers
    events: Mapping[str, EventSink]
    tasks: BackgroundTasks
    metrics: SchedulerMetrics
    listeners: Sequence[DecisionListener] = ()
    history: DecisionListener | None = None  # called as listeners are; needs no timings
    cycles: WaitingCycles | None = None  # None: extenders and long cycles block the loop
    # Called when a cycle begins that may wait for extenders.
    on_waiting_cycle: Callable[[QueuedPod], None] | None = None
    extenders: ExtenderChain | None = None
    groups: GroupScheduler | None = None  # None: members of groups are pods like others
    # How long scheduling pauses after a group that could not be placed; simulations need some.
    group_pause_s: float = 0.0
    _pauses: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._set_aside = SetAside(self._resume, self.tasks.spawn)

    async def run(self) -> None:
        """Schedule until the queue is closed."""
        cycles, turn_started_s = 0, self.metrics.now_s()
        while True:
            queued_pod = self.queue.pop_nowait()
            if queued_pod is None:
                queued_pod = await self.queue.pop()
                if queued_pod is None:
                    return
                cycles, turn_started_s = 0, self.metrics.now_s()
            if self.cycles is not None and not self.cycles.are_idle.is_set():
                await self._idle(self.cycles)
            if self._may_wait(queued_pod):
                has_victims = await self._schedule_waiting(queued_pod)
            elif self.groups is None:
                decision = self.schedule_one(queued_pod)
                has_victims = decision is not None and decision.has_victims
            else:
                has_victims = self.schedule(queued_pod)
            if self._pauses:
                self._pauses = False
                await asyncio.sleep(self.group_pause_s)
            cycles += 1
            # After an eviction the watch comes first: the deletions of earlier victims decide
            # whether the next preemptor needs more.
            is_turn_over = (
                cycles >= CYCLES_PER_TURN_MAX or self.metrics.now_s() - turn_started_s > TURN_S
            )
            if is_turn_over or has_victims:
                await asyncio.sleep(0)
                cycles, turn_started_s = 0, self.metrics.now_s()

    @staticmethod
    async def _idle(cycles: WaitingCycles) -> None:
        """Return when no cycle waits: one that was set aside may do so beside the queue."""
        while not cycles.are_idle.is_set():
            await cycles.are_idle.wait()

    def _may_wait(self, queued_pod: QueuedPod) -> bool:
        extenders = self.extenders
        return (
            self.cycles is not None
            and extenders is not None
            and extenders.is_interested(queued_pod.pod)
        )

    def schedule(self, queued_pod: QueuedPod) -> bool:
        """One scheduling cycle, of the pod or of its group; whether it evicts pods."""
        groups = self.groups
        if groups is not None and groups.is_member(queued_pod):
            return self._schedule_group(groups, queued_pod)
        decision = self.schedule_one(queued_pod)
        return decision is not None and decision.has_victims

    def schedule_one(self, queued_pod: QueuedPod, earlier_s: float = 0.0) -> Decision | None:
        """The cycle of a single pod; None if it was skipped, or set aside for a while."""
        attempt = self._begin(queued_pod, earlier_s)
        if attempt is None:
            return None
        try:
            decision = self._decide(attempt)
        except SetAsideError as error:
            self._set_aside.add(queued_pod, earlier_s, error)
            return None
        return self.conclude(attempt, decision)

    async def _schedule_waiting(
        self, queued_pod: QueuedPod, earlier_s: float = 0.0, *, may_be_set_aside: bool = True
    ) -> bool:
        """The same; the loop goes on while the cycle waits for extenders or rests."""
        groups = self.groups
        if groups is not None and groups.is_member(queued_pod):
            return await self._schedule_group_waiting(groups, queued_pod)
        attempt = self._begin(queued_pod, earlier_s, may_be_set_aside=may_be_set_aside)
        if attempt is None:
            return False
        if self.on_waiting_cycle is not None:
            self.on_waiting_cycle(queued_pod)
        assert self.cycles is not None
        try:
            with self.snapshot.held(self.cache):
                decision = await self.cycles.run(lambda: self._decide(attempt))
        except SetAsideError as error:
            self._set_aside.add(queued_pod, earlier_s, error)
            return False
        return self.conclude(attempt, decision).has_victims

    def _schedule_group(self, groups: GroupScheduler, popped: QueuedPod) -> bool:
        attempt = groups.collect(popped)
        if attempt is None:
            return False
        started_s = self.metrics.now_s()
        outcome = groups.decide(attempt)
        return self._conclude_group(groups, attempt, outcome, started_s)

    async def _schedule_group_waiting(self, groups: GroupScheduler, popped: QueuedPod) -> bool:
        attempt = groups.collect(popped)
        if attempt is None:
            return False
        started_s = self.metrics.now_s()
        if self.on_waiting_cycle is not None:
            self.on_waiting_cycle(popped)
        assert self.cycles is not None
        with self.snapshot.held(self.cache):
            outcome = await self.cycles.run(lambda: groups.decide(attempt))
        return self._conclude_group(groups, attempt, outcome, started_s)

    def _conclude_group(
        self,
        groups: GroupScheduler,
        attempt: GroupAttempt,
        outcome: GroupOutcome,
        started_s: float,
    ) -> bool:
        groups.conclude(attempt, outcome, started_s)
        self._pauses = self.group_pause_s > 0 and outcome.status is not None
        return outcome.is_waiting or outcome.has_victims

    async def _resume(self, queued_pod: QueuedPod, earlier_s: float, in_turns: bool) -> None:
        """Try again what was set aside; the pod has been in flight all the time."""
        if self.cycles is not None:
            await self._idle(self.cycles)
        metadata = queued_pod.pod.metadata
        known = self.objects.pods.get(metadata.namespace, metadata.name)
        if known is None or known.metadata.uid != metadata.uid or known.spec.node_name:
            self.queue.done(queued_pod.uid)
        elif in_turns or self._may_wait(queued_pod):
            await self._schedule_waiting(queued_pod, earlier_s, may_be_set_aside=not in_turns)
        else:
            self.schedule_one(queued_pod, earlier_s)

    def _begin(
        self, queued_pod: QueuedPod, earlier_s: float = 0.0, *, may_be_set_aside: bool = True
    ) -> "SchedulingAttempt | None":
        profile = self.profiles.get(queued_pod.scheduler_name)
        if profile is None:
            log.error('profile not found for scheduler name "%s"', queued_pod.scheduler_name)
        if profile is None or self.skips(queued_pod.pod, profile):
            self.queue.done(queued_pod.uid)
            return None
        meter = self.metrics.start_attempt(profile.name, keeps_timings=bool(self.listeners))
        return SchedulingAttempt(profile, queued_pod, meter, earlier_s, may_be_set_aside)

    def conclude(self, attempt: "SchedulingAttempt", decision: Decision) -> Decision:
        profile, queued_pod, meter, _, _ = attempt
        meter.algorithm_ended()
        self.metrics.decided(decision)
        for listener in self.listeners:
            listener(decision, queued_pod)
        if self.history is not None:
            self.history(decision, queued_pod)
        if decision.status is not None:
            self.failures.handle(queued_pod, decision.status, decision.nomination, meter)
        else:
            self.placer.place(profile, queued_pod, decision)
        return decision

    def skips(self, pod: Pod, profile: Profile) -> bool:
        """Whether the pod is not to be tried: it is being deleted, or was placed already."""
        if is_terminating(pod):
            self.events[profile.name].record(
                pod,
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note=f"skip schedule deleting pod: {pod.metadata.namespace}/{pod.metadata.name}",
            )
            return True
        try:
            return self.cache.is_assumed(pod)
        except CacheError:
            return False  # Spec 04 §3: a pod without UID is not skipped.

    def _decide(self, attempt: "SchedulingAttempt") -> Decision:
        profile, queued_pod, meter, earlier_s, may_be_set_aside = attempt
        try:
            self.snapshot.refresh(self.cache)
        except CacheError as error:
            decision = Decision(queued_pod.pod_info, profile.name, self.snapshot.names)
            return decision.fail(Status.from_error(error), CLEAR_NOMINATION)
        try:
            return self.decider.decide(
                profile,
                queued_pod.pod_info,
                meter,
                earlier_s,
                may_be_set_aside=may_be_set_aside,
            )
        except SetAsideError:
            raise
        except BaseException as error:
            # Deciding changes nothing but what is derived from the snapshot. If the process ended
            # here, the same pod would end it again after every restart.
            decision = Decision(queued_pod.pod_info, profile.name, self.snapshot.names)
            return decision.fail(attempt_fault(error, SCHEDULING_CYCLE), CLEAR_NOMINATION)
