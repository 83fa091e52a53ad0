"""The generated parts of docs/performance.md: tables from measurements, and where they go.

Pure: the same measurements give the same text. Not here: measuring (`performance`), the picture
(`growth_plot`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.simulator.bench import Measurement
from kubestow.simulator.bench.upstream import CALIBRATION_S, UPSTREAM, scaled

# How many nodes are looked at, by percentageOfNodesToScore.
LOOKED_AT: Final = {0: "adaptive", 100: "all nodes"}


class Machine(NamedTuple):
    """What the figures depend on, other than the code."""

    cores: int
    python: str
    numpy: str


class Memory(NamedTuple):
    """Peak resident memory of one process that holds a cluster."""

    nodes: int
    pods: int
    peak_mib: float


def replace_section(text: str, name: str, body: str) -> str:
    """The document with what stands between the markers of this name replaced."""
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f'expected "{begin}" and later "{end}" exactly once, each on its own line')
    return pattern.sub(lambda _: f"{begin}\n{body.strip()}\n{end}", text)


def machine_line(machine: Machine, measurements: Iterable[Measurement]) -> str:
    calibrations_ms = [one.calibration_ms for one in measurements]
    return (
        f"Measured on {machine.cores} cores with Python {machine.python} and NumPy "
        f"{machine.numpy}. The calibration loop, run in between, took "
        f"{min(calibrations_ms):.1f} to {max(calibrations_ms):.1f} ms, and "
        f"{CALIBRATION_S * 1000:.1f} ms where kube-scheduler was measured: each of its figures "
        "below is scaled by how long it took in that run."
    )


def workload_table(measurements: Iterable[Measurement]) -> str:
    """All workloads at percentages 0 and 100, beside upstream's scaled figures."""
    by_name: dict[str, dict[int, Measurement]] = {}
    for one in measurements:
        by_name.setdefault(one.workload, {})[one.percentage_of_nodes_to_score] = one
    rows: list[list[str]] = []
    for name, runs in by_name.items():
        first = next(iter(runs.values()))
        row = [name, f"{first.nodes:,} / {first.init_pods:,}"]
        for percentage in LOOKED_AT:
            row += _beside_upstream(runs.get(percentage))
        rows.append(row)
    header = ["workload", "nodes / running pods"]
    for what in LOOKED_AT.values():
        header += [f"{what}: pods/s", "kube-scheduler", "ratio"]
    return _table(header, rows, left=1)


def _beside_upstream(run: Measurement | None) -> list[str]:
    if run is None:
        return ["-", "-", "-"]
    baseline = UPSTREAM[run.workload]
    looks_at_all = run.percentage_of_nodes_to_score == 100
    upstream = scaled(
        baseline.all_nodes if looks_at_all else baseline.adaptive, run.calibration_ms / 1000
    )
    return [f"{run.pods_per_s:,.0f}", f"{upstream:,.0f}", f"{run.pods_per_s / upstream:.0f}x"]


def growth_table(runs: Sequence[Measurement], *, compared: tuple[int, int]) -> str:
    """Microseconds a pod, mean and median, over nodes; and how much dearer the larger of the two
    compared sizes is."""
    sizes = sorted({run.nodes for run in runs})
    by_line: dict[tuple[str, int], dict[int, Measurement]] = {}
    for run in runs:
        line = (run.workload, run.percentage_of_nodes_to_score)
        by_line.setdefault(line, {})[run.nodes] = run
    small, large = compared
    rows: list[list[str]] = []
    for (name, percentage), of_size in by_line.items():
        row = [name, LOOKED_AT[percentage]]
        for size in sizes:
            run = of_size.get(size)
            row.append("-" if run is None else f"{run.us_per_pod:,.0f} ({run.p50_us:,.0f})")
        row.append(_growth(of_size, small, large))
        rows.append(row)
    header = ["workload", "looks at", *(f"{size:,}" for size in sizes), f"{large:,} : {small:,}"]
    return _table(header, rows, left=2)


def _growth(of_size: Mapping[int, Measurement], small: int, large: int) -> str:
    if small not in of_size or large not in of_size:
        return "-"
    return f"{of_size[large].us_per_pod / of_size[small].us_per_pod:.1f}x"


def million_table(runs: Iterable[Measurement]) -> str:
    """What the largest cluster takes."""
    rows = [
        [
            f"{run.nodes:,}",
            LOOKED_AT[run.percentage_of_nodes_to_score],
            f"{run.load_s:.1f} s",
            f"{run.peak_memory_mib / 1024:.1f} GiB",
            f"{run.us_per_pod:,.0f}",
            f"{run.p50_us:,.0f}",
            f"{run.scheduled:,} of {run.measure_pods:,}",
        ]
        for run in runs
    ]
    header = ["nodes", "looks at", "loading", "peak memory", "µs a pod", "median", "scheduled"]
    return _table(header, rows, left=0)


def memory_table(base: Memory, more_nodes: Memory, more_pods: Memory) -> str:
    """Memory per node and per pod, as what the same process takes more when there are more."""
    rows = [
        ["a node", _kib_each(base, more_nodes, more_nodes.nodes - base.nodes)],
        ["a running pod", _kib_each(base, more_pods, more_pods.pods - base.pods)],
        [f"{base.nodes:,} nodes and {base.pods:,} pods", f"{base.peak_mib:.0f} MiB"],
        [
            f"{more_pods.nodes:,} nodes and {more_pods.pods:,} pods",
            f"{more_pods.peak_mib:.0f} MiB",
        ],
    ]
    return _table(["what", "peak memory"], rows, left=1)


def _kib_each(base: Memory, more: Memory, count: int) -> str:
    return f"{(more.peak_mib - base.peak_mib) * 1024 / count:.1f} KiB"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """A Markdown table whose first `left` columns are texts and the others numbers."""
    rule = ["---"] * left + ["--:"] * (len(header) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))
