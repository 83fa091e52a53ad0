"""Runs a scenario, or one placement: an embedded cluster on a virtual clock.

    stage ──► store ──► scheduler, kubelets, controllers
                └─────► Collector ──► RunResult ◄── samples

The same scenario, configuration and seed give the same result, byte for byte: nothing here reads
real time.

Not here: what is in the cluster and acts there, and when a run ends (`stages`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

import msgspec
from msgspec import UNSET

from kubestow import collector as garbage
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import NANOSECONDS, Clock
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.queue import QueuedPod
from kubestow.recording.recording import RecordTo
from kubestow.simulator.embedded import Controller, EmbeddedCluster
from kubestow.simulator.results import RunResult, Sample
from kubestow.simulator.scenario.collector import OnAttempt, error_of
from kubestow.simulator.scenario.samples import SampledCluster, sample_of
from kubestow.simulator.scenario.scenario import Progress, Scenario
from kubestow.simulator.scenario.stages import PlayedStage, SettlingCluster, stage_of
from kubestow.simulator.scenario.world import WorldScheduler
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

# Samples of a run; with more they are taken less often.
SAMPLES_MAX: Final = 2_000
# How often figures of goals are computed: each time the whole cluster is read.
GOAL_SAMPLES: Final = 500
# How often progress is reported, in parts of the run.
PROGRESS_PARTS: Final = 500

OnProgress = Callable[[Progress], None]


class RunCluster(SampledCluster, SettlingCluster, Protocol):
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
        on_attempt: OnAttempt,
        seed: int,
        is_placing: bool,
    ) -> RunCluster:
        """`on_attempt` is called after each attempt. In one placement events are written, and an
        error of a rule is why a pod waits."""
        ...


def run_scenario(
    scenario: Scenario,
    config: SchedulerConfig,
    registry: Registry | None = None,
    gates: FeatureGates = DEFAULT_GATES,
    *,
    seed: int | None = None,
    on_progress: OnProgress | None = None,
    on_decision: Callable[[Decision], None] | None = None,
    stop: Callable[[], bool] | None = None,
    factory: type[SchedulerFactory] | None = None,
    record: RecordTo | None = None,
    variant: str = "",
    make_cluster: MakeCluster | None = None,
) -> RunResult:
    """Play it to its end, or until `stop` returns True; InputError for what cannot be done.

    See `Simulation`.
    """

    async def play() -> RunResult:
        run = Simulation(
            scenario,
            config,
            registry,
            gates,
            seed=seed,
            on_progress=on_progress,
            on_decision=on_decision,
            stop=stop,
            factory=factory,
            record=record,
            make_cluster=make_cluster,
        )
        return await run.run(variant)

    return run_in_virtual_time(play())


class Simulation:
    """One run. Create it inside a virtual-time loop, then await `run`."""

    def __init__(
        self,
        scenario: Scenario,
        config: SchedulerConfig,
        registry: Registry | None = None,
        gates: FeatureGates = DEFAULT_GATES,
        *,
        seed: int | None = None,
        on_progress: OnProgress | None = None,
        on_decision: Callable[[Decision], None] | None = None,
        stop: Callable[[], bool] | None = None,
        factory: type[SchedulerFactory] | None = None,
        record: RecordTo | None = None,
        make_cluster: MakeCluster | None = None,
    ) -> None:
        """`seed` replaces that of the scenario. `on_decision` is called with every decision, which
        is valid during the call only. `record` is a file for what the scheduler sees and decides.
        `make_cluster` is for another scheduler than that of `config`."""
        self._scenario = scenario
        self._seed = scenario.seed if seed is None else seed
        self._on_progress = on_progress
        self._on_decision = on_decision
        self._stop = stop
        self._is_over = asyncio.Event()
        self._is_partial = False
        # Whether there was an attempt.
        self._has_begun = False
        self._samples: list[Sample] = []
        # Figures of goals of rebalancing, and when they are computed again.
        self._goal_values: dict[str, float] = {}
        self._goals_due_s = 0.0
        start_ns = round(scenario.start.timestamp()) * NANOSECONDS
        self._clock = VirtualClock(asyncio.get_running_loop(), start_ns)
        self.stage = stage_of(scenario, config, self._clock, seed=self._seed, gates=gates)
        if isinstance(self.stage, PlayedStage):
            self.stage.world.scheduler = WorldScheduler(config, registry, gates)
        self._collector = self.stage.collector
        self._cluster: RunCluster
        if make_cluster is not None:
            self._cluster = make_cluster(
                self.stage.store,
                self._clock,
                controllers=self.stage.controllers,
                on_attempt=self._attempted,
                seed=self._seed,
                is_placing=scenario.settles,
            )
            return
        self._cluster = EmbeddedCluster(
            self.stage.store,
            config,
            self._clock,
            registry=registry,
            listeners=[self._decided],
            controllers=self.stage.controllers,
            seed=self._seed,
            factory=factory,
            gates=gates,
            record=record,
            has_events=scenario.settles,
            stops_repeating=scenario.settles or scenario.stops_repeating,
            usage=None if self.stage.usage is None else self.stage.usage.metrics.store,
        )

    @property
    def any_cluster(self) -> RunCluster:
        """The cluster, of any scheduler."""
        return self._cluster

    @property
    def clock(self) -> VirtualClock:
        return self._clock

    @property
    def cluster(self) -> EmbeddedCluster:
        """The cluster of a scheduler with plugins."""
        assert isinstance(self._cluster, EmbeddedCluster), self._cluster
        return self._cluster

    async def run(self, variant: str = "") -> RunResult:
        """Run it to its end."""
        with garbage.settled(garbage.SIMULATION_THRESHOLDS):
            async with self.running():
                await self._play()
                if not self._scenario.settles:
                    return self._result(variant)
            # What was still being bound at the limit has no node.
            return self._result(variant)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Start the cluster; on leaving, stop it."""
        await self.stage.prepare()
        async with self._cluster.running():
            yield

    # --- Time ---------------------------------------------------------------------------------

    async def _play(self) -> None:
        works: list[Coroutine[None, None, None]] = []
        if not self._scenario.settles:
            works.append(self.stage.plan())
        if self._scenario.has_course:
            works.append(self._sample_regularly())
        if not self._scenario.settles:
            works.append(self._report_regularly())
        tasks = [asyncio.create_task(work) for work in works]
        for task in tasks:
            task.add_done_callback(self._after_task)
        try:
            if not await self.stage.end(self._cluster, self._is_over):
                self._is_partial = True
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        self._cluster.raise_failure()
        if self._scenario.has_course:
            self._take_sample()
        self._report()

    def _after_task(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._is_over.set()

    async def _sample_regularly(self) -> None:
        scenario = self._scenario
        every_s = max(scenario.sample_s, scenario.until_s / SAMPLES_MAX)
        while True:
            # Time advances when nothing is left to do: pods that are new by then were tried.
            next_s = every_s * len(self._samples) + self.stage.begun_s
            await asyncio.sleep(next_s - self._clock.monotonic_s())
            self._take_sample()

    def _take_sample(self) -> None:
        time_s = round(self._clock.monotonic_s(), 3)
        if not self._samples or self._samples[-1].time_s < time_s:
            sample = sample_of(self._cluster, self._collector, time_s)
            if (usage := self.stage.usage) is not None:
                sample = msgspec.structs.replace(sample, usage=usage.sample())
            if self._scenario.goals:
                sample = msgspec.structs.replace(sample, goals=self._goal_figures(time_s))
            self._samples.append(sample)

    def _goal_figures(self, time_s: float) -> dict[str, float]:
        """Figures of goals; for a while after they were computed the same."""
        from kubestow.simulator.scenario.rebalancing import figures

        if time_s >= self._goals_due_s and isinstance(self.stage, PlayedStage):
            self._goal_values = figures(self.stage.world, self._scenario.goals)
            self._goals_due_s = time_s + self._scenario.until_s / GOAL_SAMPLES
        return self._goal_values

    async def _report_regularly(self) -> None:
        every_s = self._scenario.until_s / PROGRESS_PARTS
        while True:
            self._check_stop()
            self._cluster.raise_failure()
            self._report()
            await asyncio.sleep(every_s)

    def _report(self) -> None:
        if self._on_progress is not None:
            counts, time_s = self._collector, self._clock.monotonic_s()
            until_s = self._scenario.until_s
            self._on_progress(Progress(time_s, until_s, counts.arrived, counts.placed))

    def _decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        error = "" if decision.status is None else error_of(decision)
        self._attempted(queued_pod.pod, queued_pod.attempts, error=error)
        if self._on_decision is not None:
            self._on_decision(decision)

    def _attempted(self, pod: Pod, attempts: int, *, error: str) -> None:
        self._collector.attempted(pod, attempts, error=error)
        if not self._has_begun:
            self._has_begun = True
            self.stage.begun()
        # Many attempts may be made at one time; in one placement most are.
        if self._on_progress is not None and self._scenario.settles:
            self._report()
        if self._stop is not None:
            self._check_stop()

    def _check_stop(self) -> None:
        if self._stop is not None and not self._is_partial and self._stop():
            self._is_partial = True
            self._is_over.set()

    # --- The result ---------------------------------------------------------------------------

    def _result(self, variant: str) -> RunResult:
        snapshot, collector = self._cluster.refreshed(), self._collector
        infos = dict(zip(snapshot.names, snapshot.node_infos, strict=True))
        return RunResult(
            name=self._scenario.name,
            seed=self._seed,
            variant=variant,
            pods=collector.pod_rows(self._cluster.scheduler_names),
            nodes=collector.node_rows(infos, as_visited=self._scenario.settles),
            samples=self._samples,
            changes=collector.changes,
            virtual_duration_s=round(self._clock.monotonic_s(), 3),
            is_partial=self._is_partial,
            dropped_changes=collector.dropped_changes,
            failed_attempts=collector.failed_attempts,
            failures=collector.failures(),
            refused_pods=collector.refused_pods,
            refusals=collector.refusals(),
            placing=self.stage.facts(),
            usage=UNSET if self.stage.usage is None else self.stage.usage.result(),
        )
