"""What gangs cost: one that fits, and many that wait without fitting, beside pods that do.

The scheduler is that of a simulation, and its attempts are made one by one. Timed, in CPU time: the
members are taken from the queue (`collect`), placed on the snapshot (`decide`), and placed or sent
back with their events (`conclude`). Not timed: writes to the API.
"""

import asyncio
from typing import Final, NamedTuple

import msgspec

from kubestow import collector
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import thread_cpu_s
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.groups.cycle import GroupAttempt
from kubestow.engine.scheduler import Scheduler
from kubestow.queue import QueuedPod
from kubestow.queue.queue import SchedulingQueue
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.loading import load_cluster
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

GATES: Final = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
# The first rounds compute what later ones reuse, and write conditions.
ROUNDS_BEFORE: Final = 3


class GangCase(NamedTuple):
    """`gang_size` 0: pods without a group."""

    name: str
    gangs: int
    gang_size: int
    cpu: str
    rounds_before: int = 0


class GangTimes(msgspec.Struct, frozen=True, kw_only=True):
    """CPU milliseconds of one round: an attempt for each gang, or each pod."""

    case: str
    nodes: int
    cycles: int
    members: int
    placed: int
    collect_ms: float
    decide_ms: float
    conclude_ms: float
    total_ms: float


CASES: Final = (
    GangCase("a gang of 1,000 that fits", 1, 1000, "100m"),
    GangCase("100 gangs of 64 that do not fit", 100, 64, "100", ROUNDS_BEFORE),
    GangCase("100 pods that do not fit", 100, 0, "100", ROUNDS_BEFORE),
)


def measure_gangs(case: GangCase, *, nodes: int = 5000) -> GangTimes:
    """Build a cluster with the gangs of the case and time one round of cycles."""
    return run_in_virtual_time(_measure(case, nodes))


class GangBench:
    """A scheduler whose cycles are run by the caller. Use it within a virtual-time loop."""

    def __init__(self, case: GangCase, nodes: int) -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock, gates=GATES)
        load_cluster(store, [*_nodes(nodes), *_gangs(case)])
        self._case = case
        self._cluster = EmbeddedCluster(store, SchedulerConfig(), clock, gates=GATES)
        self.scheduler = self._cluster.scheduler
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "GangBench":
        cluster = self._cluster
        parts = (cluster.watcher, cluster.recorder)
        self._tasks = [asyncio.create_task(part.run()) for part in parts]
        await cluster.watcher.wait_synced()
        await self.settle()
        self.scheduler.snapshot.refresh(self.scheduler.cache)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.scheduler.queue.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.scheduler.tasks.drain(0)

    async def settle(self) -> None:
        """Let all writes and their events be handled; short enough to end no backoff."""
        await asyncio.sleep(0.01)

    def run_round(self) -> "_Round":
        """One attempt for each gang, or each pod."""
        tried: list[Pod] = []
        times = _Round()
        for _ in range(self._case.gangs):
            queued_pod = self._pop()
            tried.append(queued_pod.pod)
            times.schedule(self.scheduler, queued_pod)
        if not self._case.gang_size:
            # Members come back by themselves, other pods only after an event.
            self.scheduler.queue.activate(tried)
        return times

    def _pop(self) -> QueuedPod:
        queue = self.scheduler.queue
        assert isinstance(queue, SchedulingQueue)
        queued_pod = queue.pop_nowait()
        assert queued_pod is not None, self._case
        return queued_pod


class _Round:
    """CPU time of each part of the attempts of a round."""

    def __init__(self) -> None:
        self.collect_s = self.decide_s = self.conclude_s = 0.0
        self.placed_count = 0

    def schedule(self, scheduler: Scheduler, queued_pod: QueuedPod) -> None:
        began_s = thread_cpu_s()
        attempt = scheduler.begin(queued_pod)
        assert attempt is not None, queued_pod
        collected_s = thread_cpu_s()
        attempt.decide()
        decided_s = thread_cpu_s()
        attempt.conclude()
        self.conclude_s += thread_cpu_s() - decided_s
        self.decide_s += decided_s - collected_s
        self.collect_s += collected_s - began_s
        if isinstance(attempt, GroupAttempt) and attempt.outcome is not None:
            self.placed_count += attempt.outcome.placed_count


async def _measure(case: GangCase, nodes: int) -> GangTimes:
    async with GangBench(case, nodes) as bench:
        for _ in range(case.rounds_before):
            bench.run_round()
            await bench.settle()
        with collector.settled():
            started_s = thread_cpu_s()
            times = bench.run_round()
            total_s = thread_cpu_s() - started_s
        return GangTimes(
            case=case.name,
            nodes=nodes,
            cycles=case.gangs,
            members=case.gangs * max(case.gang_size, 1),
            placed=times.placed_count,
            collect_ms=_ms(times.collect_s),
            decide_ms=_ms(times.decide_s),
            conclude_ms=_ms(times.conclude_s),
            total_ms=_ms(total_s),
        )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _nodes(count: int) -> list[JsonObject]:
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{number:05d}"},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        for number in range(count)
    ]


def _gangs(case: GangCase) -> list[JsonObject]:
    if not case.gang_size:
        return [_pod(f"pod-{number}", case.cpu) for number in range(case.gangs)]
    objects: list[JsonObject] = []
    for gang in (f"gang-{number}" for number in range(case.gangs)):
        objects.append(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": gang, "namespace": "default"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": case.gang_size}}},
            }
        )
        objects += (_pod(f"{gang}-{number}", case.cpu, gang) for number in range(case.gang_size))
    return objects


def _pod(name: str, cpu: str, gang: str = "") -> JsonObject:
    spec: JsonObject = {
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause",
                "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}},
            }
        ]
    }
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
