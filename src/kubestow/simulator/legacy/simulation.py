"""Places a workload with the v1.9 scheduler, in virtual time.

The cluster is that of every simulation: an API server in memory, kubelets and volume controllers.
v1.9 retries without bound, so a run ends when another attempt could only repeat the last.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import is_terminal
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.events import EventRecorder
from kubestow.engine.legacy.algorithm import Algorithm
from kubestow.engine.legacy.decide_v1_9 import LegacyDecision
from kubestow.engine.legacy.extenders_v1_9 import extenders_v1_9
from kubestow.engine.legacy.mapping import ObjectsV19
from kubestow.engine.legacy.scheduler_v1_9 import SchedulerV19
from kubestow.engine.legacy.watching_v1_9 import WatcherV19
from kubestow.engine.profile_events import ProfileEvents
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.embedded import INSTANT_S, SETTLE_CHECK_S
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.simulation import (
    SimulationResult,
    load_cluster,
    node_outcomes,
    pod_outcome,
    pods_of,
    rounded_s,
)
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.simulator.volume_controller import VolumeController

_HOSTNAME: Final = "embedded"


class LegacySimulation:
    """One run. Create it inside a virtual-time loop, then await `run`."""

    def __init__(
        self,
        documents: Sequence[Document | JsonObject],
        algorithm: Algorithm,
        *,
        scheduler_name: str = "default-scheduler",
        use_equivalence_cache: bool = False,
        on_decision: Callable[[LegacyDecision], None] | None = None,
        seed: int = 0,
    ) -> None:
        clock = self._clock = VirtualClock(asyncio.get_running_loop())
        self._started_ns = clock.now_ns()
        self._attempts: Counter[str] = Counter()
        self._placed_ns: dict[str, int] = {}
        self._on_decision = on_decision
        self._scheduler_name = scheduler_name
        store = self._store = MemoryCluster(clock, seed=seed)
        load_cluster(store, documents)
        pods = [pod for pod in pods_of(store) if not is_terminal(pod)]
        self._waiting = [pod for pod in pods if not pod.spec.node_name]
        self._running = [pod for pod in pods if pod.spec.node_name]
        client = MemoryClient(store)
        recorder = EventRecorder(client, clock, hostname=_HOSTNAME)
        self.scheduler = SchedulerV19(
            algorithm,
            client=client,
            objects=ObjectsV19(),
            events=ProfileEvents(recorder, scheduler_name),
            clock=clock,
            scheduler_name=scheduler_name,
            use_equivalence_cache=use_equivalence_cache,
            extenders=extenders_v1_9(algorithm.extenders, in_thread=False),
            listeners=[self._record],
        )
        self._watcher = WatcherV19(client, self.scheduler, clock, np.random.default_rng(seed))
        self._recorder = recorder
        kubelets = FakeKubelets(store, clock, starts_pods=False)
        self._parts = (recorder, kubelets, VolumeController(store), self._watcher)

    @property
    def waiting_count(self) -> int:
        """The number of pods to place."""
        return len(self._waiting)

    async def run(self, *, limit_s: float = LIMIT_S) -> SimulationResult:
        """Run the scheduler until nothing is left to do, or to the limit of virtual time."""
        tasks = [asyncio.create_task(part.run()) for part in self._parts]
        try:
            await self._watcher.wait_synced()
            tasks.append(asyncio.create_task(self.scheduler.run()))
            has_settled = await self._settle(tasks, limit_s)
        finally:
            self.scheduler.stop()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError, Exception):
                    await task
            await self._recorder.flush()
        return self._result(has_settled)

    async def _settle(self, tasks: Sequence[asyncio.Task[None]], limit_s: float) -> bool:
        deadline_s = self._clock.monotonic_s() + limit_s
        while self._clock.monotonic_s() < deadline_s:
            await asyncio.sleep(SETTLE_CHECK_S)
            for task in tasks:
                if task.done():
                    task.result()  # Raises its error.
            if self.scheduler.is_settled:
                # Other timers may end at the same instant (`EmbeddedCluster.settle`).
                await asyncio.sleep(INSTANT_S)
                if self.scheduler.is_settled:
                    return True
        return False

    def _record(self, decision: LegacyDecision) -> None:
        uid = decision.pod.uid
        self._attempts[uid] += 1
        if decision.is_scheduled:
            self._placed_ns.setdefault(uid, self._clock.now_ns())
        if self._on_decision is not None:
            self._on_decision(decision)

    def _result(self, has_settled: bool) -> SimulationResult:
        after = {pod.metadata.uid: pod for pod in pods_of(self._store)}
        scheduler = self.scheduler
        scheduler.snapshot.refresh(scheduler.cache)
        outcomes = [
            pod_outcome(
                after.get(uid, pod),
                attempts=self._attempts[uid],
                after_ns=self._placed_ns.get(uid, self._started_ns) - self._started_ns,
                scheduler_names=(self._scheduler_name,),
            )
            for pod in self._waiting
            if (uid := pod.metadata.uid)
        ]
        return SimulationResult(
            pods=outcomes,
            nodes=node_outcomes(scheduler.snapshot),
            running_count=sum(1 for pod in self._running if pod.metadata.uid in after),
            evicted=[],
            virtual_duration_s=rounded_s(self._clock.now_ns() - self._started_ns),
            has_settled=has_settled,
        )
