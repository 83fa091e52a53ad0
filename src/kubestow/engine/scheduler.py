"""The scheduler: takes one pod after the other from the queue and places it (spec 04 §3).

    queue ── pop ──► snapshot ──► decide ──► assume, Reserve, Permit ──► a task that binds
                                    │                   │
                                    └──── failure ◄─────┴── back to the queue, condition, event

A scheduling cycle (`schedule_one`) is a plain function that never waits, unless extenders are
configured: then it stands still until they have answered. Binding runs beside it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

import numpy as np

from kubestow.api.pod import Pod, is_terminating
from kubestow.cache.legacy import EXPIRY_SWEEP_S
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.client import ClusterClient
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.bind import Binder, Placement, rejected_on
from kubestow.engine.compatibility import TODAY, SchedulerParts
from kubestow.engine.decide import Decider
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.extenders import ExtenderChain, extender_chain
from kubestow.engine.failure import FailureHandler
from kubestow.engine.handlers import EventHandlers
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SCHEDULED, SchedulerMetrics
from kubestow.engine.profiles import Registry, build_profiles
from kubestow.engine.status_writer import ClientStatusWriter
from kubestow.errors import CacheError
from kubestow.framework.handle import EventSink, Handle
from kubestow.framework.hints import build_hint_map
from kubestow.framework.metrics import PERMIT, RESERVE, UNRESERVE, CycleMeter
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.runner import run_permit, run_reserve, run_unreserve
from kubestow.framework.status import Code, Status
from kubestow.framework.waiting import PERMIT_WAIT_S_MAX, PodInPreBind, WaitingPods
from kubestow.plugins.registry import REGISTRY
from kubestow.queue import (
    NO_METRICS,
    Queue,
    QueuedPod,
    QueueMetrics,
    SchedulingQueue,
    SchedulingQueue120,
)
from kubestow.queue.active import key_from_plugin
from kubestow.queue.queue import MAX_UNSCHEDULABLE_NS

log = logging.getLogger(__name__)

# Between two turns of the event loop at most this many cycles run, so that watches, leases and
# health checks never wait longer than a few milliseconds.
CYCLES_PER_TURN_MAX: Final = 16

# Called with every decision, for reports, explanations and metrics.
DecisionListener = Callable[[Decision, QueuedPod], None]


class Scheduler:
    def __init__(
        self,
        config: SchedulerConfig,
        *,
        client: ClusterClient,
        objects: ClusterObjects,
        events: Callable[[str], EventSink],
        clock: Clock,
        registry: Registry = REGISTRY,
        gates: FeatureGates = DEFAULT_GATES,
        queue_metrics: QueueMetrics = NO_METRICS,
        metrics: SchedulerMetrics = NO_SCHEDULER_METRICS,
        max_unschedulable_ns: int = MAX_UNSCHEDULABLE_NS,
        listeners: Iterable[DecisionListener] = (),
        extenders: ExtenderChain | None = None,
        parts: SchedulerParts = TODAY,
        rng: np.random.Generator | None = None,
    ) -> None:
        """`events` makes the event sink of a profile; the reporter of an event is the profile.

        A pod that was rejected longer ago than `max_unschedulable_ns` is tried again without a
        reason. Without `extenders` those of the configuration are asked. `parts` may be those of an
        older version; `rng` breaks ties where extenders or older versions do so by chance.
        """
        rng = rng if rng is not None else np.random.default_rng(0)
        self.clock = clock
        self.objects = objects
        self._parts = parts
        self.cache = parts.make_cache()
        self.snapshot = parts.make_snapshot()
        self.waiting_pods = WaitingPods()
        self.listeners = list(listeners)
        self._in_pre_bind: dict[str, PodInPreBind] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._events = {
            config.scheduler_name: events(config.scheduler_name) for config in config.profiles
        }
        self._client = client
        self._metrics = metrics
        if extenders is None:
            extenders = extender_chain(config.extenders, rng=rng)
        self._extenders = extenders
        # Plugins need the nominator, which is the queue's, and the queue needs the plugins' hints:
        # handles are filled in once both exist.
        self._handles: list[Handle] = []
        self._gates = gates
        self.profiles = build_profiles(
            config.profiles, registry, self._make_handle, gates, config.extenders
        )
        self.queue = self._make_queue(config, gates, queue_metrics, max_unschedulable_ns)
        for handle in self._handles:
            handle.nominator = self.queue.nominator
            handle.activate = self.queue.activate
        self.decider = Decider(
            self.snapshot,
            self.queue.nominator,
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            extenders=extenders,
            selector=parts.make_selector(rng),
        )
        self.handlers = EventHandlers(
            self.cache,
            self.queue,
            self.waiting_pods,
            self.profiles.keys(),
            metrics,
        )
        self._writer = ClientStatusWriter(client, self.spawn)
        self._failures = {
            name: FailureHandler(self.queue, objects.pods, sink, self._writer, clock)
            for name, sink in self._events.items()
        }
        self._binders = {
            name: Binder(
                self.cache,
                self.queue,
                self.waiting_pods,
                self._in_pre_bind,
                self._failures[name],
                sink,
                self._writer,
                self._bound,
                looks_ahead=gates.enabled("NominatedNodeNameForExpectation"),
                extenders=extenders,
                finish_binding=self._finish_binding if parts.expires_assumptions else None,
            )
            for name, sink in self._events.items()
        }
        self.bound_count = 0

    # --- running ---

    async def run(self) -> None:
        """Schedule until the queue is closed."""
        if not self._parts.expires_assumptions:
            await self._schedule_all()
            return
        sweep = asyncio.create_task(self._sweep_assumptions())
        try:
            await self._schedule_all()
        finally:
            sweep.cancel()

    async def _schedule_all(self) -> None:
        cycles = 0
        while True:
            queued_pod = self.queue.pop_nowait()
            if queued_pod is None:
                cycles = 0
                queued_pod = await self.queue.pop()
                if queued_pod is None:
                    return
            self.schedule_one(queued_pod)
            cycles += 1
            if cycles >= CYCLES_PER_TURN_MAX:
                cycles = 0
                await asyncio.sleep(0)

    async def _sweep_assumptions(self) -> None:
        while True:
            self.cache.expire_assumed_pods(self.clock.now_ns())
            await asyncio.sleep(EXPIRY_SWEEP_S)

    def _finish_binding(self, pod: Pod) -> None:
        self.cache.finish_binding(pod, self.clock.now_ns())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the scheduling loop, and keep it from being collected meanwhile."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A mistake of ours; whatever this work was for, other pods do not depend on it.
            log.error("work beside the scheduling loop failed", exc_info=error)

    async def drain(self, limit_s: float) -> bool:
        """Wait for bindings and writes under way; what takes longer is cancelled.

        Nothing is started any more, so `run` must have ended. Returns whether all ended in time.
        """
        if not self._tasks:
            return True
        # Work may start more work: a failed binding writes the pod's status.
        deadline_s = self.clock.monotonic_s() + limit_s
        while self._tasks and (left_s := deadline_s - self.clock.monotonic_s()) > 0:
            await asyncio.wait(self._tasks, timeout=left_s)
        unfinished = list(self._tasks)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return not unfinished

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs beside the loop: all bindings and writes have ended."""
        return not self._tasks

    @property
    def binding_count(self) -> int:
        """How many pods are being bound right now."""
        return sum(binder.running_count for binder in self._binders.values())

    # --- one pod ---

    def schedule_one(self, queued_pod: QueuedPod) -> Decision | None:
        """One scheduling cycle. None when the pod was not tried at all."""
        profile = self.profiles.get(queued_pod.scheduler_name)
        if profile is None:
            log.error('profile not found for scheduler name "%s"', queued_pod.scheduler_name)
        if profile is None or self._skips(queued_pod.pod, profile):
            self.queue.done(queued_pod.uid)
            return None
        meter = self._metrics.start_attempt(profile.name)
        decision = self._decide(profile, queued_pod, meter)
        meter.algorithm_ended()
        self._metrics.decided(decision)
        for listener in self.listeners:
            listener(decision, queued_pod)
        if decision.status is not None:
            failures = self._failures[profile.name]
            failures.handle(queued_pod, decision.status, decision.nomination, meter)
        else:
            self._place(profile, queued_pod, decision)
        return decision

    def _skips(self, pod: Pod, profile: Profile) -> bool:
        if is_terminating(pod):
            self._events[profile.name].record(
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
            return False  # Spec 04 §3: a pod without UID is tried all the same.

    def _decide(self, profile: Profile, queued_pod: QueuedPod, meter: CycleMeter) -> Decision:
        try:
            self.snapshot.refresh(self.cache)
        except CacheError as error:
            decision = Decision(queued_pod.pod_info, profile.name, self.snapshot.names)
            return decision.fail(Status.from_error(error), CLEAR_NOMINATION)
        return self.decider.decide(profile, queued_pod.pod_info, meter)

    def _place(self, profile: Profile, queued_pod: QueuedPod, decision: Decision) -> None:
        """Count the pod on its node, let plugins reserve and permit, and start binding (§10,
        §11)."""
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
            self._failures[profile.name].handle(assumed, status, CLEAR_NOMINATION, state.meter)
            return
        if state.pods_to_activate:
            self.queue.activate(state.pods_to_activate.values())
            state.pods_to_activate.clear()
        self.spawn(self._binders[profile.name].bind(placement))

    def _assume(self, placement: Placement) -> Status | None:
        pod, node_name = placement.pod, placement.node_name
        try:
            self.cache.assume_pod(pod)
        except CacheError as error:
            return Status.from_error(error)
        self.queue.nominator.delete(pod.pod)
        meter = placement.state.meter
        meter.resume()
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

    def _bound(self, placement: Placement) -> None:
        self.bound_count += 1
        placement.state.meter.attempt_ended(SCHEDULED)
        self._metrics.pod_bound(placement.queued_pod)

    # --- putting it together ---

    def _make_handle(self, profile_name: str) -> Handle:
        handle = Handle(
            profile_name=profile_name,
            snapshot=self.snapshot,
            objects=self.objects,
            clock=self.clock,
            client=self._client,
            events=self._events[profile_name],
            waiting_pods=self.waiting_pods,
            in_pre_bind=self._in_pre_bind,
            spawn=self.spawn,
            feature_gates=self._gates,
            metrics=self._metrics,
            extenders=self._extenders.extenders if self._extenders is not None else (),
        )
        self._handles.append(handle)
        return handle

    def _make_queue(
        self,
        config: SchedulerConfig,
        gates: FeatureGates,
        metrics: QueueMetrics,
        max_unschedulable_ns: int,
    ) -> Queue:
        first = next(iter(self.profiles.values()))
        initial_backoff_ns = config.pod_initial_backoff_seconds * NANOSECONDS
        max_backoff_ns = config.pod_max_backoff_seconds * NANOSECONDS
        if not self._parts.has_hints:
            return SchedulingQueue120(
                clock=self.clock,
                sort_key=key_from_plugin(first.queue_sort),
                pod_lister=self.objects.pods.get,
                initial_backoff_ns=initial_backoff_ns,
                max_backoff_ns=max_backoff_ns,
                metrics=metrics,
            )
        return SchedulingQueue(
            clock=self.clock,
            sort_key=key_from_plugin(first.queue_sort),
            hint_maps={
                name: build_hint_map(
                    profile.plugins.values(), has_extenders=self._extenders is not None
                )
                for name, profile in self.profiles.items()
            },
            pod_lister=self.objects.pods.get,
            pre_enqueue={
                name: [(plugin_name(plugin), plugin.pre_enqueue) for plugin in profile.pre_enqueue]
                for name, profile in self.profiles.items()
            },
            initial_backoff_ns=initial_backoff_ns,
            max_backoff_ns=max_backoff_ns,
            max_unschedulable_ns=max_unschedulable_ns,
            pop_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
            metrics=metrics,
        )
