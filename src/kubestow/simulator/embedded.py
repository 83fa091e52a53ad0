"""An embedded cluster: the in-memory API server with a scheduler, watches and event recorder.

The scheduler is that of the service, with a store in memory instead of a server.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

import numpy as np

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.events import SENDERS_MAX, EventRecorder
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.choosing import rules_of
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.engine.observer import DecisionListener, Observer
from kubestow.engine.profile_events import ProfileEvents
from kubestow.engine.profiles import Registry
from kubestow.engine.watching import ClusterWatcher
from kubestow.framework.handle import EventSink, NoEvents
from kubestow.queue import QueueStatistics
from kubestow.recording.recording import RecordTo, RunRecording
from kubestow.simulator.repetitions import Repetitions
from kubestow.usage.view import UsageView

logger = logging.getLogger(__name__)

# How often `settle` checks whether anything is left to do. Virtual time, so it costs nothing.
SETTLE_CHECK_S: Final = 0.25
INSTANT_S: Final = 1e-6


class Controller(Protocol):
    """A part that acts on the cluster beside the scheduler.

    One that also acts on timers, not only on events, has a property `is_busy`.
    """

    async def run(self) -> None: ...


async def run_part(part: Controller) -> None:
    """Run a part of the cluster; should it end by a fault, log it: no other task notices."""
    try:
        await part.run()
    except Exception:
        logger.exception("%s has ended; start the cluster again", type(part).__name__)
        raise


def is_any_busy(controllers: Iterable[Controller]) -> bool:
    """Whether one of the controllers will act on a timer."""
    # Not `isinstance` of a protocol, which takes longer than all else that is checked for rest.
    return any(getattr(controller, "is_busy", False) for controller in controllers)


# Upstream retries a group that does not fit without any pause (spec 11 §5.3). Here that would keep
# virtual time from advancing.
GROUP_PAUSE_S: Final = 0.1


class EmbeddedCluster:
    """Build it inside a running event loop, then use it as `async with cluster.running()`."""

    def __init__(
        self,
        cluster: MemoryCluster,
        config: SchedulerConfig,
        clock: Clock,
        *,
        registry: Registry | None = None,
        listeners: Sequence[DecisionListener] = (),
        controllers: Iterable[Controller] = (),
        extenders_in_thread: bool = False,
        seed: int = 0,
        factory: type[SchedulerFactory] | None = None,
        client: ClusterClient | None = None,
        gates: FeatureGates = DEFAULT_GATES,
        record: RecordTo | None = None,
        metrics: SchedulerMetrics = NO_SCHEDULER_METRICS,
        has_events: bool = True,
        stops_repeating: bool = False,
        usage: UsageView | None = None,
    ) -> None:
        """`client` is that of the scheduler, if it is not to answer at once, or fails at times.
        `record` is a file for what the scheduler sees and decides. Without `has_events` the
        scheduler's events are not written. With `stops_repeating`, `settle` does not wait for
        pods that fail in the same way again and again. `usage` is what plugins read of measured
        use."""
        rules = rules_of(gates.edition)
        rng, watch_rng = np.random.default_rng(seed), np.random.default_rng(seed)
        self.store = cluster
        self.clock = clock
        self._has_events = has_events
        self.client = client or MemoryClient(cluster)
        senders_max = 1 if client is None else SENDERS_MAX
        self.recorder = EventRecorder(
            self.client, clock, hostname="embedded", senders_max=senders_max
        )
        self.recording: RunRecording | None = None
        # The scheduler's own list: what is added is called with the next decision.
        self.listeners: list[DecisionListener] = list(listeners)
        self._repetitions: Repetitions | None = None
        if stops_repeating:
            self._repetitions = Repetitions(cluster)
            self.listeners.append(self._repetitions.decided)
        observers: list[Observer] = []
        make_handler = None
        if record is not None:
            self.recording = RunRecording(record, clock, config, gates, rng=rng)
            make_handler = self.recording.recorder.handler
            observers.append(self.recording.recorder)
            self.client = self.recording.client(self.client)
        self.scheduler = (factory or rules.factory)(
            config=config,
            client=self.client,
            objects=ClusterObjects(),
            events=self._sink_of,
            clock=clock,
            registry=rules.registry if registry is None else registry,
            listeners=self.listeners,
            observers=observers,
            metrics=metrics,
            extenders_in_thread=extenders_in_thread,
            rng=rng,
            gates=gates,
            usage=usage,
        ).build()
        if self.recording is not None:
            self.recording.observe_extenders(self.scheduler)
        self.scheduler.group_pause_s = GROUP_PAUSE_S
        if self._repetitions is not None:
            self._repetitions.scheduler = self.scheduler
        self.watcher = ClusterWatcher(
            self.client, self.scheduler, clock, watch_rng, make_handler=make_handler
        )
        self._controllers = tuple(controllers)
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Start everything; on leaving, stop it and wait for work in progress."""
        parts = (self.watcher, self.recorder, *self._controllers)
        tasks = self._tasks = [asyncio.create_task(run_part(part)) for part in parts]
        try:
            await _wait_unless_failed(self.watcher.wait_synced(), tasks)
            tasks.append(asyncio.create_task(self.scheduler.queue.run_timers()))
            tasks.append(asyncio.create_task(run_part(self.scheduler)))
            yield
        finally:
            self.scheduler.queue.close()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError, Exception):
                    await task
            # Nothing that they wait for, such as a volume, comes any more.
            await self.scheduler.tasks.drain(0)
            await self.recorder.flush()
            if self.recording is not None:
                self.recording.close()

    async def settle(self, *, limit_s: float) -> bool:
        """Wait until no pod is being tried, bound or due for another try; False after the limit."""
        deadline_s = self.clock.monotonic_s() + limit_s
        while self.clock.monotonic_s() < deadline_s:
            await asyncio.sleep(SETTLE_CHECK_S)
            raise_first_failure(self._tasks)
            if not self.is_at_rest:
                continue
            # Other timers may end at the same instant, such as that of a pod's deletion. Time only
            # advances when nothing is left to do, so after this their events were handled.
            await asyncio.sleep(INSTANT_S)
            if self.is_at_rest:
                return True
        return False

    def raise_failure(self) -> None:
        """Raise the error of a part that has ended by one."""
        raise_first_failure(self._tasks)

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The values of spec.schedulerName of the pods that are placed."""
        return frozenset(self.scheduler.profiles)

    def refreshed(self) -> Snapshot:
        """The nodes as the scheduler knows them now."""
        self.scheduler.snapshot.refresh(self.scheduler.cache)
        return self.scheduler.snapshot

    def queue_statistics(self) -> QueueStatistics:
        return self.scheduler.queue.statistics()

    @property
    def is_at_rest(self) -> bool:
        """Whether no pod is being tried, bound or due for another try, and no controller is."""
        queue = self.scheduler.queue.statistics()
        # Pods that would only fail again are not waited for.
        repeating_count = 0 if self._repetitions is None else self._repetitions.count()
        retried = max(queue.backoff + queue.error_backoff - repeating_count, 0)
        waiting = queue.active + retried + queue.in_flight
        return waiting == 0 and self.scheduler.tasks.is_idle and not self._is_anything_due()

    def _is_anything_due(self) -> bool:
        """Whether a controller will act on a timer, as a kubelet that ends a pod."""
        return is_any_busy(self._controllers)

    def _sink_of(self, profile_name: str) -> EventSink:
        return ProfileEvents(self.recorder, profile_name) if self._has_events else NoEvents()


async def _wait_unless_failed(
    work: Coroutine[None, None, None], tasks: Iterable[asyncio.Task[None]]
) -> None:
    """Wait for work that depends on the tasks; raises if one of them fails."""
    waiting = asyncio.create_task(work)
    await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        raise_first_failure(tasks)


def raise_first_failure(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Raise the error of the first task that has ended by one."""
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error
