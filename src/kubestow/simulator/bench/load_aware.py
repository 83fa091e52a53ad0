"""What the plugin LoadAware costs: SchedulingBasic with it and without it, in turns.

Both schedulers have a cluster of their own and decide on the same pods, a few at a time each, so
that what disturbs the machine disturbs both. Timed are the cycle and what the stores do with the
bound pod, as plugins follow them. Measurements of all nodes come in as they do every 15 seconds
where 100 pods a second are placed; what becomes of them is timed, reading a source is not.

With the plugin there are four cases: no measurements; all nodes measured; some not; and some of
them over a threshold.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubestow import collector
from kubestow.api.pod import assign
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS, SystemClock, thread_cpu_s
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.bench.measure import Bench
from kubestow.simulator.bench.workloads import WORKLOADS
from kubestow.usage.store import UsageStore

_WORKLOAD: Final = "SchedulingBasic"
_PODS_EACH: Final = 50
_PODS_PER_READING: Final = 1500
# As many as the default history has.
_READINGS: Final = 20
_WITH_PLUGIN: Final = SchedulerConfig(
    profiles=(
        ProfileConfig(plugins=Plugins(multi_point=PluginSet(enabled=(PluginRef("LoadAware", 1),)))),
    )
)


class _Case(NamedTuple):
    """The shares of nodes that are measured, and of these that are above a threshold."""

    measured: float
    hot: float


CASES: Final = {
    "no measurements": _Case(0, 0),
    "measured": _Case(1, 0),
    "nine tenths measured": _Case(0.9, 0),
    "a tenth too hot": _Case(1, 0.1),
}


class LoadTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Microseconds of CPU time per pod, of all pods but those of the first turn.

    median_percent   the median of what each turn took more than the one without beside it: without
                     what happens now and then, such as a reading
    """

    case: str
    nodes: int
    pods: int
    without_us: float
    with_us: float
    increase_percent: float
    median_percent: float


def measure_load_aware(nodes: int, pods: int) -> list[LoadTimes]:
    return [_measure(name, case, nodes, pods) for name, case in CASES.items()]


def _measure(name: str, case: _Case, nodes: int, pods: int) -> LoadTimes:
    workload = next(workload for workload in WORKLOADS if workload.name == _WORKLOAD)
    clock = SystemClock()
    with collector.paused():
        # Pods and nodes of their own: what is derived from one is kept with it.
        clusters = [workload.build(nodes, workload.init_pods, pods) for _ in range(2)]
        source = _Source(case, [node.metadata.name for node in clusters[1].nodes])
        source.fill(clock.now_ns())
        benches = [
            Bench(clusters[0], percentage=0, clock=clock),
            Bench(clusters[1], percentage=0, clock=clock, config=_WITH_PLUGIN, usage=source.usage),
        ]
        queues = [
            [bench.enqueue(pod) for pod in cluster.measured]
            for bench, cluster in zip(benches, clusters, strict=True)
        ]
    turns: list[Sequence[float]] = []
    with collector.settled():
        for first in range(0, pods, _PODS_EACH):
            times: list[float] = []
            for bench, queue in zip(benches, queues, strict=True):
                started_s = thread_cpu_s()
                if bench is benches[1] and first % _PODS_PER_READING == 0:
                    source.read(clock.now_ns())
                part = queue[first : first + _PODS_EACH]
                for pod in part:
                    _place(bench, pod)
                times.append((thread_cpu_s() - started_s) / len(part))
            turns.append(times)
    kept = np.array(turns[1:] or turns)  # In the first turn both make what they keep.
    without_s, with_s = kept.mean(axis=0).tolist()
    return LoadTimes(
        case=name,
        nodes=nodes,
        pods=pods,
        without_us=round(without_s * 1e6, 1),
        with_us=round(with_s * 1e6, 1),
        increase_percent=round((with_s / without_s - 1) * 100, 1),
        median_percent=round(median(each[1] / each[0] - 1 for each in kept.tolist()) * 100, 1),
    )


def _place(bench: Bench, pod: PodInfo) -> None:
    decision = bench.cycle(pod)
    bench.objects.pods.put(assign(pod.pod, decision.node_name))


class _Source:
    """Nodes of the workload that use 10 to 60 % of their CPU, or 95 %."""

    def __init__(self, case: _Case, names: Sequence[str]) -> None:
        rng, nodes = np.random.default_rng(1), len(names)
        shares = rng.integers(100, 600, nodes)
        shares[rng.permutation(nodes)[: int(nodes * case.hot)]] = 950
        taken = np.sort(rng.permutation(nodes)[: int(nodes * case.measured)])
        self.usage = UsageStore(history=_READINGS)
        indexes: list[int] = taken.tolist()
        self._names = [names[index] for index in indexes]
        self._shares = shares[taken]

    def fill(self, now_ns: int) -> None:
        """Measure until now."""
        for before in range(_READINGS - 1, -1, -1):
            self.read(now_ns - before * NANOSECONDS)

    def read(self, now_ns: int) -> None:
        self.usage.add_nodes(
            self._names,
            time_ns=now_ns,
            cpu_milli=self._shares * 4,
            memory_bytes=self._shares * (32 << 30) // 1000,
        )
