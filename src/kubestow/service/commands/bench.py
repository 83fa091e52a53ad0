"""`kubestow bench`: the benchmark workloads, in process.

Not here: how the results are printed (`bench_output`), and the soak (`bench_soak`).
"""

import re
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import typer

from kubestow.clock import SystemClock
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.errors import InputError, KubestowError
from kubestow.framework.profile import Profile
from kubestow.service.commands.bench_output import BenchFormat, print_line, print_table
from kubestow.service.commands.bench_soak import run_soak
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.recorders import SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.output import progress_bar, stderr
from kubestow.service.sampling_profiler import SamplingProfiler
from kubestow.simulator.bench import (
    WORKLOADS,
    Measurement,
    Variant,
    Workload,
    compare,
    measure,
    median_of,
    variant_of,
)
from kubestow.simulator.bench.measurement import PodTimes
from kubestow.simulator.bench.throughput import measure_simulation

# About how many pods of a workload `--check` compares.
CHECKED_PODS: Final = 40
# What runs if no workload is named, and what `--simulate` runs then.
NAMES: Final = tuple(one.name for one in WORKLOADS)
SIMULATED: Final = (
    "SchedulingBasic", "SchedulingPodAntiAffinity", "TopologySpreading",
    "SchedulingPreferredPodAffinity",
)  # fmt: skip


class VariantChoice(StrEnum):
    """The variants of `--variant`."""

    PLAIN = "plain"
    UNLIKE = "unlike"
    ALL_UNLIKE = "all-unlike"
    ALL = "all"

    def variants(self) -> Sequence[Variant]:
        return tuple(Variant) if self is VariantChoice.ALL else (Variant(self.value),)


class Job(NamedTuple):
    """One measurement, as it is sent to the process that makes it."""

    workload_index: int
    variant: Variant
    percent: int
    nodes: int | None
    pods: int | None
    check: bool

    @property
    def workload(self) -> Workload:
        return variant_of(WORKLOADS[self.workload_index], self.variant)

    @property
    def pod_count(self) -> int:
        own = WORKLOADS[self.workload_index].measured_pods
        return min(self.pods or own, own)


def bench(
    workload: Annotated[
        str, typer.Option(metavar="REGEX", help="Only workloads whose name matches.")
    ] = "",
    variant: Annotated[
        VariantChoice,
        typer.Option(
            help="How much the measured pods differ. plain: as the suite has them, mostly equal; "
            "unlike: each has a label and an owner of its own; all-unlike: requests of its own, "
            "too; all: one after the other."
        ),
    ] = VariantChoice.PLAIN,
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
        int,
        typer.Option(min=1, help="Run each this many times; print medians, and the extremes."),
    ] = 1,
    output: Annotated[BenchFormat, typer.Option("--output", "-o", help="How to print.")] = (
        BenchFormat.TABLE
    ),
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
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate",
            help="Instead of deciding alone, time whole simulations, as of kubestow simulate: "
            "queue, decisions, bindings, controllers.",
        ),
    ] = False,
    soak: Annotated[
        str,
        typer.Option(
            metavar="SECONDS|DURATION",
            help="Instead of measuring speed, run the whole service this long (600 or 10m) while "
            "pods, nodes and all other objects come and go: memory, stalls, latency. Exit code 1 "
            "if something grows. --pods is how many pods are created in all.",
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --soak: draw what was measured into this .svg or .png (needs the extra "
            "charts).",
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="With --soak: the scheduler uses the API over HTTP.")
    ] = False,
) -> None:
    """Measure how fast pods are decided on.

    Each workload runs in a process of its own, so that its peak memory is its own.
    kube-scheduler's figures come from another machine and are scaled by a calibration loop that
    runs meanwhile. On a busy machine they are left out: the last column says what disturbed it.

    Example: kubestow bench --workload 'SchedulingBasic|TopologySpreading' --repeat 5
    """
    if soak:
        if output is BenchFormat.PERF_JSON:
            raise InputError("-o: a soak is printed as table or json")
        raise typer.Exit(
            run_soak(soak, nodes=nodes, pods=pods, over_http=http, output=output, plot=plot)
        )
    for flag, is_given in (("--http", http), ("--plot", plot is not None)):
        if is_given:
            raise InputError(f"{flag}: needs --soak")
    if simulate and check:
        raise InputError("--check: compares decisions, which --simulate does not time alone")
    _require_writable(profile)
    jobs = [
        Job(WORKLOADS.index(one), each, percent, nodes, pods, check)
        for one in _choose(workload, SIMULATED if simulate else NAMES)
        for each in variant.variants()
    ]
    results: list[PodTimes] = []
    with progress_bar("Measuring") as progress, _profiled(profile):
        task = progress.add_task("", total=len(jobs) * repeat)
        for job in jobs:
            runs: list[PodTimes] = []
            for _ in range(repeat):
                run = _simulate if simulate else _measure
                runs.append(_run(run, job, in_process=profile is not None))
                progress.advance(task)
            results.append(_summary(runs))
            if output is not BenchFormat.TABLE:
                print_line(results[-1], output)
    if output is BenchFormat.TABLE:
        print_table(results)
    raise typer.Exit(_report_differences(results) if check else 0)


def _require_writable(path: Path | None) -> None:
    """InputError for a file that cannot be written; an existing one is left as it is."""
    if path is None:
        return
    try:
        path.open("ab").close()
    except OSError as error:
        raise InputError(f'--profile: cannot write "{path}": {error.strerror}') from error


def _choose(pattern: str, by_default: Container[str]) -> list[Workload]:
    """The workloads that match; without a pattern those that run by default."""
    if not pattern:
        return [one for one in WORKLOADS if one.name in by_default]
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise InputError(f'--workload: "{pattern}" is no regular expression: {error}') from error
    chosen = [one for one in WORKLOADS if wanted.search(one.name)]
    if not chosen:
        names = ", ".join(one.name for one in WORKLOADS)
        raise InputError(
            f'--workload: nothing matches "{pattern}"; there are {names}; '
            "--variant chooses their variants"
        )
    return chosen


def _run(measuring: Callable[[Job], PodTimes], job: Job, *, in_process: bool) -> PodTimes:
    if in_process:
        return measuring(job)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(measuring, job).result()
        except BrokenProcessPool as error:
            raise KubestowError(
                f"{job.workload.title}: the process ended while it measured; "
                "was there enough memory?"
            ) from error


def _measure(job: Job) -> PodTimes:
    return measure(
        job.workload,
        percentage=job.percent,
        nodes=job.nodes,
        pods=job.pod_count,
        check_every=max(job.pod_count // CHECKED_PODS, 1) if job.check else 0,
        make_metrics=_recorder,
    )


def _simulate(job: Job) -> PodTimes:
    return measure_simulation(
        job.workload, percentage=job.percent, nodes=job.nodes, pods=job.pod_count
    )


def _summary(runs: Sequence[PodTimes]) -> PodTimes:
    median = median_of(runs)
    return compare(median) if isinstance(median, Measurement) else median


def _report_differences(results: Sequence[PodTimes]) -> int:
    """Print how many decisions differed; the exit code."""
    measurements = [one for one in results if isinstance(one, Measurement)]
    checked = sum(one.checked for one in measurements)
    differing = sum(one.differing for one in measurements)
    stderr().print(
        f"{differing} of {checked} decisions differ from those of a scheduler just started"
    )
    return 1 if differing else 0


def _recorder(profiles: Mapping[str, Profile]) -> SchedulerRecorder:
    """The metrics of `kubestow run`."""
    catalogue = SchedulerCatalogue(MetricsRegistry(), DEFAULT_GATES)
    recorder = SchedulerRecorder(catalogue, SystemClock(), np.random.default_rng(0))
    recorder.count_evaluations(profiles)
    return recorder


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
