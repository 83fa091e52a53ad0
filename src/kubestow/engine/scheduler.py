"""The scheduler: takes one pod after the other from the queue and places it (spec 04 §3).

    queue ── pop ──► snapshot ──► decide ──► assume, Reserve, Permit ──► a task that binds
                                    │                   │
                                    └──── failure ◄─────┴── back to the queue, condition, event

An attempt, of a pod or of a group, decides and concludes. Its scheduling cycle (`decide`) is a
plain function that never waits; binding runs beside it. A cycle that calls extenders waits for them
while the loop goes on, and one of a group, or one that takes long, rests (`waiting_cycle`):
`_schedule` chooses.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod, is_terminating
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.bind import Binder
from kubestow.engine.decide import Decider
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.cycle import GroupEngine, GroupEngineAttempt
from kubestow.engine.handlers import EventHandlers
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.observer import DecisionListener, Observer, callers
from kubestow.engine.placing import Placer
from kubestow.engine.set_aside import SetAside
from kubestow.engine.tasks import BackgroundTasks
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.errors import CacheError, SetAsideError
from kubestow.framework.faults import SCHEDULING_CYCLE, attempt_fault
from kubestow.framework.handle import EventSink
from kubestow.framework.metrics import CycleMeter
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.framework.waiting import WaitingPods
from kubestow.queue import Queue, QueuedPod

if TYPE_CHECKING:
    from kubestow.engine.batching import Batches

log = logging.getLogger(__name__)

# Between two turns of the event loop no cycle begins after this time, so that watches and bindings
# wait for a few milliseconds or one slow cycle. Many cycles in a row take less time each: what they
# read stays in the caches of the processor.
TURN_S: Final = 0.01
# In virtual time, which stands still meanwhile, at most this many cycles run.
CYCLES_PER_TURN_MAX: Final = 16


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
    observers: Sequence[Observer] = ()
    cycles: WaitingCycles | None = None  # None: extenders and long cycles block the loop
    extenders: ExtenderChain | None = None
    batches: "Batches | None" = None  # None: pods of no profile have signatures
    groups: GroupEngine | None = None  # None: members of groups are pods like others
    # The kinds of objects that have the rules of groups.
    group_kinds: tuple[type[ApiObject], ...] = ()
    # How long scheduling pauses after a group that could not be placed; simulations need some.
    group_pause_s: float = 0.0

    def __post_init__(self) -> None:
        self.set_aside = SetAside(self._resume, self.tasks.spawn)
        self.is_in_real_time = False
        # Called after some cycles, and before the loop waits for a pod.
        self.on_turn_over: Callable[[], None] | None = None
        self._on_began = callers(self.observers, Observer.began)
        self.on_decided = callers(self.observers, Observer.decided)

    def prepare(self) -> None:
        """Read all nodes before the first pod comes: that takes as long as many attempts."""
        # An attempt reports the error, and tries again.
        with suppress(CacheError):
            self.snapshot.refresh(self.cache)

    async def run(self) -> None:
        """Schedule until the queue is closed."""
        cycles, turn_started_s = 0, self.metrics.now_s()
        while True:
            queued_pod = self.queue.pop_nowait()
            if queued_pod is None:
                self._end_turn()
                queued_pod = await self.queue.pop()
                if queued_pod is None:
                    return
                cycles, turn_started_s = 0, self.metrics.now_s()
            if self.cycles is not None and not self.cycles.are_idle.is_set():
                await self._idle(self.cycles)
            has_victims = await self._schedule(queued_pod)
            cycles += 1
            # After an eviction the watch comes first: the deletions of earlier victims decide
            # whether the next preemptor needs more.
            is_turn_over = self.metrics.now_s() - turn_started_s > TURN_S or (
                cycles >= CYCLES_PER_TURN_MAX and not self.is_in_real_time
            )
            if is_turn_over or has_victims:
                self._end_turn()
                await asyncio.sleep(0)
                cycles, turn_started_s = 0, self.metrics.now_s()

    def _end_turn(self) -> None:
        if self.on_turn_over is not None:
            self.on_turn_over()

    @staticmethod
    async def _idle(cycles: WaitingCycles) -> None:
        """Return when no cycle waits: one that was set aside may do so beside the queue."""
        while not cycles.are_idle.is_set():
            await cycles.are_idle.wait()

    def _may_wait(self, queued_pod: QueuedPod) -> bool:
        """Whether the cycle is made in turns with the loop from its beginning."""
        if self.cycles is None:
            return False
        groups, extenders = self.groups, self.extenders
        if groups is not None and groups.is_member(queued_pod):
            return True
        return extenders is not None and extenders.is_interested(queued_pod.pod)

    async def _schedule(
        self, queued_pod: QueuedPod, earlier_s: float = 0.0, *, in_turns: bool = False
    ) -> bool:
        """One attempt in the way that it needs; whether it evicts pods.

        The loop goes on while a cycle waits for extenders or, `in_turns`, rests.
        """
        if not in_turns and not self._may_wait(queued_pod):
            attempt = self.schedule_one(queued_pod, earlier_s)
            if attempt is None:
                return False
        else:
            attempt = self.begin(queued_pod, earlier_s, waits=True, may_be_set_aside=not in_turns)
            if attempt is None:
                return False
            assert self.cycles is not None
            with self.snapshot.held(self.cache):
                await self.cycles.run(attempt.decide)
            attempt.conclude()
        if attempt.is_unplaced_group and self.group_pause_s > 0:
            await asyncio.sleep(self.group_pause_s)
        return attempt.has_victims

    def schedule_one(self, queued_pod: QueuedPod, earlier_s: float = 0.0) -> "Attempt | None":
        """One attempt without waiting; None if the pod was skipped."""
        attempt = self.begin(queued_pod, earlier_s)
        if attempt is not None:
            attempt.decide()
            attempt.conclude()
        return attempt

    def begin(
        self,
        queued_pod: QueuedPod,
        earlier_s: float = 0.0,
        *,
        waits: bool = False,
        may_be_set_aside: bool = True,
    ) -> "Attempt | None":
        """The attempt of the pod or of its group, not decided yet; None if there is nothing to try.

        `earlier_s` is what it took before it was set aside. With `waits` its cycle is run so that
        the loop goes on while it waits.
        """
        groups = self.groups
        if groups is not None and groups.is_member(queued_pod):
            attempt = groups.begin(queued_pod)
            if attempt is None:
                return None
        else:
            profile = self.profiles.get(queued_pod.scheduler_name)
            if profile is None:
                log.error('profile not found for scheduler name "%s"', queued_pod.scheduler_name)
            if profile is None or self.skips(queued_pod.pod, profile):
                self.queue.done(queued_pod.uid)
                return None
            meter = self.metrics.start_attempt(profile.name, keeps_timings=bool(self.listeners))
            attempt = PodAttempt(self, profile, queued_pod, meter, earlier_s, may_be_set_aside)
        for call in self._on_began:
            call(queued_pod, waits=waits)
        return attempt

    async def _resume(self, queued_pod: QueuedPod, earlier_s: float, in_turns: bool) -> None:
        """Try again what was set aside; the pod has been in flight all the time."""
        if self.cycles is not None:
            await self._idle(self.cycles)
        metadata = queued_pod.pod.metadata
        known = self.objects.pods.get(metadata.namespace, metadata.name)
        if known is None or known.metadata.uid != metadata.uid or known.spec.node_name:
            self.queue.done(queued_pod.uid)
        else:
            await self._schedule(queued_pod, earlier_s, in_turns=in_turns)

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


@dataclass(slots=True, eq=False)
class PodAttempt:
    """The attempt of a single pod, which `begin` has begun; see `GroupAttempt` for that of a group.

    `decide` is its cycle; `conclude` carries out what that came to. `decision` is None until it is
    made, and if the attempt was set aside.
    """

    _scheduler: Scheduler
    _profile: Profile
    queued_pod: QueuedPod
    _meter: CycleMeter
    _earlier_s: float
    _may_be_set_aside: bool
    decision: Decision | None = None
    _set_aside: SetAsideError | None = None
    is_unplaced_group: ClassVar[bool] = False

    @property
    def has_victims(self) -> bool:
        return self.decision is not None and self.decision.has_victims

    def decide(self) -> None:
        scheduler = self._scheduler
        try:
            scheduler.snapshot.refresh(scheduler.cache)
        except CacheError as error:
            self._fail(Status.from_error(error))
            return
        batches = scheduler.batches
        try:
            self.decision = scheduler.decider.decide(
                self._profile,
                self.queued_pod.pod_info,
                self._meter,
                self._earlier_s,
                may_be_set_aside=self._may_be_set_aside,
                batch=None if batches is None else batches.attempt(self._profile, self.queued_pod),
            )
        except SetAsideError as error:
            self._set_aside = error
        except BaseException as error:
            # Deciding changes nothing but what is derived from the snapshot. If the process ended
            # here, the same pod would end it again after every restart.
            self._fail(attempt_fault(error, SCHEDULING_CYCLE))

    def _fail(self, status: Status) -> None:
        names = self._scheduler.snapshot.names
        decision = Decision(self.queued_pod.pod_info, self._profile.name, names)
        self.decision = decision.fail(status, CLEAR_NOMINATION)

    def conclude(self) -> None:
        scheduler, queued_pod, decision = self._scheduler, self.queued_pod, self.decision
        if decision is None:
            # Not kept: its traceback refers to this attempt.
            error, self._set_aside = self._set_aside, None
            assert error is not None
            scheduler.set_aside.add(queued_pod, self._earlier_s, error)
            return
        meter = self._meter
        meter.algorithm_ended()
        scheduler.metrics.decided(decision)
        for listener in scheduler.listeners:
            listener(decision, queued_pod)
        for call in scheduler.on_decided:
            call(decision, queued_pod)
        if decision.status is not None:
            scheduler.failures.handle(queued_pod, decision.status, decision.nomination, meter)
        else:
            scheduler.placer.place(self._profile, queued_pod, decision)


Attempt = PodAttempt | GroupEngineAttempt
