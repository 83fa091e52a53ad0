"""`kubestow bench`: the benchmark workloads, in process."""

import re
import sys
from collections.abc import Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
import typer

from kubestow.clock import SystemClock
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.errors import InputError, KubestowError
from kubestow.framework.profile import Profile
from kubestow.service.commands.bench_soak import run_soak
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.recorders import SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.output import Table, progress_bar, stderr, stdout
from kubestow.service.sampling_profiler import SamplingProfiler
from kubestow.simulator.bench import (
    ALL_WORKLOADS,
    WORKLOADS,
    Measurement,
    Workload,
    measure,
    plain_name,
)
from kubestow.simulator.bench.upstream import UPSTREAM, scaled

# About how many pods of a workload `--check` compares.
CHECKED_PODS: Final = 40


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement, and upstream's figure for the same workload, scaled to this machine.

    There is no figure for a workload in another than its own size.
    """

    measurement: Measurement
    upstream_pods_per_s: float | None
    ratio: float | None


def bench(
    workload: Annotated[
        str, typer.Option(metavar="REGEX", help="Only workloads whose name matches.")
    ] = "",
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Build each workload with this many nodes.")
    ] = None,
    pods: Annotated[
        int | None,
        typer.Option(min=1, help="Measure at most this many pods.", show_default="the workload's"),
    ] = None,
    percent: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="percentageOfNodesToScore; 0 adapts to the size, as by default."
        ),
    ] = 0,
    repeat: Annotated[
        int, typer.Option(min=1, help="Run each this many times, keep the best.")
    ] = 1,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="table|json|perf-json", help="How to print.")
    ] = "table",
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write where the time goes as folded stacks, which flame graph tools read.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Also decide a sample of the pods without reuse, and compare."
        ),
    ] = False,
    soak: Annotated[
        str,
        typer.Option(
            metavar="SECONDS|DURATION",
            help="Instead of measuring speed, run the whole service this long (600 or 10m) while "
            "pods and nodes come and go: memory, stalls, latency. Exit code 1 if memory grows.",
        ),
    ] = "",
    http: Annotated[
        bool, typer.Option("--http", help="With --soak: the scheduler uses the API over HTTP.")
    ] = False,
) -> None:
    """Measure how fast pods are decided on.

    Each workload runs in a process of its own, so that its peak memory is its own.
    kube-scheduler's figures come from another machine and are scaled by a calibration loop that
    runs meanwhile.

    Example: kubestow bench --workload 'SchedulingBasic|TopologySpreading' --percent 100
    """
    if output not in ("table", "json", "perf-json"):
        raise InputError(f'-o: there is no format "{output}"; use table, json or perf-json')
    if soak:
        if output == "perf-json":
            raise InputError("-o: a soak is printed as table or json")
        raise typer.Exit(run_soak(soak, nodes=nodes, over_http=http, output=output))
    if http:
        raise InputError("--http: needs --soak")
    chosen = _choose(workload)
    _require_writable(profile)
    measurements: list[Measurement] = []
    with progress_bar("Measuring") as progress, _profiled(profile):
        task = progress.add_task("", total=len(chosen) * repeat)
        for one in chosen:
            best: Measurement | None = None
            for _ in range(repeat):
                count = min(pods or one.measured_pods, one.measured_pods)
                done = _run(one, percent, nodes, count, check, in_process=profile is not None)
                progress.advance(task)
                if best is None or done.pods_per_s > best.pods_per_s:
                    best = done
            assert best is not None
            measurements.append(best)
            if output != "table":
                _print_line(_report(best), output)
    if output == "table":
        _print_table([_report(one) for one in measurements])
    differing = sum(one.differing for one in measurements)
    if check:
        checked = sum(one.checked for one in measurements)
        stderr().print(
            f"{differing} of {checked} decisions differ from those of a scheduler just started"
        )
    raise typer.Exit(1 if differing else 0)


def _require_writable(path: Path | None) -> None:
    """InputError for a file that cannot be written; an existing one is left as it is."""
    if path is None:
        return
    try:
        path.open("ab").close()
    except OSError as error:
        raise InputError(f'--profile: cannot write "{path}": {error.strerror}') from error


def _choose(pattern: str) -> list[Workload]:
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise InputError(f'--workload: "{pattern}" is no regular expression: {error}') from error
    chosen = [one for one in ALL_WORKLOADS if wanted.search(one.name)]
    if not pattern:
        chosen = list(WORKLOADS)
    if not chosen:
        names = ", ".join(one.name for one in WORKLOADS)
        raise InputError(f'--workload: nothing matches "{pattern}"; there are {names}')
    return chosen


def _run(
    workload: Workload,
    percent: int,
    nodes: int | None,
    pods: int,
    check: bool,
    *,
    in_process: bool,
) -> Measurement:
    index = ALL_WORKLOADS.index(workload)
    check_every = max(pods // CHECKED_PODS, 1) if check else 0
    arguments = (index, percent, nodes, pods, check_every)
    if in_process:
        return _measure(*arguments)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(_measure, *arguments).result()
        except BrokenProcessPool as error:
            raise KubestowError(
                f"{workload.name}: the process ended while it measured; was there enough memory?"
            ) from error


def _measure(
    index: int, percent: int, nodes: int | None, pods: int, check_every: int
) -> Measurement:
    return measure(
        ALL_WORKLOADS[index],
        percentage=percent,
        nodes=nodes,
        pods=pods,
        check_every=check_every,
        make_metrics=_recorder,
    )


def _recorder(profiles: Mapping[str, Profile]) -> SchedulerRecorder:
    """The metrics of `kubestow run`."""
    catalogue = SchedulerCatalogue(MetricsRegistry(), DEFAULT_GATES)
    recorder = SchedulerRecorder(catalogue, SystemClock(), np.random.default_rng(0))
    recorder.count_evaluations(profiles)
    return recorder


def _report(measurement: Measurement) -> BenchReport:
    own_size = next(one.nodes for one in ALL_WORKLOADS if one.name == measurement.workload)
    percentage = measurement.percentage_of_nodes_to_score
    if measurement.nodes != own_size or percentage not in (0, 100):
        return BenchReport(measurement=measurement, upstream_pods_per_s=None, ratio=None)
    baseline = UPSTREAM[plain_name(measurement.workload)]
    upstream = scaled(
        baseline.all_nodes if percentage else baseline.adaptive, measurement.calibration_ms / 1000
    )
    return BenchReport(
        measurement=measurement,
        upstream_pods_per_s=round(upstream, 1),
        ratio=round(measurement.pods_per_s / upstream, 1),
    )


def _print_line(report: BenchReport, output: str) -> None:
    data = msgspec.to_builtins(report.measurement)
    if output == "json":
        data |= {"upstream_pods_per_s": report.upstream_pods_per_s, "ratio": report.ratio}
    else:
        # The format of upstream's own suite.
        data = {
            "version": "v1",
            "dataItems": [
                {
                    "data": {"Average": report.measurement.pods_per_s},
                    "unit": "pods/s",
                    "labels": {
                        "Name": report.measurement.workload,
                        "Metric": "SchedulingThroughput",
                    },
                },
                {
                    "data": {
                        "Average": report.measurement.us_per_pod / 1000,
                        "Perc50": report.measurement.p50_us / 1000,
                        "Perc99": report.measurement.p99_us / 1000,
                    },
                    "unit": "ms",
                    "labels": {
                        "Name": report.measurement.workload,
                        "Metric": "scheduler_scheduling_algorithm_duration_seconds",
                    },
                },
            ],
        }
    sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
    sys.stdout.flush()


def _print_table(reports: list[BenchReport]) -> None:
    numbers = ("NODES", "INIT", "PODS", "PODS/S", "µs/POD", "P50", "P99", "MiB", "UPSTREAM", "")
    table = Table("WORKLOAD", *numbers, right=numbers)
    for report in reports:
        one = report.measurement
        table.add(
            one.workload,
            *map(str, (one.nodes, one.init_pods, one.measure_pods)),
            *(f"{value:.0f}" for value in (one.pods_per_s, one.us_per_pod, one.p50_us, one.p99_us)),
            f"{one.peak_memory_mib:.0f}",
            "" if report.upstream_pods_per_s is None else f"{report.upstream_pods_per_s:.0f}",
            "" if report.ratio is None else f"{report.ratio:.1f}x",
        )
    table.print(is_cut=False)
    calibrations_ms = [report.measurement.calibration_ms for report in reports]
    stdout().print(
        f"\nupstream: kube-scheduler v1.36.4, pods/s, scaled to this machine "
        f"(calibration {min(calibrations_ms):.1f} to {max(calibrations_ms):.1f} ms)"
    )


@contextmanager
def _profiled(path: Path | None) -> Generator[None, None, None]:
    if path is None:
        yield
        return
    profiler = SamplingProfiler()
    with profiler:
        yield
    path.write_text(profiler.folded())
    stderr().print(f"wrote {profiler.sample_count} samples to {path}")
