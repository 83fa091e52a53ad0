"""How many pods per second a whole simulation places, from the queue to the binding.

Timed is what `kubestow simulate` does once its cluster is loaded: the first lists, queue,
decisions, bindings, events, controllers, and the result at the end. All measured pods of a workload
wait when it starts.
"""

import os
from collections.abc import Callable
from typing import Final

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.clock import SystemClock, thread_cpu_s
from kubestow.cluster.resources import default_resources
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.bench.machine import Calibration, ForeignLoad
from kubestow.simulator.bench.measure import peak_memory_mib
from kubestow.simulator.bench.measurement import JSON_NAMES, PodTimes
from kubestow.simulator.bench.workloads import Workload
from kubestow.simulator.results import RUNNING
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import run_in_virtual_time

_RESOURCES: Final = default_resources()


class Throughput(PodTimes, frozen=True, kw_only=True, rename=JSON_NAMES):
    """The result of one simulation."""

    # Seconds it took to load the objects, before the timed section.
    load_s: float


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    waiting_count: int
    scheduled_count: int
    load_s: float
    timed_s: float
    cpu_s: float


MakeSimulation = Callable[[Scenario, SchedulerConfig], Simulation]


def measure_simulation(
    workload: Workload,
    *,
    percentage: int = 0,
    nodes: int | None = None,
    pods: int | None = None,
    make: MakeSimulation = Simulation,
) -> Throughput:
    """Build the workload and time a run that places it; `make` makes that of an older version."""
    foreign_load = ForeignLoad(SystemClock())
    calibration = Calibration()
    calibration.sample()
    cluster = workload.build(
        nodes or workload.nodes, workload.init_pods, pods or workload.measured_pods
    )
    waiting = (*cluster.scheduled_first, *cluster.measured)
    documents = [
        _document(one) for one in (*cluster.nodes, *cluster.objects, *cluster.running, *waiting)
    ]
    config = SchedulerConfig(percentage_of_nodes_to_score=percentage)
    run = run_in_virtual_time(_timed(make, documents, config))
    foreign_cores = foreign_load.cores()
    speed = calibration.result()
    us_per_pod = round(run.timed_s / run.waiting_count * 1e6, 1)
    return Throughput(
        workload=workload.name,
        variant=workload.variant,
        nodes=len(cluster.nodes),
        init_pods=len(cluster.running),
        measure_pods=run.waiting_count,
        percentage_of_nodes_to_score=percentage,
        scheduled=run.scheduled_count,
        pods_per_s=round(run.waiting_count / run.timed_s, 1),
        us_per_pod=us_per_pod,
        cpu_us_per_pod=round(run.cpu_s / run.waiting_count * 1e6, 1),
        us_per_pod_min=us_per_pod,
        us_per_pod_max=us_per_pod,
        peak_memory_mib=peak_memory_mib(),
        cores=os.cpu_count() or 1,
        foreign_cores=None if foreign_cores is None else round(foreign_cores, 2),
        calibration_ms=round(speed.seconds * 1000, 2),
        calibration_spread=round(speed.spread, 2),
        load_s=round(run.load_s, 3),
    )


def _document(one: ApiObject) -> JsonObject:
    resource = _RESOURCES.of_type(type(one))
    return {**to_document(one), "apiVersion": resource.api_version, "kind": resource.kind}


async def _timed(
    make: MakeSimulation, documents: list[JsonObject], config: SchedulerConfig
) -> _Run:
    clock = SystemClock()
    loading_s = clock.monotonic_s()
    run = make(placing(documents), config)
    cpu_started_s = thread_cpu_s()
    started_s = clock.monotonic_s()
    result = await run.run()
    timed_s = clock.monotonic_s() - started_s
    return _Run(
        waiting_count=run.stage.waiting_count,
        scheduled_count=sum(pod.outcome == RUNNING for pod in result.pods),
        load_s=started_s - loading_s,
        timed_s=timed_s,
        cpu_s=thread_cpu_s() - cpu_started_s,
    )
