"""What a run begins with, what acts in it beside the scheduler, and when it ends.

PlayedStage    a scenario: all controllers act, arrivals and actions come at their times, and it
               ends at a time
PlacingStage   one placement: all is there from the start, as files have it (`loading`); pods
               are made of workloads once, and none starts; it ends when nothing is left to do
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from msgspec import UNSET, UnsetType

from kubestow import collector as garbage
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject, object_ref
from kubestow.api.pod import is_terminal, is_terminating, key_of
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.cluster.resources import NODES
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.cluster_file import load_cluster_files
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.embedded import INSTANT_S, SETTLE_CHECK_S, Controller, is_any_busy
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.loading import (
    BEGUN_S,
    AfterFirstDecision,
    count_pods,
    load_cluster,
    make,
    pods_of,
    settle_new,
)
from kubestow.simulator.pod_owner import OwnersInFiles
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.results import PlacingFacts
from kubestow.simulator.scenario.collector import Collector
from kubestow.simulator.scenario.parts import parts_of
from kubestow.simulator.scenario.plan import follow_plan
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.world import ScenarioWorld
from kubestow.simulator.standing import NOTHING_STANDS
from kubestow.simulator.usage.engine import UsageEngine
from kubestow.simulator.volume_controller import VolumeController

# Old versions of objects are for watches that start late; in a scenario none does.
HISTORY_MAX: Final = 256


class SettlingCluster(Protocol):
    """`EmbeddedCluster`, or that of another scheduler."""

    async def settle(self, *, limit_s: float) -> bool: ...

    @property
    def is_at_rest(self) -> bool:
        """Whether no pod is being tried, bound or due for another try."""
        ...


class RunStage(Protocol):
    """Make it inside a virtual-time loop.

    store          has the objects of the scenario
    collector      follows the store
    controllers    what acts beside the scheduler
    begun_s        when all that happens at the start has happened
    usage          computes what pods use, if the scenario says that
    """

    store: MemoryCluster
    collector: Collector
    controllers: Sequence[Controller]
    begun_s: float
    usage: UsageEngine | None

    @property
    def made(self) -> Sequence[Document]:
        """What controllers make of workloads before the start."""
        ...

    @property
    def waiting_count(self) -> int:
        """The number of pods that wait at the start."""
        ...

    async def prepare(self) -> None:
        """To be awaited before the scheduler starts."""
        ...

    def begun(self) -> None:
        """To be called after the first attempt."""
        ...

    async def plan(self) -> None:
        """Do what a scenario plans, at its time."""
        ...

    async def end(self, cluster: SettlingCluster, is_over: asyncio.Event) -> bool:
        """Wait for the end, or for the event; False if it ends before there is nothing to do."""
        ...

    def facts(self) -> PlacingFacts | UnsetType:
        """What is known at the end beside the rows."""
        ...


class PlayedStage:
    """A scenario with all controllers, until its time is over."""

    begun_s = INSTANT_S
    made: Sequence[Document] = ()
    waiting_count = 0

    def __init__(
        self,
        scenario: Scenario,
        config: SchedulerConfig,
        clock: Clock,
        *,
        seed: int,
        gates: FeatureGates,
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        self._seed = seed
        self.store = MemoryCluster(clock, seed=seed, gates=gates, history_max=HISTORY_MAX)
        with garbage.paused():
            load_cluster_files(self.store, _with_definitions(scenario, config))
        self.collector = Collector(self.store, clock, pool_label=scenario.pool_label)
        self.world = ScenarioWorld(self.store, clock, self.collector.note)
        self.controllers: Sequence[Controller] = parts_of(
            self.store,
            clock,
            start_delay_s=scenario.start_delay_s,
            stop_s=scenario.stop_s,
            has_controllers=scenario.has_controllers,
            on_refusal=self.collector.refused,
        )
        self.usage: UsageEngine | None = None
        if scenario.usage is not None:
            owner_of = self.collector.owner_of
            self.usage = UsageEngine(
                self.store, clock, scenario.usage, seed=seed, owner_of=owner_of
            )
            self.usage.metrics.serve(config)
            self.controllers = (*self.controllers, self.usage)

    @property
    def is_busy(self) -> bool:
        """Whether a controller will act on a timer, or an action is not over."""
        return self.world.work_count > 0 or is_any_busy(self.controllers)

    async def prepare(self) -> None: ...

    def begun(self) -> None: ...

    async def plan(self) -> None:
        await follow_plan(self._scenario, self._seed, self.world, self._clock)

    async def end(self, cluster: SettlingCluster, is_over: asyncio.Event) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._scenario.until_s):
                await is_over.wait()
        return True

    def facts(self) -> UnsetType:
        return UNSET


class PlacingStage:
    """What is in files, placed once."""

    begun_s = BEGUN_S
    usage: UsageEngine | None = None

    def __init__(
        self,
        scenario: Scenario,
        config: SchedulerConfig,
        clock: Clock,
        *,
        seed: int,
        gates: FeatureGates,
    ) -> None:
        self._scenario = scenario
        store = self.store = MemoryCluster(clock, seed=seed, gates=gates, lists_as_created=True)
        self._loaded = load_cluster(store, _with_definitions(scenario, config))
        self._to_make = self._loaded.to_make
        pods = [pod for pod in pods_of(store) if not is_terminal(pod)]
        self._waiting_count = sum(not pod.spec.node_name for pod in pods)
        self._running = [pod for pod in pods if pod.spec.node_name]
        with garbage.paused():
            self.collector = Collector(
                store,
                clock,
                follows_running=scenario.has_course,
                times_decisions=not scenario.has_course,
                owner_of=OwnersInFiles(store).of,
            )
        standing = self._loaded.standing if scenario.stays else NOTHING_STANDS
        self._started = AfterFirstDecision(
            [
                FakeKubelets(store, clock, starts_pods=False, standing=standing),
                VolumeController(store, standing=standing),
                EphemeralVolumeController(store, standing=standing),
                ResourceClaimController(store, standing=standing),
            ],
            self._make_pods,
        )
        self.controllers: Sequence[Controller] = (self._started,)

    @property
    def made(self) -> list[Document]:
        return [made.document for made in self._loaded.made]

    @property
    def waiting_count(self) -> int:
        return self._waiting_count + count_pods(self._to_make)

    async def prepare(self) -> None:
        await settle_new(self.store, self._loaded)

    def begun(self) -> None:
        self._started.decided()

    async def plan(self) -> None: ...

    async def end(self, cluster: SettlingCluster, is_over: asyncio.Event) -> bool:
        return await cluster.settle(limit_s=self._scenario.until_s)

    def _make_pods(self) -> None:
        """Create the pods that are missing of workloads as they stand."""
        to_make, self._to_make = self._to_make, ()
        refusals = make(self.store, to_make)
        for refusal in refusals:
            self.collector.refused_of(refusal.owner, refusal.message, refusal.pods)
        self._waiting_count += count_pods(to_make) - sum(refusal.pods for refusal in refusals)

    def facts(self) -> PlacingFacts:
        after = {pod.metadata.uid: pod for pod in pods_of(self.store)}
        stayed = [pod for pod in self._running if pod.metadata.uid in after]
        names = {node.name for node in self.store.objects_of(NODES)}
        lost = [pod for pod in stayed if pod.spec.node_name not in names]
        return PlacingFacts(
            running_count=len(stayed) - len(lost),
            evicted=[
                key_of(pod)
                for pod in self._running
                if not is_terminating(pod)
                and (
                    pod.metadata.uid not in after
                    or after[pod.metadata.uid].metadata.deletion_timestamp
                )
            ],
            on_missing_nodes=[f"{object_ref(pod.metadata)} ({pod.spec.node_name})" for pod in lost],
            nominated_nodes={
                key_of(pod): pod.status.nominated_node_name
                for pod in after.values()
                if pod.status.nominated_node_name
            },
        )


def stage_of(
    scenario: Scenario, config: SchedulerConfig, clock: Clock, *, seed: int, gates: FeatureGates
) -> RunStage:
    """The stage of a scenario; InputError names the document that cannot be created."""
    make_stage = PlacingStage if scenario.settles else PlayedStage
    return make_stage(scenario, config, clock, seed=seed, gates=gates)


def placing(
    documents: Iterable[Document | JsonObject],
    *,
    name: str = "simulation",
    limit_s: float = LIMIT_S,
    stays: bool = False,
    has_course: bool = False,
) -> Scenario:
    """The scenario in which everything is there from the start, and which ends when nothing is left
    to do, or at the limit of virtual time. The last two are of the `Scenario`."""
    return Scenario(
        name=name,
        until_s=limit_s,
        documents=[
            document if isinstance(document, Document) else Document(document, f"document {number}")
            for number, document in enumerate(documents, start=1)
        ],
        sample_s=SETTLE_CHECK_S,
        settles=True,
        stays=stays,
        has_course=has_course,
    )


def _with_definitions(scenario: Scenario, config: SchedulerConfig) -> list[Document]:
    """The documents of the scenario, and those that the configuration needs."""
    own = definitions_for(config, (document.raw for document in scenario.documents))
    return [*own, *scenario.documents]
