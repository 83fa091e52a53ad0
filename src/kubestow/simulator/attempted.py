"""The cluster at the moment of a pod's own attempt, after the pods before it in the queue.

A simulation runs as `kubestow simulate` runs it, except that controllers leave what was read from a
server as it is: the question is why the pod waits there. The state of the scheduler at the pod's
last attempt becomes a cluster that stands still. An attempt that evicts other pods is the last one:
the next only finds the node free.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod, is_assigned
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import Registry
from kubestow.engine.scheduler import Scheduler
from kubestow.explain.cluster import StillCluster
from kubestow.explain.jobs import jobs_in, note_jobs
from kubestow.index.devices import KnownDevices
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.still_origins import origins_of
from kubestow.simulator.virtual_time import run_in_virtual_time


class Attempted(NamedTuple):
    """A cluster, and the pod in it as it was tried."""

    cluster: StillCluster
    pod: Pod
    # How many other pods waited, and how many of them were on a node by then.
    other_count: int
    placed_count: int


def cluster_at_attempt(
    documents: Sequence[Document],
    key: PodKey,
    config: SchedulerConfig,
    clock: Clock,
    *,
    registry: Registry | None = None,
    gates: FeatureGates = DEFAULT_GATES,
    limit_s: float = LIMIT_S,
) -> Attempted:
    """The cluster of the documents as the scheduler saw it at the pod's last attempt; at the end,
    if it made none for the pod. The pod waits, and is one of the documents or made of one."""

    async def run() -> _Followed:
        followed = _Followed(
            placing(documents, limit_s=limit_s, stays=True), key, config, registry, gates
        )
        await followed.play()
        return followed

    followed = run_in_virtual_time(run())
    seen, pod = followed.seen, followed.seen.pod
    client = MemoryClient(MemoryCluster(clock))
    cluster = StillCluster(config, client, clock, registry=registry, gates=gates)
    cluster.load(seen.objects)
    cluster.origins = origins_of(seen.objects, documents, followed.run.stage.made)
    note_jobs(cluster, jobs_in(document.raw for document in documents))
    cluster.start_index = seen.start_index
    others = followed.run.stage.waiting_count - 1
    return Attempted(cluster, pod, others, seen.placed_count)


class _Seen(NamedTuple):
    """What the scheduler knew at one moment."""

    pod: Pod
    objects: list[ApiObject]
    start_index: int
    placed_count: int


class _Followed:
    """A simulation, and what the scheduler knew at the attempts for one pod."""

    def __init__(
        self,
        scenario: Scenario,
        key: PodKey,
        config: SchedulerConfig,
        registry: Registry | None,
        gates: FeatureGates,
    ) -> None:
        self._key = key
        self._seen: _Seen | None = None
        self._evicts = False
        self._placed: set[PodKey] = set()
        self.run = Simulation(scenario, config, registry, gates, on_decision=self._decided)

    @property
    def seen(self) -> _Seen:
        assert self._seen is not None
        return self._seen

    async def play(self) -> None:
        await self.run.run()
        if self._seen is None:
            pod = self._scheduler.objects.pods.get(*self._key)
            assert pod is not None, self._key
            self._take(pod, 0)

    @property
    def _scheduler(self) -> Scheduler:
        return self.run.cluster.scheduler

    def _decided(self, decision: Decision) -> None:
        pod = decision.pod.pod
        if PodKey.of(pod) == self._key:
            if not self._evicts:
                self._take(pod, decision.start_index)
            self._evicts |= bool(decision.post_filter and decision.post_filter.nominated_node_name)
        elif decision.is_scheduled:
            self._placed.add(PodKey.of(pod))

    def _take(self, pod: Pod, start_index: int) -> None:
        objects = list(_objects_at(self._scheduler, pod))
        self._seen = _Seen(pod, objects, start_index, len(self._placed))


def _objects_at(scheduler: Scheduler, pod: Pod) -> Iterable[ApiObject]:
    """All that the scheduler knows, with what it has decided and not seen confirmed, and the pod as
    it is tried."""
    for cls in scheduler.objects.types():
        if cls is not Pod:
            yield from scheduler.objects.store(cls).list()
    yield from _assumed(scheduler)
    yield from _pods(scheduler, pod)


def _assumed(scheduler: Scheduler) -> Iterable[ApiObject]:
    for profile in scheduler.profiles.values():
        plugin = profile.plugins.get(VolumeBinding.name)
        if isinstance(plugin, VolumeBinding):
            yield from plugin.assumed_volumes()
            yield from plugin.assumed_claims()
    known = KnownDevices.existing(scheduler.objects)
    if known is not None:
        yield from known.claims.unconfirmed()


def _pods(scheduler: Scheduler, pod: Pod) -> Iterable[Pod]:
    """Pods on nodes in the order in which each node has them, then the nominated ones in their
    order, then the others."""
    given = {PodKey.of(pod)}
    for info in list(scheduler.cache.nodes.values()):
        for each in info.pods:
            if PodKey.of(each.pod) not in given:
                given.add(PodKey.of(each.pod))
                yield each.pod
    nominator = scheduler.queue.nominator
    nominated: dict[PodKey, str] = {}
    for name in nominator.nominated_nodes():
        for each in nominator.nominated_pods_for_node(name):
            nominated[PodKey.of(each.pod)] = name
    for key, name in nominated.items():
        stored = pod if key == PodKey.of(pod) else scheduler.objects.pods.get(*key)
        if stored is not None and not is_assigned(stored):
            given.add(key)
            yield _nominated(stored, name)
    if PodKey.of(pod) not in nominated:
        yield pod
    yield from (each for each in scheduler.objects.pods if PodKey.of(each) not in given)


def _nominated(pod: Pod, node_name: str) -> Pod:
    status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
    return msgspec.structs.replace(pod, status=status)
