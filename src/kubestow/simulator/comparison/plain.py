"""A cluster and a workload from files, placed as `kubestow simulate` does, with the rows of a run.

Every pod is there from the start. Virtual time passes only while pods back off or volumes are made,
so there are few samples, mostly one: the state once everything was placed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.simulator.embedded import SETTLE_CHECK_S
from kubestow.simulator.loading import BEGUN_S
from kubestow.simulator.results import RunResult, Sample
from kubestow.simulator.scenario.collector import Collector, OnAttempt
from kubestow.simulator.scenario.run import SAMPLES_MAX, RunCluster
from kubestow.simulator.scenario.samples import sample_of
from kubestow.simulator.simulation import SimulationResult
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


class PlainCluster(RunCluster, Protocol):
    store: MemoryCluster


class PlainSimulation(Protocol):
    """`Simulation`, or that of v1.9."""

    @property
    def cluster(self) -> PlainCluster: ...

    async def run(self, *, limit_s: float) -> SimulationResult: ...


# Makes a simulation, in the loop it runs in, that calls a function after each attempt.
MakeSimulation = Callable[[OnAttempt], PlainSimulation]


def run_plain(make: MakeSimulation, *, name: str, seed: int, limit_s: float) -> RunResult:
    """Place what waits, until nothing is left to do or to the limit of virtual time."""

    async def run() -> RunResult:
        return await _Followed(make, name, seed).run(limit_s)

    return run_in_virtual_time(run())


class _Followed:
    """A simulation and what collects its rows."""

    def __init__(self, make: MakeSimulation, name: str, seed: int) -> None:
        self._name = name
        self._seed = seed
        self._clock = VirtualClock(asyncio.get_running_loop())
        self._simulation = make(self._attempted)
        self._cluster = self._simulation.cluster
        self._collector = Collector(self._cluster.store, self._clock, pool_label="")
        self._samples: list[Sample] = []

    def _attempted(self, pod: Pod, attempts: int, *, error: str) -> None:
        self._collector.attempted(pod, attempts, error=error)

    async def run(self, limit_s: float) -> RunResult:
        sampling = asyncio.create_task(self._sample_regularly(limit_s))
        try:
            return self._rows(await self._simulation.run(limit_s=limit_s))
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling

    async def _sample_regularly(self, limit_s: float) -> None:
        # Time advances when nothing is left to do: then all pods that fit are placed.
        await asyncio.sleep(BEGUN_S)
        while True:
            self._take_sample()
            await asyncio.sleep(max(SETTLE_CHECK_S, limit_s / SAMPLES_MAX))

    def _take_sample(self) -> None:
        time_s = round(self._clock.monotonic_s(), 3)
        if not self._samples or self._samples[-1].time_s < time_s:
            self._samples.append(sample_of(self._cluster, self._collector, time_s))

    def _rows(self, result: SimulationResult) -> RunResult:
        self._take_sample()
        snapshot, collector = self._cluster.refreshed(), self._collector
        infos = dict(zip(snapshot.names, snapshot.node_infos, strict=True))
        return RunResult(
            name=self._name,
            seed=self._seed,
            pods=collector.pod_rows(self._cluster.scheduler_names),
            nodes=collector.node_rows(infos),
            samples=self._samples,
            changes=collector.changes,
            virtual_duration_s=result.virtual_duration_s,
            is_partial=not result.has_settled,
            dropped_changes=collector.dropped_changes,
            failed_attempts=collector.failed_attempts,
            failures=collector.failures(),
            refused_pods=result.refused_pods,
            refusals=list(result.refusals),
        )
