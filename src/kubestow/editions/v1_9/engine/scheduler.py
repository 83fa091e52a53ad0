"""The v1.9 scheduler: one pod after the other from a FIFO, retried by time alone (spec 04 §19.1).

    FIFO ── pop ──► decide ──► assume ──► bind (beside the loop)
     ▲                │ fails      │ fails     │ fails: forget
     └─ after its wait, read again ◄───────────┘

Changes come through the object stores, which informers fill (`watching_v1_9`). There is no Reserve,
Permit or PreBind, and no event ends the wait of a pod. But any update of a waiting pod puts it into
the FIFO, also the condition that the scheduler itself writes: the second attempt follows the first
at once. A cycle that calls extenders waits for them while the loop goes on (`waiting_cycle`).

Not here: preemption (behind a gate that was off).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminating, key_of
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.documents import whole_seconds_at
from kubestow.cluster.pod_status import changed_condition
from kubestow.cluster.status_writer import ClientStatusWriter, StatusPatch
from kubestow.editions.shared.cache import EXPIRY_SWEEP_S, CacheWithExpiry
from kubestow.editions.v1_9.engine.algorithm import Algorithm
from kubestow.editions.v1_9.engine.decide import DeciderV19, DecisionV19
from kubestow.editions.v1_9.engine.equivalence_cache import EquivalenceCache
from kubestow.editions.v1_9.engine.equivalence_rules import (
    SERVICE_CHANGED,
    VOLUME_CHANGED,
    node_changed,
    pod_changed,
)
from kubestow.editions.v1_9.engine.extenders import ExtendersV19
from kubestow.editions.v1_9.plugins.contract import LegacyCluster
from kubestow.editions.v1_9.plugins.pod import PodInfoV19
from kubestow.editions.v1_9.queue.fifo import Fifo
from kubestow.editions.v1_9.queue.pod_backoff import PodBackoff
from kubestow.engine.bind import BindPermission
from kubestow.engine.tasks import BackgroundTasks
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.errors import ApiError, CacheCorruptedError, CacheError, ExtenderError, NotFoundError
from kubestow.framework.handle import EventSink
from kubestow.queue import QueueStatistics

log = logging.getLogger(__name__)

ListenerV19 = Callable[[DecisionV19], None]

_READ_RETRY_MIN_S: Final = 0.2
_READ_RETRY_MAX_S: Final = 60.0


class MetricsV19(Protocol):
    """How long things took, in seconds (spec 09 §13.1)."""

    def algorithm_ended(self, duration_s: float) -> None: ...

    def binding_ended(self, duration_s: float) -> None: ...

    def pod_ended(self, duration_s: float) -> None:
        """A pod was bound, this long after the start of its attempt. Failures do not count."""
        ...


class _NoMetrics:
    def algorithm_ended(self, duration_s: float) -> None: ...

    def binding_ended(self, duration_s: float) -> None: ...

    def pod_ended(self, duration_s: float) -> None: ...


class SchedulerV19:
    def __init__(
        self,
        algorithm: Algorithm,
        *,
        client: ClusterClient,
        objects: ClusterObjects,
        events: EventSink,
        clock: Clock,
        scheduler_name: str = "default-scheduler",
        use_equivalence_cache: bool = False,
        extenders: ExtendersV19 | None = None,
        cycles: WaitingCycles | None = None,
        may_bind: BindPermission | None = None,
        metrics: MetricsV19 | None = None,
        listeners: Iterable[ListenerV19] = (),
    ) -> None:
        """`cycles` are those the extenders wait in; without them extenders block the loop.
        `may_bind` is awaited before each binding is written."""
        self.objects = objects
        self.tasks = BackgroundTasks(clock)
        self.cycles = cycles
        self.cache = CacheWithExpiry(clock)
        self.snapshot = Snapshot()
        self.queue = Fifo()
        self.equivalence_cache = (
            EquivalenceCache(self.snapshot, objects) if use_equivalence_cache else None
        )
        self.decider = DeciderV19(
            self.snapshot,
            LegacyCluster(self.cache, objects),
            algorithm,
            equivalence_cache=self.equivalence_cache,
            extenders=extenders,
        )
        self._extenders = extenders
        self._client = client
        self._writer = ClientStatusWriter(client, self.tasks.spawn)
        self._events = events
        self._clock = clock
        self._name = scheduler_name
        self._listeners = tuple(listeners)
        self._may_bind = may_bind
        self._metrics = metrics or _NoMetrics()
        self._backoff = PodBackoff()
        self._next_sweep_s = clock.monotonic_s()
        self._waits: set[asyncio.Task[None]] = set()
        # Grows with every change of the cluster: a pod that failed since the last one would fail
        # again.
        self._change_count = 0
        self._failed_at: dict[str, int] = {}
        self._follow(objects)

    async def run(self) -> None:
        """Schedule until the queue is closed."""
        while (pod := await self.queue.pop()) is not None:
            if self.cycles is None:
                self.schedule_one(pod)
            else:
                await self._schedule_waiting(pod, self.cycles)
            await asyncio.sleep(0)  # Bindings and watches run now.

    @property
    def is_settled(self) -> bool:
        """Whether another attempt would give the same result: no pod waits for its first one,
        nothing is being bound, and nothing changed since the last attempt of each waiting pod."""
        return (
            not len(self.queue)
            and self.tasks.is_idle
            and all(change == self._change_count for change in self._failed_at.values())
        )

    def statistics(self) -> QueueStatistics:
        """Pods that wait for an attempt, and those that wait after one that failed."""
        return QueueStatistics(
            active=len(self.queue),
            backoff=len(self._waits),
            error_backoff=0,
            unschedulable=0,
            gated=0,
            in_flight=0,
            in_flight_events=0,
            nominated=0,
        )

    # --- one pod ---

    def schedule_one(self, pod: Pod) -> DecisionV19 | None:
        """One attempt; None if the pod was skipped."""
        attempt = self._begin(pod)
        if attempt is None:
            return None
        decision = self._decide(attempt.pod)
        self._conclude(attempt, decision)
        return decision

    async def _schedule_waiting(self, pod: Pod, cycles: WaitingCycles) -> None:
        """One attempt; the loop goes on while its cycle waits for extenders."""
        attempt = self._begin(pod)
        if attempt is None:
            return
        with self.snapshot.held(self.cache):
            decision = await cycles.run(lambda: self._decide(attempt.pod))
        self._conclude(attempt, decision)

    def _begin(self, pod: Pod) -> "_Attempt | None":
        if pod.spec.scheduler_name != self._name:
            return None
        if is_terminating(pod):
            self._record_event(pod, f"skip schedule deleting pod: {key_of(pod)}")
            return None
        started_s = self._clock.monotonic_s()
        if started_s >= self._next_sweep_s:
            self._next_sweep_s = started_s + EXPIRY_SWEEP_S
            self.cache.expire_assumed_pods()
        self.snapshot.refresh(self.cache)
        return _Attempt(PodInfoV19(pod), started_s)

    def _decide(self, pod: PodInfoV19) -> DecisionV19:
        try:
            return self.decider.decide(pod)
        except Exception as error:  # A fault in a rule fails this attempt, not the scheduler.
            log.exception("cannot decide on pod %s", pod.key)
            decision = DecisionV19(pod, self.snapshot.names)
            decision.error = f"{type(error).__name__}: {error}"
            return decision

    def _conclude(self, attempt: "_Attempt", decision: DecisionV19) -> None:
        self._metrics.algorithm_ended(self._clock.monotonic_s() - attempt.started_s)
        for listener in self._listeners:
            listener(decision)
        if decision.is_scheduled:
            self._place(attempt, decision.node_name)
        else:
            pod, error = attempt.pod.pod, decision.error
            self._failed(pod, error, reason="Unschedulable", message=error)

    def _place(self, attempt: "_Attempt", node_name: str) -> None:
        pod = attempt.pod
        assumed = pod.assigned_to(node_name)
        try:
            self.cache.assume_pod(assumed)
        except CacheError as error:
            log.error("cannot assume pod %s: %s", pod.key, error)
            return
        self._failed_at.pop(pod.uid, None)
        self._change_count += 1
        if self.equivalence_cache is not None:
            self.equivalence_cache.drop(pod_changed(None, assumed.pod))
        self.tasks.spawn(self._bind(attempt, assumed))

    async def _bind(self, attempt: "_Attempt", assumed: PodInfoV19) -> None:
        pod, node_name = attempt.pod.pod, assumed.pod.spec.node_name
        failure = ""
        # Else the condition of the attempt before could be written after the binding.
        while (status_write := self._writer.under_way(pod.metadata.uid)) is not None:
            await status_write
        if self._may_bind is not None:
            await self._may_bind()
        started_s = self._clock.monotonic_s()
        try:
            if self._extenders is None or not await self._extenders.bind(pod, node_name):
                await self._client.bind(pod, node_name)
        except (ApiError, ExtenderError) as error:
            failure = str(error)
        # Spec 03 §14.2 as in v1.9.11: the time to live starts also after a failure.
        self.cache.finish_binding(assumed.pod)
        if not failure:
            now_s = self._clock.monotonic_s()
            self._metrics.binding_ended(now_s - started_s)
            self._metrics.pod_ended(now_s - attempt.started_s)
            note = f"Successfully assigned {assumed.name} to {node_name}"
            self._record_event(pod, note, type="Normal", reason="Scheduled")
            return
        self._log_failure("ForgetPod", lambda: self.cache.forget_pod(assumed.pod))
        self._changed_pod(assumed.pod, None)
        self._failed(pod, f"Binding rejected: {failure}", reason="BindingRejected", message="")

    # --- failures ---

    def _failed(self, pod: Pod, note: str, *, reason: str, message: str) -> None:
        if self.objects.pods.get(pod.metadata.namespace, pod.metadata.name) is not None:
            self._failed_at[pod.metadata.uid] = self._change_count
        self._retry_later(pod)
        self._record_event(pod, note)
        condition = Condition(type="PodScheduled", status="False", reason=reason, message=message)
        changed = changed_condition(pod, condition, now=whole_seconds_at(self._clock.now_ns()))
        if changed is not None:
            self._writer.start_write(pod, StatusPatch(condition=changed))

    def _retry_later(self, pod: Pod) -> None:
        now_s = self._clock.monotonic_s()
        self._backoff.collect(now_s)
        wait_s = self._backoff.begin_wait(key_of(pod), now_s)
        if wait_s is not None:
            # Not among the tasks that `is_settled` counts: it only waits for time to pass.
            task = asyncio.get_running_loop().create_task(self._retry(pod, wait_s))
            self._waits.add(task)
            task.add_done_callback(self._waits.discard)

    async def _retry(self, pod: Pod, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        self._backoff.end_wait(key_of(pod))
        found = await self._read(pod)
        if found is not None and not found.spec.node_name:
            self.queue.add_if_not_present(found)

    async def _read(self, pod: Pod) -> Pod | None:
        """The pod as it is now; None if it is gone."""
        pause_s = _READ_RETRY_MIN_S
        while True:
            try:
                return await self._client.get(Pod, pod.metadata.namespace, pod.metadata.name)
            except NotFoundError:
                return None
            except ApiError as error:
                log.warning("cannot read pod %s, trying again: %s", key_of(pod), error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _READ_RETRY_MAX_S)

    def _record_event(
        self, pod: Pod, note: str, *, type: str = "Warning", reason: str = "FailedScheduling"
    ) -> None:
        action = "Binding" if reason == "Scheduled" else "Scheduling"
        self._events.record(pod, type=type, reason=reason, action=action, note=note)

    # --- what happens in the cluster ---

    def _follow(self, objects: ClusterObjects) -> None:
        objects.pods.subscribe(self._pod_event)
        objects.nodes.subscribe(self._node_event)
        for store in (
            objects.services,
            objects.replication_controllers,
            objects.replica_sets,
            objects.stateful_sets,
            objects.persistent_volumes,
            objects.persistent_volume_claims,
        ):
            store.subscribe(self._other_event)
        if (cache := self.equivalence_cache) is not None:
            objects.services.subscribe(lambda old, new: cache.drop(SERVICE_CHANGED))
            for store in (objects.persistent_volumes, objects.persistent_volume_claims):
                store.subscribe(lambda old, new: cache.drop(VOLUME_CHANGED))

    def _pod_event(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            # Made again under its name while the watch was away: another pod.
            self._pod_event(old, None)
            self._pod_event(None, new)
            return
        before = old if old is not None and old.spec.node_name else None
        after = new if new is not None and new.spec.node_name else None
        if before is None and after is None:
            self._waiting_pod_event(old, new)
            return
        if old is not None and before is None:
            self.queue.delete(old)
        self._failed_at.pop((after or before or Pod()).metadata.uid, None)
        if after is None:
            assert before is not None
            self._log_failure("RemovePod", lambda: self.cache.remove_pod(before))
        elif before is None:
            self._log_failure("AddPod", lambda: self.cache.add_pod(PodInfoV19(after)))
        else:
            self._log_failure("UpdatePod", lambda: self.cache.update_pod(before, PodInfoV19(after)))
        self._changed_pod(before, after)

    def _waiting_pod_event(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            # Later than v1.9: the API server refuses to bind a pod that has gates.
            if not new.spec.scheduling_gates:
                self.queue.add(new)
        elif old is not None:
            self.queue.delete(old)
            self._failed_at.pop(old.metadata.uid, None)

    def _changed_pod(self, old: Pod | None, new: Pod | None) -> None:
        self._change_count += 1
        if self.equivalence_cache is not None:
            self.equivalence_cache.drop(pod_changed(old, new))

    def _node_event(self, old: Node | None, new: Node | None) -> None:
        self._change_count += 1
        if new is None:
            assert old is not None
            self._log_failure("RemoveNode", lambda: self.cache.remove_node(old))
        elif old is None:
            self.cache.add_node(new)
        else:
            self.cache.update_node(old, new)
        if self.equivalence_cache is not None:
            self.equivalence_cache.drop(node_changed(old, new))

    def _other_event(self, old: object, new: object) -> None:
        self._change_count += 1

    def _log_failure(self, operation: str, call: Callable[[], None]) -> None:
        try:
            call()
        except CacheCorruptedError:
            raise  # Going on would place pods wrongly; the process ends.
        except CacheError as error:
            log.error("scheduler cache %s failed: %s", operation, error)

    def stop(self) -> None:
        """Close the queue and cancel the waits of failed pods."""
        self.queue.close()
        for task in self._waits:
            task.cancel()


class _Attempt(NamedTuple):
    pod: PodInfoV19
    started_s: float
