"""Measures what docs/performance.md says, and writes it there: `make performance`.

Speeds are what `kubestow bench -o json` prints, each in a process of its own. Figures are those of
the machine this runs on while it runs: leave it alone meanwhile. With `--results FILE` every line
is also kept there, and what the file has of a calm machine is not measured again: an interrupted
run continues, and disturbed measurements are repeated. `--quick` measures next to nothing, to see
that the script works.

Not here: what the tables and the picture look like (`performance_tables`, `growth_plot`).
"""

import argparse
import gc
import os
import platform
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec
import numpy as np
from growth_plot import Line, draw
from pages import replace_section
from performance_tables import (
    LOOKED_AT,
    SECTIONS,
    Machine,
    Memory,
    growth_table,
    machine_line,
    memory_table,
    million_table,
    simulation_table,
    unlike_table,
    workload_table,
)

from kubestow.api.decode import decode_json, encode_json
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.service.commands.bench.measure import SIMULATED
from kubestow.simulator.bench import WORKLOADS, Comparison, Variant
from kubestow.simulator.bench.measure import Bench
from kubestow.simulator.bench.measurement import PodTimes
from kubestow.simulator.bench.throughput import Throughput
from kubestow.simulator.bench.workloads import Cluster

DOCS: Final = Path(__file__).parents[1]
BASIC: Final = "SchedulingBasic"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
LineType = TypeVar("LineType", bound=PodTimes)


class Plan(NamedTuple):
    """How much is measured. 0 stands for a workload's own number."""

    workloads: Sequence[str]
    workload_nodes: int
    workload_pods: int
    variants: Sequence[Variant]
    growing: Sequence[str]
    growth_nodes: Sequence[int]
    growth_pods: int
    compared: tuple[int, int]
    most_nodes: int
    simulated: Sequence[str]
    memory_nodes: tuple[int, int]
    memory_pods: tuple[int, int]


FULL: Final = Plan(
    workloads=[workload.name for workload in WORKLOADS],
    workload_nodes=0,
    workload_pods=0,
    variants=tuple(Variant),
    growing=(BASIC, "TopologySpreading", "SchedulingPreferredPodAffinity", "ManyShapes"),
    growth_nodes=(1_000, 5_000, 15_000, 50_000, 200_000),
    growth_pods=2_000,
    compared=(5_000, 50_000),
    most_nodes=1_000_000,
    simulated=SIMULATED,
    memory_nodes=(5_000, 50_000),
    memory_pods=(5_000, 50_000),
)
QUICK: Final = Plan(
    workloads=(BASIC,),
    workload_nodes=100,
    workload_pods=10,
    variants=(Variant.PLAIN,),
    growing=(BASIC,),
    growth_nodes=(100, 200),
    growth_pods=10,
    compared=(100, 200),
    most_nodes=300,
    simulated=(BASIC,),
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
        for name in SECTIONS:
            replace_section(text, name, "")
    except (OSError, ValueError) as error:
        sys.exit(f"cannot write the tables into {page}: {error}")
    measurer = Measurer(repeat=options.repeat, results=options.results)
    sections, picture = _measure_all(plan, measurer)
    for name, body in sections.items():
        text = replace_section(text, name, body)
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "growth.svg").write_text(picture, encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure next to nothing")
    parser.add_argument("--repeat", type=int, default=1, help="the median of so many runs")
    parser.add_argument("--results", type=Path, help="the file that keeps every line measured")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of performance.md")
    return parser.parse_args()


def _measure_all(plan: Plan, measurer: "Measurer") -> tuple[dict[str, str], str]:
    """The generated sections by name, and the picture."""
    workloads = [
        measurer.compared(name, percentage, variant, plan.workload_nodes, plan.workload_pods)
        for name in plan.workloads
        for percentage in LOOKED_AT
        for variant in plan.variants
    ]
    growth = [
        measurer.compared(name, percentage, Variant.PLAIN, nodes, plan.growth_pods)
        for name in plan.growing
        for percentage in LOOKED_AT
        for nodes in plan.growth_nodes
    ]
    million = [
        measurer.compared(BASIC, percentage, Variant.PLAIN, plan.most_nodes, plan.growth_pods)
        for percentage in LOOKED_AT
    ]
    simulated = [
        measurer.simulated(name, variant, plan.workload_nodes, plan.workload_pods)
        for name in plan.simulated
        for variant in plan.variants
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
        "unlike": unlike_table(workloads),
        "growth": growth_table(growth, compared=plan.compared),
        "million": million_table(million),
        "simulations": simulation_table(simulated),
        "memory": memory_table(*memory),
    }
    return sections, draw(
        _lines(growth),
        title="Cost of a pod over the number of nodes",
        x_title="nodes",
        y_title="µs a pod, mean",
    )


class Measurer:
    """Runs `kubestow bench`, or takes the line of an earlier run."""

    def __init__(self, *, repeat: int, results: Path | None) -> None:
        self._repeat = repeat
        self._results = results
        self._kept: dict[str, bytes] = {}
        if results is not None:
            results.parent.mkdir(parents=True, exist_ok=True)
        if results is not None and results.exists():
            for line in results.read_bytes().splitlines():
                kept = msgspec.json.decode(line, type=_Kept)
                self._kept[kept.arguments] = bytes(kept.line)

    def compared(
        self, name: str, percentage: int, variant: Variant, nodes: int, pods: int
    ) -> Comparison:
        arguments = [*_selected(name, variant, nodes, pods), "--percent", str(percentage)]
        return self._line(arguments, Comparison)

    def simulated(self, name: str, variant: Variant, nodes: int, pods: int) -> Throughput:
        return self._line(["simulate", *_selected(name, variant, nodes, pods)], Throughput)

    def _line(self, options: Sequence[str], form: type[LineType]) -> LineType:
        arguments = ["bench", *options, "--repeat", str(self._repeat)]
        text = shlex.join(arguments)
        if text in self._kept:
            kept = msgspec.json.decode(self._kept[text], type=form)
            if not kept.disturbances():
                return kept
        print(f"kubestow {text}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "kubestow", *arguments, "-o", "json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            sys.exit(f"kubestow {text}: ended with code {done.returncode}")
        if self._results is not None:
            with self._results.open("ab") as file:
                kept_line = _Kept(arguments=text, line=msgspec.Raw(done.stdout.strip()))
                file.write(msgspec.json.encode(kept_line) + b"\n")
        return msgspec.json.decode(done.stdout, type=form)


class _Kept(msgspec.Struct, frozen=True):
    """A line of the file of results; later ones replace earlier ones of the same arguments."""

    arguments: str
    line: msgspec.Raw


def _selected(name: str, variant: Variant, nodes: int, pods: int) -> list[str]:
    options = ["--workload", f"^{name}$", "--variant", variant.value]
    if nodes:
        options += ["--nodes", str(nodes)]
    if pods:
        options += ["--pods", str(pods)]
    return options


def _lines(runs: Sequence[Comparison]) -> list[Line]:
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


def hold(nodes: int, pods: int) -> Memory:
    """Peak memory of a scheduler that holds so many nodes and running pods, and then decides.

    Every object is decoded on its own, as one from an API server is; those of a workload share
    what is equal.
    """
    gc.disable()
    made = next(one for one in WORKLOADS if one.name == BASIC).build(nodes, pods, 100)
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
