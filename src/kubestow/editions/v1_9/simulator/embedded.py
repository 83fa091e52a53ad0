"""An embedded cluster with a v1.9 scheduler: the same surface as `simulator.embedded`."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import numpy as np

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.events import EventRecorder
from kubestow.editions.v1_9.cache import ObjectsV19
from kubestow.editions.v1_9.engine.algorithm import Algorithm
from kubestow.editions.v1_9.engine.decide import NO_NODES, DecisionV19
from kubestow.editions.v1_9.engine.extenders import extenders_v1_9
from kubestow.editions.v1_9.engine.scheduler import ListenerV19, SchedulerV19
from kubestow.editions.v1_9.engine.watching import WatcherV19
from kubestow.engine.profile_events import ProfileEvents
from kubestow.framework.handle import NoEvents
from kubestow.queue import QueueStatistics
from kubestow.simulator.embedded import (
    INSTANT_S,
    SETTLE_CHECK_S,
    Controller,
    raise_first_failure,
    run_part,
)
from kubestow.simulator.scenario.collector import OnAttempt
from kubestow.simulator.scenario.run import MakeCluster

_HOSTNAME: Final = "embedded"


class EmbeddedV19:
    """Build it inside a running event loop, then use it as `async with cluster.running()`."""

    def __init__(
        self,
        store: MemoryCluster,
        algorithm: Algorithm,
        clock: Clock,
        *,
        scheduler_name: str = "default-scheduler",
        use_equivalence_cache: bool = False,
        listeners: Iterable[ListenerV19] = (),
        controllers: Iterable[Controller] = (),
        seed: int = 0,
        has_events: bool = True,
    ) -> None:
        self.store = store
        self.scheduler_names = frozenset((scheduler_name,))
        self._clock = clock
        client = MemoryClient(store)
        self._recorder = EventRecorder(client, clock, hostname=_HOSTNAME)
        self.scheduler = SchedulerV19(
            algorithm,
            client=client,
            objects=ObjectsV19(),
            events=ProfileEvents(self._recorder, scheduler_name) if has_events else NoEvents(),
            clock=clock,
            scheduler_name=scheduler_name,
            use_equivalence_cache=use_equivalence_cache,
            extenders=extenders_v1_9(algorithm.extenders, in_thread=False),
            listeners=listeners,
        )
        self._watcher = WatcherV19(client, self.scheduler, clock, np.random.default_rng(seed))
        self._parts = (self._recorder, *controllers, self._watcher)
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Start everything; on leaving, stop it."""
        tasks = self._tasks = [asyncio.create_task(run_part(part)) for part in self._parts]
        try:
            await self._watcher.wait_synced()
            tasks.append(asyncio.create_task(run_part(self.scheduler)))
            yield
        finally:
            self.scheduler.stop()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError, Exception):
                    await task
            await self._recorder.flush()

    async def settle(self, *, limit_s: float) -> bool:
        """Wait until another attempt could only repeat the last; False after the limit."""
        deadline_s = self._clock.monotonic_s() + limit_s
        while self._clock.monotonic_s() < deadline_s:
            await asyncio.sleep(SETTLE_CHECK_S)
            self.raise_failure()
            if self.is_at_rest:
                # Other timers may end at the same instant (`EmbeddedCluster.settle`).
                await asyncio.sleep(INSTANT_S)
                if self.is_at_rest:
                    return True
        return False

    @property
    def is_at_rest(self) -> bool:
        """Whether another attempt could only repeat the last."""
        return self.scheduler.is_settled

    def raise_failure(self) -> None:
        """Raise the error of a part that has ended by one."""
        raise_first_failure(self._tasks)

    def refreshed(self) -> Snapshot:
        """The nodes as the scheduler knows them now."""
        self.scheduler.snapshot.refresh(self.scheduler.cache)
        return self.scheduler.snapshot

    def queue_statistics(self) -> QueueStatistics:
        return self.scheduler.statistics()


def cluster_maker(
    algorithm: Algorithm,
    *,
    scheduler_name: str = "default-scheduler",
    use_equivalence_cache: bool = False,
    listeners: Sequence[ListenerV19] = (),
    counts_errors: bool = False,
) -> MakeCluster:
    """A function that makes the cluster of a run. With `counts_errors`, an error of a rule, such as
    a claim that is not bound, is a failed attempt in one placement, too; in a scenario it is."""

    def make(
        store: MemoryCluster,
        clock: Clock,
        *,
        controllers: Sequence[Controller],
        on_attempt: OnAttempt,
        seed: int,
        is_placing: bool,
    ) -> EmbeddedV19:
        count = _counted(on_attempt, has_errors=counts_errors or not is_placing)
        return EmbeddedV19(
            store,
            algorithm,
            clock,
            scheduler_name=scheduler_name,
            use_equivalence_cache=use_equivalence_cache,
            listeners=(count, *listeners),
            controllers=controllers,
            seed=seed,
            has_events=is_placing,
        )

    return make


def _counted(on_attempt: OnAttempt, *, has_errors: bool) -> ListenerV19:
    """A listener that calls a function with the attempts that each pod had so far, and
    with errors of rules."""
    attempts: Counter[str] = Counter()

    def decided(decision: DecisionV19) -> None:
        pod = decision.pod
        attempts[pod.uid] += 1
        has_failed = has_errors and not decision.is_scheduled and not decision.is_fit_error
        # A cluster without nodes is no error of a rule.
        error = decision.error if has_failed and decision.error != NO_NODES else ""
        on_attempt(pod.pod, attempts[pod.uid], error=error)

    return decided
