"""The running cluster of a case: played step by step, each until nothing is left to do.

The loop runs only inside the methods. Between two calls nothing runs, so the process can be copied
(`forks`), and each copy goes on by itself.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Final

from kubestow.api.files import Document
from kubestow.api.pod import Pod
from kubestow.errors import ApiError, InputError, PluginError
from kubestow.simulator.capacity.fit import fit
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.embedded import INSTANT_S, EmbeddedCluster
from kubestow.simulator.manifests import READ_KINDS
from kubestow.simulator.placement_tests.cases import CaseStep, PlacementCase
from kubestow.simulator.placement_tests.history import History
from kubestow.simulator.placement_tests.judged import CopiesThatFit, Gang, JudgedCluster
from kubestow.simulator.placement_tests.results import ExpectationVerdict
from kubestow.simulator.placement_tests.schedulers import CaseScheduler, scheduler_of
from kubestow.simulator.scenario.arrivals import streams_of
from kubestow.simulator.scenario.collector import Collector
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import PlayedStage
from kubestow.simulator.store_documents import documents_of
from kubestow.simulator.virtual_time import VirtualTimeLoop
from kubestow.simulator.workloads import WORKLOAD_KINDS

# How often it is checked whether anything is left to do: at first, and after this long.
CHECK_S: Final = 1.0
LATER_CHECK_S: Final = 5.0
LATER_S: Final = 10.0


class PlacedCluster(JudgedCluster):
    """Make it, `start` it, then play steps; `close` ends it, unless the process ends."""

    def __init__(self, case: PlacementCase) -> None:
        """InputError names the document that cannot be created, ConfigError the configuration."""
        self.scheduler: CaseScheduler = scheduler_of(case)
        self._loop = VirtualTimeLoop()
        self._rng = streams_of(case.seed, case.test).values
        self._run = self._loop.run_until_complete(self._make(case))
        stage = self._run.stage
        assert isinstance(stage, PlayedStage), stage
        self._stage = stage
        super().__init__(case, stage.store, History(stage.store, self._run.clock))
        self._context = self._run.running()
        self._has_started = False
        # What a reader should know, a line each.
        self.notes: list[str] = []

    async def _make(self, case: PlacementCase) -> Simulation:
        scheduler = self.scheduler
        scenario = Scenario(
            name=case.test,
            until_s=math.inf,
            documents=case.documents,
            seed=case.seed,
            start_delay_s=case.start_delay_s,
            stop_s=case.stop_s,
            stops_repeating=True,
        )
        return Simulation(
            scenario,
            scheduler.config,
            scheduler.registry,
            scheduler.gates,
            factory=scheduler.factory,
            make_cluster=scheduler.make_cluster,
        )

    # --- Playing ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, and place what the cluster has; raises InputError, and PluginError if an attempt
        fails by an error."""
        self._has_started = True
        self._loop.run_until_complete(self._context.__aenter__())
        self._settle("cluster")

    def play(self, step: CaseStep) -> list[ExpectationVerdict]:
        """Do a step; the verdicts of its expectations. Raises as `start` does."""
        if step.action is not None:
            self.act(step)
        elif step.wait_s:
            self._loop.run_until_complete(asyncio.sleep(step.wait_s))
            self._check_failures(step.place)
        return [self.judge(each) for each in step.expectations]

    def act(self, step: CaseStep) -> None:
        action = step.action
        assert action is not None, step

        async def act() -> None:
            try:
                action.act(self._stage.world, self._rng)
            except (ApiError, InputError) as error:
                raise InputError(f"{step.place}: {error}") from error

        self._loop.run_until_complete(act())
        self._settle(step.place)

    def close(self) -> None:
        """End everything that runs."""
        if self._has_started:
            self._loop.run_until_complete(self._context.__aexit__(None, None, None))
        self._loop.close()

    def _settle(self, place: str) -> None:
        if not self._loop.run_until_complete(self._settled()):
            self.notes.append(f"{place}: not at rest after {self.case.limit_s:g} s (limit)")
        self._check_failures(place)

    async def _settled(self) -> bool:
        """Wait until nothing is left to do; False after the limit."""
        started_s = self._loop.time()
        while (passed_s := self._loop.time() - started_s) < self.case.limit_s:
            await asyncio.sleep(CHECK_S if passed_s < LATER_S else LATER_CHECK_S)
            self._run.any_cluster.raise_failure()
            if self.is_at_rest:
                # Other timers may end at the same instant (`EmbeddedCluster.settle`).
                await asyncio.sleep(INSTANT_S)
                if self.is_at_rest:
                    return True
        return False

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is left to do."""
        return not self._stage.is_busy and self._run.any_cluster.is_at_rest

    def _check_failures(self, place: str) -> None:
        failures = self.collector.failures()
        if failures:
            raise PluginError(f"{place}: an attempt failed: {failures[0].message}")

    # --- Reading ------------------------------------------------------------------------------

    @property
    def run(self) -> Simulation:
        return self._run

    @property
    def collector(self) -> Collector:
        return self._stage.collector

    @property
    def time_s(self) -> float:
        return round(self._loop.time(), 3)

    def documents(self) -> list[Document]:
        """Everything that a scheduler reads, as it is now; workloads are not among it, as their
        pods are there."""
        return documents_of(self.store, READ_KINDS.difference(WORKLOAD_KINDS, ("Workload",)))

    def refusals(self) -> Mapping[str, str]:
        return {each.owner: each.message for each in self.collector.refusals()}

    def gang_of(self, pod: Pod) -> Gang | None:
        embedded = self._run.any_cluster
        groups = embedded.scheduler.cache.groups if isinstance(embedded, EmbeddedCluster) else None
        if groups is None:
            raise InputError(
                "gangs are switched off: give the test the gate, featureGates: "
                "[GenericWorkload=true]; v1.36 also needs GangScheduling=true"
            )
        key = groups.key_of(pod)
        rules = None if key is None else groups.rules(key)
        if key is None or rules is None or rules.min_count is None:
            return None
        return Gang(key, rules.min_count)

    def fit(self, copies: Sequence[Document], copies_max: int) -> CopiesThatFit:
        scheduler = self.scheduler
        if not scheduler.is_modern:
            version = self.case.variant.version
            raise InputError(f"headroom cannot be judged with {version}")
        setup = PlacingSetup(scheduler.config, scheduler.registry, scheduler.gates)
        found = fit(self.documents(), copies, setup, copies_max=copies_max)
        return CopiesThatFit(found.copies, found.message)
