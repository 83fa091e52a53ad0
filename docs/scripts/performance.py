"""Measures what docs/performance.md says, and writes it there: `make performance`.

Each measurement runs in a process of its own, so that its peak memory is its own. Figures are those
of the machine this runs on while it runs: leave it alone meanwhile. `--quick` measures next to
nothing, to see that the script works.

Not here: what the tables and the picture look like (`performance_tables`, `growth_plot`).
"""

import argparse
import gc
import os
import platform
import resource
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

import numpy as np
from growth_plot import Line, draw
from performance_tables import (
    LOOKED_AT,
    Machine,
    Memory,
    growth_table,
    machine_line,
    memory_table,
    million_table,
    replace_section,
    workload_table,
)

from kubestow.api.decode import decode_json, encode_json
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.simulator.bench import WORKLOADS, Measurement, Workload, measure
from kubestow.simulator.bench.measure import Bench
from kubestow.simulator.bench.workloads import Cluster

DOCS: Final = Path(__file__).parents[1]
BASIC: Final = "SchedulingBasic"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Plan(NamedTuple):
    """How much is measured. 0 stands for a workload's own number."""

    workloads: Sequence[str]
    workload_nodes: int
    workload_pods: int
    growing: Sequence[str]
    growth_nodes: Sequence[int]
    growth_pods: int
    compared: tuple[int, int]
    most_nodes: int
    memory_nodes: tuple[int, int]
    memory_pods: tuple[int, int]


FULL: Final = Plan(
    workloads=[workload.name for workload in WORKLOADS],
    workload_nodes=0,
    workload_pods=0,
    growing=(BASIC, "TopologySpreading", "SchedulingPreferredPodAffinity", "ManyShapes"),
    growth_nodes=(1_000, 5_000, 15_000, 50_000, 200_000),
    growth_pods=2_000,
    compared=(5_000, 50_000),
    most_nodes=1_000_000,
    memory_nodes=(5_000, 50_000),
    memory_pods=(5_000, 50_000),
)
QUICK: Final = Plan(
    workloads=(BASIC,),
    workload_nodes=100,
    workload_pods=10,
    growing=(BASIC,),
    growth_nodes=(100, 200),
    growth_pods=10,
    compared=(100, 200),
    most_nodes=300,
    memory_nodes=(100, 300),
    memory_pods=(100, 300),
)


def main() -> None:
    options = _options()
    plan: Plan = QUICK if options.quick else FULL
    folder: Path = options.docs
    page = folder / "performance.md"
    try:
        text = page.read_text(encoding="utf-8")
        # Before an hour of measuring, not after it.
        for name in ("machine", "workloads", "growth", "million", "memory"):
            replace_section(text, name, "")
    except (OSError, ValueError) as error:
        sys.exit(f"cannot write the tables into {page}: {error}")
    sections, picture = _measure_all(plan, repeat=options.repeat)
    for name, body in sections.items():
        text = replace_section(text, name, body)
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "growth.svg").write_text(picture, encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure next to nothing")
    parser.add_argument("--repeat", type=int, default=1, help="keep the best of so many runs")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of performance.md")
    return parser.parse_args()


def _measure_all(plan: Plan, *, repeat: int) -> tuple[dict[str, str], str]:
    """The generated sections by name, and the picture."""
    workloads = [
        _best(_workload(name), percentage, plan.workload_nodes, plan.workload_pods, repeat=repeat)
        for name in plan.workloads
        for percentage in LOOKED_AT
    ]
    growth = [
        _best(_workload(name), percentage, nodes, plan.growth_pods, repeat=repeat)
        for name in plan.growing
        for percentage in LOOKED_AT
        for nodes in plan.growth_nodes
    ]
    million = [
        _best(_workload(BASIC), percentage, plan.most_nodes, plan.growth_pods, repeat=repeat)
        for percentage in LOOKED_AT
    ]
    (few_nodes, more_nodes), (few_pods, more_pods) = plan.memory_nodes, plan.memory_pods
    memory = [
        _in_fresh_process(f"memory of {nodes} nodes and {pods} pods", hold, nodes, pods)
        for nodes, pods in ((few_nodes, few_pods), (more_nodes, few_pods), (few_nodes, more_pods))
    ]
    machine = Machine(
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        numpy=np.__version__,
    )
    sections = {
        "machine": machine_line(machine, workloads),
        "workloads": workload_table(workloads),
        "growth": growth_table(growth, compared=plan.compared),
        "million": million_table(million),
        "memory": memory_table(*memory),
    }
    return sections, draw(
        _lines(growth),
        title="Cost of a pod over the number of nodes",
        x_title="nodes",
        y_title="µs a pod, mean",
    )


def _workload(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


def _lines(runs: Sequence[Measurement]) -> list[Line]:
    points: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for run in runs:
        line = (run.workload, run.percentage_of_nodes_to_score)
        points.setdefault(line, []).append((run.nodes, run.us_per_pod))
    return [
        Line(
            name,
            f"{name.removeprefix('Scheduling')}, {LOOKED_AT[percentage]}",
            percentage != 100,
            points[name, percentage],
        )
        for name, percentage in points
    ]


def _best(
    workload: Workload, percentage: int, nodes: int, pods: int, *, repeat: int
) -> Measurement:
    what = f"{workload.name} on {nodes or workload.nodes} nodes, {LOOKED_AT[percentage]}"
    runs = [
        _in_fresh_process(what, run, workload.name, percentage, nodes, pods) for _ in range(repeat)
    ]
    return min(runs, key=lambda one: one.us_per_pod)


def _in_fresh_process(
    what: str,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    print(what, file=sys.stderr, flush=True)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            sys.exit(f"{what}: the process ended while it measured, perhaps for want of memory")


def run(name: str, percentage: int, nodes: int, pods: int) -> Measurement:
    return measure(_workload(name), percentage=percentage, nodes=nodes or None, pods=pods or None)


def hold(nodes: int, pods: int) -> Memory:
    """Peak memory of a scheduler that holds so many nodes and running pods, and then decides.

    Every object is decoded on its own, as one from an API server is; those of a workload share
    what is equal.
    """
    gc.disable()
    made = _workload(BASIC).build(nodes, pods, 100)
    cluster = Cluster(
        nodes=[decode_json(Node, encode_json(node)) for node in made.nodes],
        running=[decode_json(Pod, encode_json(pod)) for pod in made.running],
        measured=made.measured,
    )
    del made
    bench = Bench(cluster, percentage=0, clock=SystemClock())
    for pod in cluster.measured:
        bench.cycle(bench.enqueue(pod))
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Memory(nodes=nodes, pods=pods, peak_mib=peak_kib / 1024)


if __name__ == "__main__":
    main()
