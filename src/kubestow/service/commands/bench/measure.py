"""What `kubestow bench` does: run the benchmark workloads, in process.

Not here: its options (`command`), how the results are printed (`output`).
"""

import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubestow.clock import SystemClock
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.editions import CORE, DEFAULT, edition_named
from kubestow.errors import InputError, KubestowError
from kubestow.files import keeping
from kubestow.framework.profile import Profile
from kubestow.service.commands.bench.output import print_line, print_table
from kubestow.service.formats import BenchFormat, VariantChoice
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.recorders import SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.output import progress_bar, stderr
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
from kubestow.simulator.bench.throughput import MakeSimulation, measure_simulation
from kubestow.simulator.scenario.run import Simulation

# About how many pods of a workload `--check` compares.
CHECKED_PODS: Final = 40
# What runs if no workload is named, and what `bench simulate` runs then.
NAMES: Final = tuple(one.name for one in WORKLOADS)
SIMULATED: Final = (
    "SchedulingBasic", "SchedulingPodAntiAffinity", "TopologySpreading",
    "SchedulingPreferredPodAffinity",
)  # fmt: skip


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for; its help says what each means."""

    workload: str
    variant: VariantChoice
    nodes: int | None
    pods: int | None
    percent: int
    repeat: int
    output: BenchFormat
    profile: Path | None
    force: bool
    is_checked: bool = False
    is_simulated: bool = False
    compatibility: str = DEFAULT


class Job(NamedTuple):
    """One measurement, as it is sent to the process that makes it."""

    workload_index: int
    variant: Variant
    percent: int
    nodes: int | None
    pods: int | None
    check: bool
    compatibility: str = DEFAULT

    @property
    def workload(self) -> Workload:
        return variant_of(WORKLOADS[self.workload_index], self.variant)

    @property
    def pod_count(self) -> int:
        own = WORKLOADS[self.workload_index].measured_pods
        return min(self.pods or own, own)


def measure_workloads(request: BenchRequest) -> int:
    """Measure and print; the exit code."""
    if request.profile is not None:
        keeping.require_new(request.profile, "--profile", force=request.force)
    jobs = [
        _job(one, each, request)
        for one in _choose(request.workload, SIMULATED if request.is_simulated else NAMES)
        for each in _variants(request.variant)
    ]
    results: list[PodTimes] = []
    with progress_bar("Measuring") as progress, _profiled(request.profile):
        task = progress.add_task("", total=len(jobs) * request.repeat)
        for job in jobs:
            runs: list[PodTimes] = []
            for _ in range(request.repeat):
                run = _simulate if request.is_simulated else _measure
                runs.append(_run(run, job, in_process=request.profile is not None))
                progress.advance(task)
            results.append(_summary(runs))
            if request.output is not BenchFormat.TABLE:
                print_line(results[-1], request.output)
    if request.output is BenchFormat.TABLE:
        print_table(results)
    return _report_differences(results) if request.is_checked else 0


def _job(workload: Workload, variant: Variant, request: BenchRequest) -> Job:
    return Job(
        WORKLOADS.index(workload),
        variant,
        request.percent,
        request.nodes,
        request.pods,
        request.is_checked,
        request.compatibility,
    )


def _variants(choice: VariantChoice) -> Sequence[Variant]:
    return tuple(Variant) if choice is VariantChoice.ALL else (Variant(choice.value),)


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
    # Ctrl-C reaches both processes; the one that measures ends without a traceback.
    with ProcessPoolExecutor(
        1,
        get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_DFL),
    ) as pool:
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
    make: MakeSimulation = Simulation
    edition = edition_named(job.compatibility)
    if edition is not CORE:
        # Imported here, like every other edition: only when it is to run.
        from kubestow.editions.simulating import default_simulation

        make = default_simulation(edition)
    return measure_simulation(
        job.workload, percentage=job.percent, nodes=job.nodes, pods=job.pod_count, make=make
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
    keeping.write(path, profiler.folded(), force=True)
    stderr().print(f"wrote {profiler.sample_count} samples to {path}")


_INTERVAL_S: Final = 0.001


class SamplingProfiler:
    """Samples the main thread's stack for flame graphs.

    A thread of its own takes about a thousand samples a second. The result is in the folded form
    that flame graph tools read: one line per stack, outermost call first, with its count.
    """

    def __init__(self) -> None:
        self._stacks: Counter[str] = Counter()
        self._is_stopped = threading.Event()
        self._target = threading.get_ident()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def sample_count(self) -> int:
        return self._stacks.total()

    def folded(self) -> str:
        """`outer;inner;innermost count`, a line per distinct stack."""
        return "".join(f"{stack} {count}\n" for stack, count in self._stacks.most_common())

    def __enter__(self) -> "SamplingProfiler":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._is_stopped.wait(_INTERVAL_S):
            # The only way to read another thread's stack; documented despite its private name.
            frame = sys._current_frames().get(self._target)  # pyright: ignore[reportPrivateUsage]
            if frame is not None:
                self._stacks[";".join(reversed(list(_names(frame))))] += 1


def _names(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}"
        frame = frame.f_back
