"""The scheduler: takes one pod after the other from the queue and places it (spec 04 §3).

    queue ── pop ──► snapshot ──► decide ──► assume, Reserve, Permit ──► a task that binds
                                    │                   │
                                    └──── failure ◄─────┴── back to the queue, condition, event

A scheduling cycle (`schedule_one`) is a plain function that never waits. Binding runs beside it. A
cycle that calls extenders waits for them while the loop goes on (`waiting_cycle`).
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from kubestow.api.pod import Pod, is_terminating
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.bind import Binder, Placement, rejected_on
from kubestow.engine.decide import Decider
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.failure import FailureHandler
from kubestow.engine.handlers import EventHandlers
from kubestow.engine.metrics import SchedulerMetrics
from kubestow.engine.set_aside import SetAside
from kubestow.engine.tasks import BackgroundTasks
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.errors import CacheError, SetAsideError
from kubestow.framework.faults import attempt_fault
from kubestow.framework.handle import EventSink
from kubestow.framework.metrics import PERMIT, RESERVE, UNRESERVE, CycleMeter
from kubestow.framework.profile import Profile
from kubestow.framework.runner import run_permit, run_reserve, run_unreserve
from kubestow.framework.status import Code, Status
from kubestow.framework.waiting import PERMIT_WAIT_S_MAX, WaitingPods
from kubestow.queue import Queue, QueuedPod

log = logging.getLogger(__name__)

# Between two turns of the event loop at most this many cycles run, and none begins after this time,
# so that watches and bindings wait for a few milliseconds or one slow cycle.
CYCLES_PER_TURN_MAX: Final = 16
TURN_S: Final = 0.01

SCHEDULING_CYCLE: Final = "scheduling cycle"


class DecisionListener(Protocol):
    """Called with every decision, before the pod is placed or goes back to the queue.

    The decision is valid during the call only, because the next cycle overwrites what it refers to;
    `decision.freeze()` gives a copy to keep. Timings are kept if there is a listener.
    """

    def __call__(self, decision: Decision, queued_pod: QueuedPod, /) -> None: ...


class _Attempt(NamedTuple):
    profile: Profile
    queued_pod: QueuedPod
    meter: CycleMeter
    earlier_s: float  # what it took before it was set aside


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
    failures: FailureHandler
    handlers: EventHandlers
    events: Mapping[str, EventSink]
    tasks: BackgroundTasks
    metrics: SchedulerMetrics
    listeners: Sequence[DecisionListener] = ()
    cycles: WaitingCycles | None = None  # None: extenders block the loop
    extenders: ExtenderChain | None = None

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
            if self._may_wait(queued_pod):
                decision = await self._schedule_waiting(queued_pod)
            else:
                decision = self.schedule_one(queued_pod)
            cycles += 1
            # After an eviction the watch comes first: the deletions of earlier victims decide
            # whether the next preemptor needs more.
            is_turn_over = (
                cycles >= CYCLES_PER_TURN_MAX or self.metrics.now_s() - turn_started_s > TURN_S
            )
            if is_turn_over or (decision is not None and decision.has_victims):
                await asyncio.sleep(0)
                cycles, turn_started_s = 0, self.metrics.now_s()

    def _may_wait(self, queued_pod: QueuedPod) -> bool:
        extenders = self.extenders
        return (
            self.cycles is not None
            and extenders is not None
            and extenders.is_interested(queued_pod.pod)
        )

    def schedule_one(self, queued_pod: QueuedPod, earlier_s: float = 0.0) -> Decision | None:
        """One scheduling cycle; None if the pod was skipped, or set aside for a while."""
        attempt = self._begin(queued_pod, earlier_s)
        if attempt is None:
            return None
        try:
            decision = self._decide(attempt)
        except SetAsideError as error:
            self._set_aside.add(queued_pod, earlier_s, error)
            return None
        return self._conclude(attempt, decision)

    async def _schedule_waiting(
        self, queued_pod: QueuedPod, earlier_s: float = 0.0
    ) -> Decision | None:
        """The same; the loop goes on while the cycle waits for extenders."""
        attempt = self._begin(queued_pod, earlier_s)
        if attempt is None:
            return None
        assert self.cycles is not None
        try:
            with self.snapshot.held(self.cache):
                decision = await self.cycles.run(lambda: self._decide(attempt))
        except SetAsideError as error:
            self._set_aside.add(queued_pod, earlier_s, error)
            return None
        return self._conclude(attempt, decision)

    async def _resume(self, queued_pod: QueuedPod, earlier_s: float) -> None:
        """Try again what was set aside; the pod has been in flight all the time."""
        if self.cycles is not None:
            await self.cycles.are_idle.wait()
        metadata = queued_pod.pod.metadata
        known = self.objects.pods.get(metadata.namespace, metadata.name)
        if known is None or known.metadata.uid != metadata.uid or known.spec.node_name:
            self.queue.done(queued_pod.uid)
        elif self._may_wait(queued_pod):
            await self._schedule_waiting(queued_pod, earlier_s)
        else:
            self.schedule_one(queued_pod, earlier_s)

    def _begin(self, queued_pod: QueuedPod, earlier_s: float = 0.0) -> "_Attempt | None":
        profile = self.profiles.get(queued_pod.scheduler_name)
        if profile is None:
            log.error('profile not found for scheduler name "%s"', queued_pod.scheduler_name)
        if profile is None or self._skips(queued_pod.pod, profile):
            self.queue.done(queued_pod.uid)
            return None
        meter = self.metrics.start_attempt(profile.name, keeps_timings=bool(self.listeners))
        return _Attempt(profile, queued_pod, meter, earlier_s)

    def _conclude(self, attempt: "_Attempt", decision: Decision) -> Decision:
        profile, queued_pod, meter, _ = attempt
        meter.algorithm_ended()
        self.metrics.decided(decision)
        for listener in self.listeners:
            listener(decision, queued_pod)
        if decision.status is not None:
            self.failures.handle(queued_pod, decision.status, decision.nomination, meter)
        else:
            self._place(profile, queued_pod, decision)
        return decision

    def _skips(self, pod: Pod, profile: Profile) -> bool:
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

    def _decide(self, attempt: "_Attempt") -> Decision:
        profile, queued_pod, meter, earlier_s = attempt
        try:
            self.snapshot.refresh(self.cache)
        except CacheError as error:
            decision = Decision(queued_pod.pod_info, profile.name, self.snapshot.names)
            return decision.fail(Status.from_error(error), CLEAR_NOMINATION)
        try:
            return self.decider.decide(profile, queued_pod.pod_info, meter, earlier_s)
        except SetAsideError:
            raise
        except BaseException as error:
            # Deciding changes nothing but what is derived from the snapshot. If the process ended
            # here, the same pod would end it again after every restart.
            decision = Decision(queued_pod.pod_info, profile.name, self.snapshot.names)
            return decision.fail(attempt_fault(error, SCHEDULING_CYCLE), CLEAR_NOMINATION)

    def _place(self, profile: Profile, queued_pod: QueuedPod, decision: Decision) -> None:
        """Assume the pod, run Reserve and Permit, and start binding (§10, §11)."""
        state, node_name = decision.state, decision.node_name
        assumed = queued_pod.copy_for_assume(queued_pod.pod_info.assigned_to(node_name))
        placement = Placement(
            profile,
            state,
            assumed,
            node_name,
            decision.evaluated_count,
            decision.feasible_count,
        )
        status = self._assume(placement)
        if status is not None:
            self.failures.handle(assumed, status, CLEAR_NOMINATION, state.meter)
            return
        if state.pods_to_activate:
            self.queue.activate(state.pods_to_activate.values())
            state.pods_to_activate.clear()
        # Binding runs beside other attempts, so the timer of attempts does not fit it.
        state.measure(state.meter)
        self.tasks.spawn(self.binder.bind(placement))

    def _assume(self, placement: Placement) -> Status | None:
        pod, node_name = placement.pod, placement.node_name
        try:
            self.cache.assume_pod(pod)
        except CacheError as error:
            return Status.from_error(error)
        self.queue.nominator.delete(pod.pod)
        meter = placement.state.meter
        meter.resume()
        placement.state.timer.resume()
        status = run_reserve(placement.profile, placement.state, pod, node_name)
        meter.point_ended(RESERVE, status)
        if status is None:
            outcome = run_permit(
                placement.profile, placement.state, pod, node_name, PERMIT_WAIT_S_MAX
            )
            status = outcome.status
            meter.point_ended(PERMIT, status)
            if status is not None and status.code == Code.WAIT:
                self.waiting_pods.add(pod, outcome.timeouts_s)
                status = None
        if status is None:
            return None
        run_unreserve(placement.profile, placement.state, pod, node_name)
        meter.point_ended(UNRESERVE)
        try:
            self.cache.forget_pod(pod.pod)
        except CacheError as error:
            log.error("ForgetPod failed: %s", error)
        return rejected_on(node_name, status) if status.is_rejected else status
