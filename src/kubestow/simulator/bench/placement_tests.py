"""What placement tests cost: every node of a large cluster fails, and many small cases."""

import os
import resource
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock, process_cpu_s
from kubestow.simulator.bench.measure import peak_memory_mib
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.reading import read_test
from kubestow.simulator.placement_tests.running import RunOptions, run_cases

REPLICAS: Final = 100
SMALL_NODES: Final = 10
SMALL_PODS: Final = 20


class PlacementTestTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Seconds on the clock and of CPU time, of all processes.

    count     failures or cases
    read_s    reading the files, which is part of `total_s`
    """

    case: str
    nodes: int
    pods: int
    count: int
    jobs: int
    read_s: float
    total_s: float
    cpu_s: float
    peak_memory_mib: float
    passed: int


def measure_tests(
    *, nodes: int, pods: int, cases: int, jobs: int | None
) -> list[PlacementTestTimes]:
    """The failures of every node of one cluster, then small cases."""
    options = RunOptions(jobs=jobs or os.cpu_count() or 1)
    large = _document(nodes, pods, cpu=f"{max(2 * pods // nodes, 2)}")
    small = _document(SMALL_NODES, SMALL_PODS, cpu="4")
    return [
        _measure("every node fails", [{**large, "forEach": "node"}], nodes, pods, options),
        _measure("small cases", [small] * cases, SMALL_NODES, SMALL_PODS, options),
    ]


def _measure(
    name: str, documents: list[JsonObject], nodes: int, pods: int, options: RunOptions
) -> PlacementTestTimes:
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="kubestow-bench-") as folder:
        files = [Path(folder, f"{number}.placement.yaml") for number in range(len(documents))]
        for file, document in zip(files, documents, strict=True):
            file.write_bytes(msgspec.json.encode(document))
        cpu_s, started_s = process_cpu_s() + children_cpu_s(), clock.monotonic_s()
        read: list[PlacementCase] = [case for file in files for case in read_test(file)]
        read_s = clock.monotonic_s() - started_s
        run = run_cases(read, options)
    failures = sum(case.for_each.count for case in run.cases if case.for_each is not None)
    return PlacementTestTimes(
        case=name,
        nodes=nodes,
        pods=pods,
        count=failures or len(run.cases),
        jobs=options.jobs,
        read_s=round(read_s, 3),
        total_s=round(clock.monotonic_s() - started_s, 3),
        cpu_s=round(process_cpu_s() + children_cpu_s() - cpu_s, 3),
        peak_memory_mib=max(peak_memory_mib(), _largest_copy_mib()),
        passed=run.passed,
    )


def children_cpu_s() -> float:
    """CPU time of the processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _largest_copy_mib() -> float:
    """The most memory of one process that has ended; copies share most of it."""
    return round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1)


def _document(nodes: int, pods: int, *, cpu: str) -> JsonObject:
    shape = {"name": "node", "count": nodes, "capacity": {"cpu": cpu, "memory": "64Gi"}}
    replicas = min(REPLICAS, pods)
    return {
        "cluster": {"nodes": [shape]},
        "given": [{"apply": [_deployment(n, replicas) for n in range(pods // replicas)]}],
        "expect": [{"placed": "all"}],
    }


def _deployment(number: int, replicas: int) -> JsonObject:
    labels = {"app": f"web-{number}"}
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web-{number}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }
