"""The generated parts of docs/performance.md: tables from measurements, and where they go.

Pure: the same measurements give the same text. Not here: measuring (`performance`), the picture
(`growth_plot`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.simulator.bench import Comparison, Variant
from kubestow.simulator.bench.measurement import PodTimes
from kubestow.simulator.bench.throughput import Throughput
from kubestow.simulator.bench.upstream import CALIBRATION_S

# How many nodes are looked at, by percentageOfNodesToScore.
LOOKED_AT: Final = {0: "adaptive", 100: "all nodes"}

# The generated parts of the page.
SECTIONS: Final = (
    "machine", "workloads", "unlike", "growth", "million", "simulations", "memory",
)  # fmt: skip


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


def machine_line(machine: Machine, runs: Sequence[Comparison]) -> str:
    calibrations_ms = [run.calibration_ms for run in runs]
    disturbed = sum(bool(run.disturbances()) for run in runs)
    return (
        f"Measured on {machine.cores} cores with Python {machine.python} and NumPy "
        f"{machine.numpy}, {_runs_text(runs)}. The calibration loop, run in between, took "
        f"{min(calibrations_ms):.1f} to {max(calibrations_ms):.1f} ms, and "
        f"{CALIBRATION_S * 1000:.1f} ms where kube-scheduler was measured: each of its figures "
        "below is scaled by how long it took in that run. "
        + (
            f"{disturbed} of {len(runs)} measurements were disturbed by other processes and are "
            "not compared."
            if disturbed
            else "The machine was calm during all measurements."
        )
    )


def _runs_text(runs: Iterable[PodTimes]) -> str:
    count = min(run.runs for run in runs)
    return "one run of everything" if count == 1 else f"medians of {count} runs"


def workload_table(runs: Iterable[Comparison]) -> str:
    """The plain workloads at percentages 0 and 100, beside upstream's scaled figures."""
    by_name: dict[str, dict[int, Comparison]] = {}
    for run in runs:
        if run.variant is Variant.PLAIN:
            by_name.setdefault(run.workload, {})[run.percentage_of_nodes_to_score] = run
    rows: list[list[str]] = []
    for name, of_percentage in by_name.items():
        first = next(iter(of_percentage.values()))
        row = [name, f"{first.nodes:,} / {first.init_pods:,}"]
        for percentage in LOOKED_AT:
            run = of_percentage.get(percentage)
            row += ["-", "-", "-", "-"] if run is None else _beside_upstream(run)
        rows.append(row)
    header = ["workload", "nodes / running pods"]
    for what in LOOKED_AT.values():
        header += [f"{what}: µs a pod", "first pod", "kube-scheduler", "ratio"]
    return _table(header, rows, left=1)


def _beside_upstream(run: Comparison) -> list[str]:
    return [_us_text(run), f"{run.first_us:,.0f}", _upstream_text(run), _ratio_text(run)]


def unlike_table(runs: Iterable[Comparison]) -> str:
    """What pods cost if they are alike or not, beside upstream, for which that is the same."""
    by_line: dict[tuple[str, int], dict[Variant, Comparison]] = {}
    for run in runs:
        line = (run.workload, run.percentage_of_nodes_to_score)
        by_line.setdefault(line, {})[run.variant] = run
    rows: list[list[str]] = []
    for (name, percentage), of_variant in by_line.items():
        upstream = next((run for run in of_variant.values() if run.ratio is not None), None)
        row = [name, LOOKED_AT[percentage], "-" if upstream is None else _upstream_text(upstream)]
        for variant in Variant:
            run = of_variant.get(variant)
            row += ["-", "-"] if run is None else [_us_text(run), _ratio_text(run)]
        rows.append(row)
    header = ["workload", "looks at", "kube-scheduler"]
    for what in ("equal pods", "unlike", "all unlike"):
        header += [what, "ratio"]
    return _table(header, rows, left=2)


def simulation_table(runs: Iterable[Throughput]) -> str:
    """Whole simulations."""
    rows = [
        [
            run.workload,
            {Variant.PLAIN: "equal", Variant.UNLIKE: "unlike", Variant.ALL_UNLIKE: "all unlike"}[
                run.variant
            ],
            f"{run.nodes:,} / {run.init_pods:,}",
            f"{run.scheduled:,} of {run.measure_pods:,}",
            f"{run.pods_per_s:,.0f}",
            _us_text(run),
            f"{run.cpu_us_per_pod:,.0f}",
        ]
        for run in runs
    ]
    header = [
        "workload", "pods", "nodes / running pods", "placed", "pods/s", "µs a pod", "CPU µs a pod",
    ]  # fmt: skip
    return _table(header, rows, left=2)


def _us_text(run: PodTimes) -> str:
    """The median, and the extremes if there were several runs."""
    if run.runs == 1:
        return f"{run.us_per_pod:,.0f}"
    return f"{run.us_per_pod:,.0f} ({run.us_per_pod_min:,.0f}..{run.us_per_pod_max:,.0f})"


def _upstream_text(run: Comparison) -> str:
    if run.upstream_us_per_pod is None:
        return "-"
    return f"{'~' if run.upstream_is_estimated else ''}{run.upstream_us_per_pod:,.0f}"


def _ratio_text(run: Comparison) -> str:
    if run.ratio is None:
        return "-"
    digits = 1 if run.ratio < 10 else 0
    return f"{'~' if run.upstream_is_estimated else ''}{run.ratio:.{digits}f}x"


def growth_table(runs: Sequence[Comparison], *, compared: tuple[int, int]) -> str:
    """Microseconds a pod, mean and median, over nodes; and how much dearer the larger of the two
    compared sizes is."""
    sizes = sorted({run.nodes for run in runs})
    by_line: dict[tuple[str, int], dict[int, Comparison]] = {}
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


def _growth(of_size: Mapping[int, Comparison], small: int, large: int) -> str:
    if small not in of_size or large not in of_size:
        return "-"
    return f"{of_size[large].us_per_pod / of_size[small].us_per_pod:.1f}x"


def million_table(runs: Iterable[Comparison]) -> str:
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
