"""Runs a workload the way the upstream figures were taken (spec 10 §6.1).

Timed, per pod, is what `kubestow run` does from the queue to Reserve: the attempt is metered, the
snapshot is refreshed, the pod is decided on, and if it fits it is assumed and reserved. Whatever is
derived from a pod is derived in that time. Not timed: the queue, binding, the API. PreBind runs
too, so that the objects it writes are there for the next pod. A pod that has to evict others takes
two cycles, both timed; its victims are removed in between. All measured pods count, from the first.

The same section is timed on the clock and in CPU time; how calm the machine was is recorded too.
"""

import os
import resource
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import numpy as np

from kubestow import collector
from kubestow.api.meta import ApiObject
from kubestow.api.pod import DEFAULT_SCHEDULER_NAME, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock, SystemClock, thread_cpu_s
from kubestow.cluster.resources import Subresource
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.deciding import DecidingHalf, NoQueue
from kubestow.engine.decision import Decision
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.metrics import RESERVE
from kubestow.framework.plugin import PostFilterResult
from kubestow.framework.profile import Profile
from kubestow.framework.runner import run_reserve
from kubestow.framework.status import Code, Status
from kubestow.simulator.bench.machine import Calibration, ForeignLoad
from kubestow.simulator.bench.measurement import Measurement
from kubestow.simulator.bench.workloads import Cluster, Workload

if TYPE_CHECKING:
    from kubestow.usage.view import UsageView

T = TypeVar("T", bound=ApiObject)

# Upstream's figures end a run after about this long.
TIMED_S_MAX: Final = 20.0

# The default of `--attempt-budget`.
BUDGET_S: Final = 10.0

# How often the speed of the machine is sampled, in timed seconds.
CALIBRATE_EVERY_S: Final = 0.02


MetricsFactory = Callable[[Mapping[str, Profile]], SchedulerMetrics]


def no_metrics(profiles: Mapping[str, Profile]) -> SchedulerMetrics:
    return NO_SCHEDULER_METRICS


class Bench:
    """The deciding part of a scheduler, with the workload's cluster."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        percentage: int,
        clock: Clock,
        make_metrics: MetricsFactory = no_metrics,
        config: SchedulerConfig | None = None,
        usage: "UsageView | None" = None,
    ) -> None:
        """`config` is one without a percentage; by default that of the default profile."""
        self.clock = clock
        self._usage = usage
        self._timer = AttemptTimer(clock.monotonic_s, budget_s=BUDGET_S, count_slow=_ignore_slow)
        self.cache = Cache()
        self.objects = ClusterObjects()
        self._queue = NoQueue(self.objects)
        self.nominator = self._queue.nominator
        self._config = msgspec.structs.replace(
            config or SchedulerConfig(), percentage_of_nodes_to_score=percentage
        )
        for node in cluster.nodes:
            self.cache.add_node(node)
        self.objects.put(*cluster.objects)
        for pod in cluster.running:
            self.objects.pods.put(pod)
            self.cache.add_pod(PodInfo(pod))
        deciding = self._deciding(self.objects, timer=self._timer)
        self.snapshot, self.decider = deciding.snapshot, deciding.decider
        self.profile = deciding.profiles[DEFAULT_SCHEDULER_NAME]
        # Plugins report to the same metrics, which are made for them.
        self._metrics = make_metrics(deciding.profiles)
        deciding.handles[DEFAULT_SCHEDULER_NAME].metrics = self._metrics

    def enqueue(self, pod: Pod) -> PodInfo:
        """Add a new pod, as the queue does."""
        info = PodInfo(pod)
        self.objects.pods.put(pod)
        self._queue.waiting[info.key] = info
        return info

    def cycle(self, pod: PodInfo) -> Decision:
        """One scheduling cycle: the timed part."""
        meter = self._metrics.start_attempt(self.profile.name, keeps_timings=False)
        self.snapshot.refresh(self.cache)
        decision = self.decider.decide(self.profile, pod, meter, may_be_set_aside=False)
        meter.algorithm_ended()
        self._metrics.decided(decision)
        if decision.is_scheduled:
            assumed = pod.assigned_to(decision.node_name)
            self.cache.assume_pod(assumed)
            self.nominator.delete(pod.pod)
            meter.resume()
            self._timer.resume()
            status = run_reserve(self.profile, decision.state, assumed, decision.node_name)
            meter.point_ended(RESERVE, status)
        return decision

    def decide_from_scratch(self, pod: PodInfo) -> Decision:
        """The decision of a scheduler that has just started, without any cached results."""
        deciding = self._deciding(_copied(self.objects), reuses_answers=False)
        deciding.decider.next_start_index = self.decider.next_start_index
        return deciding.decide(deciding.profiles[DEFAULT_SCHEDULER_NAME], pod)

    def pre_bind(self, pod: PodInfo, decision: Decision) -> None:
        """Write what was reserved for a placed pod."""
        node_name = decision.node_name
        assigned = pod.assigned_to(node_name)
        for plugin in self.profile.pre_bind:
            status, _ = plugin.pre_bind_pre_flight(decision.state, assigned, node_name)
            if status is None:
                status = _finish(plugin.pre_bind(decision.state, assigned, node_name))
            assert status is None or status.code == Code.SKIP, status

    def evict_and_nominate(self, pod: PodInfo, result: PostFilterResult) -> PodInfo:
        """Remove the victims that preemption chose, and nominate the pod to the node."""
        for victim in result.victims:
            self.cache.remove_pod(victim.pod)
            self.objects.pods.remove(victim.namespace, victim.name)
        status = msgspec.structs.replace(
            pod.pod.status, nominated_node_name=result.nominated_node_name
        )
        pod.update(msgspec.structs.replace(pod.pod, status=status))  # As the queue does.
        self.objects.pods.put(pod.pod)
        self.nominator.add(pod.pod)
        return pod

    def _deciding(
        self,
        objects: ClusterObjects,
        *,
        timer: AttemptTimer | None = None,
        reuses_answers: bool = True,
    ) -> DecidingHalf[NoQueue]:
        """The profile with caches of its own."""
        return DecidingHalf(
            config=self._config,
            objects=objects,
            clock=self.clock,
            client=_DirectWrites(self.clock, objects),
            make_queue=lambda _: self._queue,
            cache=self.cache,
            timer=timer,
            usage=self._usage,
            reuses_answers=reuses_answers,
        )


def _copied(objects: ClusterObjects) -> ClusterObjects:
    copy = ClusterObjects()
    for kind in objects.types():
        copy.put(*objects.store(kind))
    return copy


def measure(
    workload: Workload,
    *,
    percentage: int = 0,
    nodes: int | None = None,
    pods: int | None = None,
    check_every: int = 0,
    make_metrics: MetricsFactory = no_metrics,
) -> Measurement:
    """Build the workload and time it. `check_every` n compares every n-th decision."""
    clock = SystemClock()
    foreign_load = ForeignLoad(clock)
    with collector.paused():
        cluster = workload.build(
            nodes or workload.nodes, workload.init_pods, pods or workload.measured_pods
        )
        started_s = clock.monotonic_s()
        bench = Bench(cluster, percentage=percentage, clock=clock, make_metrics=make_metrics)
        bench.snapshot.refresh(bench.cache)
        load_s = clock.monotonic_s() - started_s
    for pod in cluster.scheduled_first:
        info = bench.enqueue(pod)
        decision = bench.cycle(info)
        if decision.is_scheduled:
            bench.pre_bind(info, decision)
    infos = [bench.enqueue(pod) for pod in cluster.measured]
    run = _Run(bench, clock, check_every)
    with collector.settled():
        for info in infos:
            run.place(info)
            if run.timed_s > TIMED_S_MAX:
                break
    return run.result(
        workload,
        cluster,
        percentage=percentage,
        load_s=load_s,
        foreign_cores=foreign_load.cores(),
    )


class _Run:
    def __init__(self, bench: Bench, clock: Clock, check_every: int) -> None:
        self._bench = bench
        self._clock = clock
        self._check_every = check_every
        self._times_s: list[float] = []
        self.timed_s = 0.0
        self._cpu_s = 0.0
        self._calibration = Calibration()
        self._calibrate_at_s = 0.0
        self._scheduled = 0
        self._checked = 0
        self._differing = 0

    def place(self, pod: PodInfo) -> None:
        before_s = self.timed_s
        decision = self._timed_cycle(pod)
        if decision.post_filter is not None and decision.post_filter.nominated_node_name:
            pod = self._bench.evict_and_nominate(pod, decision.post_filter)
            decision = self._timed_cycle(pod)
        if decision.is_scheduled:
            self._bench.pre_bind(pod, decision)
        self._times_s.append(self.timed_s - before_s)
        if self.timed_s >= self._calibrate_at_s:
            self._calibrate_at_s += CALIBRATE_EVERY_S
            self._calibration.sample()
        self._scheduled += decision.is_scheduled

    def _timed_cycle(self, pod: PodInfo) -> Decision:
        is_checked = self._check_every and len(self._times_s) % self._check_every == 0
        expected = self._bench.decide_from_scratch(pod) if is_checked else None
        cpu_started_s = thread_cpu_s()
        started_s = self._clock.monotonic_s()
        decision = self._bench.cycle(pod)
        self.timed_s += self._clock.monotonic_s() - started_s
        self._cpu_s += thread_cpu_s() - cpu_started_s
        if expected is not None:
            self._checked += 1
            self._differing += not _is_same(expected, decision)
        return decision

    def result(
        self,
        workload: Workload,
        cluster: Cluster,
        *,
        percentage: int,
        load_s: float,
        foreign_cores: float | None,
    ) -> Measurement:
        times_us = np.array(self._times_s) * 1e6
        mean_us = round(self.timed_s / len(times_us) * 1e6, 1)
        calibration = self._calibration.result()
        return Measurement(
            workload=workload.name,
            variant=workload.variant,
            nodes=len(cluster.nodes),
            init_pods=len(cluster.running) + len(cluster.scheduled_first),
            measure_pods=len(times_us),
            percentage_of_nodes_to_score=percentage,
            scheduled=self._scheduled,
            pods_per_s=round(len(times_us) / self.timed_s, 1),
            us_per_pod=mean_us,
            cpu_us_per_pod=round(self._cpu_s / len(times_us) * 1e6, 1),
            us_per_pod_min=mean_us,
            us_per_pod_max=mean_us,
            first_us=round(float(times_us[0]), 1),
            p50_us=round(float(np.percentile(times_us, 50)), 1),
            p99_us=round(float(np.percentile(times_us, 99)), 1),
            peak_memory_mib=peak_memory_mib(),
            load_s=round(load_s, 3),
            cores=os.cpu_count() or 1,
            foreign_cores=None if foreign_cores is None else round(foreign_cores, 2),
            calibration_ms=round(calibration.seconds * 1000, 2),
            calibration_spread=round(calibration.spread, 2),
            checked=self._checked,
            differing=self._differing,
        )


class _DirectWrites(MemoryClient):
    """Updates are in the scheduler's stores at once, as from an informer without delay."""

    def __init__(self, clock: Clock, objects: ClusterObjects) -> None:
        super().__init__(MemoryCluster(clock))
        self._objects = objects

    async def update(self, old: T, new: T, *, subresource: Subresource = "") -> T:
        version = str(int(old.metadata.resource_version) + 1)
        metadata = msgspec.structs.replace(new.metadata, resource_version=version)
        written = msgspec.structs.replace(new, metadata=metadata)
        self._objects.put(written)
        return written


def _is_same(one: Decision, other: Decision) -> bool:
    return (
        one.node_name == other.node_name
        and one.message == other.message
        and one.nomination == other.nomination
        and one.evaluated_count == other.evaluated_count
        and np.array_equal(one.feasible, other.feasible)
        # The metrics count by these which plugins were asked.
        and one.state.skip_filter == other.state.skip_filter
        and (one.scores is None) == (other.scores is None)
        and (
            one.scores is None
            or other.scores is None
            or (
                np.array_equal(one.scores.total, other.scores.total)
                and one.state.skip_score == other.state.skip_score
            )
        )
    )


def peak_memory_mib() -> float:
    """The most memory that this process had since its start."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _finish(work: Coroutine[Any, Any, Status | None]) -> Status | None:
    """Run a coroutine that only awaits the client, which never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError(f"{work} waits")


def _ignore_slow(plugin: str, point: str) -> None:
    """The log has it."""
