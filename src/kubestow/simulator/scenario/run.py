"""Plays a scenario: an embedded cluster on a virtual clock, with all controllers and kubelets.

    arrivals ─┐
    steps ────┼─ in the order of time ──► world ──► store ──► scheduler, kubelets, controllers
              │                                        └────► Collector ──► RunResult
    samples ──┘

The same scenario, configuration and seed give the same result, byte for byte: nothing here reads
real time.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Protocol

from kubestow import collector as garbage
from kubestow.api.files import Document
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import NANOSECONDS, Clock
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.plugins.registry import REGISTRY
from kubestow.queue import QueuedPod
from kubestow.recording.recording import RecordTo
from kubestow.simulator.cluster_file import load_cluster_files
from kubestow.simulator.embedded import INSTANT_S, Controller, EmbeddedCluster
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.results import RunResult, Sample
from kubestow.simulator.scenario.collector import Collector
from kubestow.simulator.scenario.parts import parts_of
from kubestow.simulator.scenario.plan import follow_plan
from kubestow.simulator.scenario.samples import SampledCluster, sample_of
from kubestow.simulator.scenario.scenario import Progress, Scenario
from kubestow.simulator.scenario.world import ScenarioWorld
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

# Samples of a run; with more they are taken less often.
SAMPLES_MAX: Final = 2_000
# How often progress is reported, in parts of the run.
PROGRESS_PARTS: Final = 500
# Old versions of objects are for watches that start late; here none does.
HISTORY_MAX: Final = 256

OnProgress = Callable[[Progress], None]


class RunCluster(SampledCluster, Protocol):
    """The cluster of a run: `EmbeddedCluster`, or that of another scheduler."""

    @property
    def scheduler_names(self) -> frozenset[str]: ...

    def running(self) -> AbstractAsyncContextManager[None]: ...

    def raise_failure(self) -> None: ...


class MakeCluster(Protocol):
    """Makes the cluster with a scheduler that is not described by a configuration."""

    def __call__(
        self,
        store: MemoryCluster,
        clock: Clock,
        *,
        controllers: Sequence[Controller],
        collector: Collector,
        seed: int,
    ) -> RunCluster:
        """`Collector.attempted` is called after each attempt."""
        ...


def run_scenario(
    scenario: Scenario,
    config: SchedulerConfig,
    registry: Registry = REGISTRY,
    gates: FeatureGates = DEFAULT_GATES,
    *,
    seed: int | None = None,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] | None = None,
    factory: type[SchedulerFactory] = SchedulerFactory,
    record: RecordTo | None = None,
    variant: str = "",
    make_cluster: MakeCluster | None = None,
) -> RunResult:
    """Play it to its end, or until `stop` returns True; InputError for what cannot be done.

    `seed` replaces that of the scenario. `record` is a file for what the scheduler sees and
    decides. `make_cluster` is for another scheduler than that of `config`.
    """

    async def play() -> RunResult:
        run = ScenarioRun(
            scenario,
            config,
            registry,
            gates,
            seed=scenario.seed if seed is None else seed,
            on_progress=on_progress or _ignore,
            stop=stop or _never,
            factory=factory,
            record=record,
            make_cluster=make_cluster,
        )
        return await run.run(variant)

    return run_in_virtual_time(play())


class ScenarioRun:
    """One run. Create it inside a virtual-time loop, then await `run`."""

    def __init__(
        self,
        scenario: Scenario,
        config: SchedulerConfig,
        registry: Registry,
        gates: FeatureGates,
        *,
        seed: int,
        on_progress: OnProgress,
        stop: Callable[[], bool],
        factory: type[SchedulerFactory],
        record: RecordTo | None,
        make_cluster: MakeCluster | None = None,
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._on_progress = on_progress
        self._stop = stop
        self._is_over = asyncio.Event()
        self._is_partial = False
        self._samples: list[Sample] = []
        start_ns = round(scenario.start.timestamp()) * NANOSECONDS
        self._clock = VirtualClock(asyncio.get_running_loop(), start_ns)
        store = MemoryCluster(self._clock, seed=seed, gates=gates, history_max=HISTORY_MAX)
        _load(store, scenario, config)
        self._collector = Collector(store, self._clock, pool_label=scenario.pool_label)
        self._world = ScenarioWorld(store, self._clock, self._collector.note)
        parts = parts_of(
            store,
            self._clock,
            start_delay_s=scenario.start_delay_s,
            stop_s=scenario.stop_s,
            has_controllers=scenario.has_controllers,
            on_refusal=self._collector.refused,
        )
        self._cluster: RunCluster
        if make_cluster is not None:
            self._cluster = make_cluster(
                store, self._clock, controllers=parts, collector=self._collector, seed=seed
            )
            return
        self._cluster = EmbeddedCluster(
            store,
            config,
            self._clock,
            registry=registry,
            listeners=[self._decided],
            controllers=parts,
            seed=seed,
            factory=factory,
            gates=gates,
            record=record,
            has_events=False,
        )

    async def run(self, variant: str = "") -> RunResult:
        with garbage.settled(garbage.SIMULATION_THRESHOLDS):
            async with self._cluster.running():
                await self._play()
                return self._result(variant)

    # --- Time ---------------------------------------------------------------------------------

    async def _play(self) -> None:
        plan = follow_plan(self._scenario, self._seed, self._world, self._clock)
        works = (plan, self._sample_regularly(), self._report_regularly())
        tasks = [asyncio.create_task(work) for work in works]
        for task in tasks:
            task.add_done_callback(self._after_task)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._scenario.until_s):
                    await self._is_over.wait()
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        self._cluster.raise_failure()
        self._take_sample()

    def _after_task(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._is_over.set()

    async def _sample_regularly(self) -> None:
        scenario = self._scenario
        every_s = max(scenario.sample_s, scenario.until_s / SAMPLES_MAX)
        while True:
            # Time advances when nothing is left to do: pods that are new by then were tried.
            next_s = every_s * len(self._samples) + INSTANT_S
            await asyncio.sleep(next_s - self._clock.monotonic_s())
            self._take_sample()

    def _take_sample(self) -> None:
        time_s = round(self._clock.monotonic_s(), 3)
        if not self._samples or self._samples[-1].time_s < time_s:
            self._samples.append(sample_of(self._cluster, self._collector, time_s))

    async def _report_regularly(self) -> None:
        every_s = self._scenario.until_s / PROGRESS_PARTS
        while True:
            self._check_stop()
            self._cluster.raise_failure()
            counts = self._collector
            self._on_progress(
                Progress(
                    self._clock.monotonic_s(),
                    self._scenario.until_s,
                    counts.arrived,
                    counts.placed,
                )
            )
            await asyncio.sleep(every_s)

    def _decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        self._collector.decided(decision, queued_pod)
        # Many decisions may be made at one time.
        self._check_stop()

    def _check_stop(self) -> None:
        if not self._is_partial and self._stop():
            self._is_partial = True
            self._is_over.set()

    # --- The result ---------------------------------------------------------------------------

    def _result(self, variant: str) -> RunResult:
        snapshot, collector = self._cluster.refreshed(), self._collector
        infos = dict(zip(snapshot.names, snapshot.node_infos, strict=True))
        pods = collector.pod_rows(self._cluster.scheduler_names)
        return RunResult(
            name=self._scenario.name,
            seed=self._seed,
            variant=variant,
            pods=pods,
            nodes=collector.node_rows(infos),
            samples=self._samples,
            changes=collector.changes,
            virtual_duration_s=round(self._clock.monotonic_s(), 3),
            is_partial=self._is_partial,
            dropped_changes=collector.dropped_changes,
            failed_attempts=collector.failed_attempts,
            failures=collector.failures(),
            refused_pods=collector.refused_pods,
            refusals=collector.refusals(),
        )


def _load(store: MemoryCluster, scenario: Scenario, config: SchedulerConfig) -> None:
    own = definitions_for(config, (document.raw for document in scenario.documents))
    documents: list[Document] = [*own, *scenario.documents]
    with garbage.paused():
        load_cluster_files(store, documents)


def _ignore(progress: Progress) -> None: ...


def _never() -> bool:
    return False
