"""What `kubestow compare` does: read the input, run all variants, print what they come to."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.gang_dialects import DIALECTS
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.service.commands.cluster_input import InputRequest, load_input
from kubestow.service.commands.compare.output import print_comparison
from kubestow.service.commands.scheduler_config import checked_gates
from kubestow.service.formats import CompareFormat
from kubestow.service.output import progress_bar
from kubestow.simulator.comparison.comparison import (
    SchedulerComparison,
    VariantTimes,
    compare,
    times_of,
)
from kubestow.simulator.comparison.dask_cluster import DaskRunner
from kubestow.simulator.comparison.material import ReadMaterial, read_material
from kubestow.simulator.comparison.pool import LocalRunner, Runner
from kubestow.simulator.comparison.sweep import Sweep, SweepResult
from kubestow.simulator.comparison.task import Material, SchedulerVariant, TaskFailure
from kubestow.simulator.comparison.variants import ReadVariant
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.reports.extra import require_extra

_INTERRUPTED: Final = 130
_REFUSED: Final = 1
_WRONG_INPUT: Final = 2
_FAILED: Final = 3


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    cluster: InputRequest
    scenario: Path | None
    recording: Path | None = None
    usage: Path | None = None
    # The end of the scenario, if it is another one than its file says.
    until_s: float | None = None
    variants: Sequence[ReadVariant]
    seed_count: int
    first_seed: int | None
    output: CompareFormat
    report: Path | None = None
    show: int = 0
    finds_reasons: bool = False
    has_times: bool = False
    jobs: int | None
    address: str = ""
    limit_s: float = LIMIT_S
    feature_gates: Sequence[str]


def compare_and_print(request: CompareRequest) -> int:
    """Run everything and print it; the exit code."""
    comparison = run_and_print(request)
    return exit_code_of(comparison)


def run_and_print(request: CompareRequest) -> SchedulerComparison:
    """Run everything and print it."""
    if request.report is not None:
        # Not at the end, after everything has run.
        require_report(request.report, force=request.cluster.force)
    read = request.variants
    material, seed = _material(request)
    seed = seed if request.first_seed is None else request.first_seed
    seeds = range(seed, seed + request.seed_count)
    usable = [each.variant for each in read if not each.problem]
    # Pods are compared with those of the first variant.
    finds_reasons = request.finds_reasons and not read[0].problem
    sweep = (
        _run(request, material, usable, seeds, finds_reasons=finds_reasons)
        if usable
        else SweepResult()
    )
    for each in read:
        if each.problem:
            failure = TaskFailure(kind="input", message=each.problem)
            sweep.failures.append((each.variant.name, None, failure))
    variants = [each.variant for each in read]
    comparison = compare(material.name, variants, seeds, sweep)
    times = times_of(variants, sweep) if request.has_times else None
    print_comparison(comparison, times, request.output, show=request.show)
    if request.report is not None:
        write_report(comparison, times, sweep, request.report)
    return comparison


def _material(request: CompareRequest) -> ReadMaterial:
    is_alone = request.scenario is None and request.recording is None
    has_cluster = is_alone or request.cluster.names_a_cluster()
    if request.recording is not None and has_cluster:
        raise InputError("a recording brings its own cluster: leave out -f and --from-cluster")
    if request.scenario is not None and request.limit_s != LIMIT_S:
        raise InputError("--limit is for one placement; a scenario says how long it takes")
    gates = checked_gates(request.feature_gates)
    documents = []
    if has_cluster:
        # Each variant reads those of its own configuration.
        documents = load_input(
            request.cluster,
            command="compare",
            dialects=DIALECTS,
            gates=gates,
            makes_pods=request.scenario is None,
        ).documents
    return read_material(
        documents,
        name=", ".join(request.cluster.files) or "cluster",
        scenario=request.scenario,
        recording=request.recording,
        gates=tuple(request.feature_gates),
        limit_s=request.limit_s,
        until_s=request.until_s,
        usage=request.usage,
    )


def _run(
    request: CompareRequest,
    material: Material,
    variants: Sequence[SchedulerVariant],
    seeds: Sequence[int],
    *,
    finds_reasons: bool,
) -> SweepResult:
    with progress_bar("Comparing") as progress:
        task = progress.add_task("", total=0)
        total = 0

        def on_tasks(count: int) -> None:
            nonlocal total
            total += count
            progress.update(task, total=total)

        with _runner(request, material, len(variants) * len(seeds)) as runner:
            sweep = Sweep(
                runner,
                variants,
                seeds,
                has_times=request.has_times,
                on_tasks=on_tasks,
                on_finished=lambda: progress.advance(task),
            )
            return sweep.run(finds_reasons=finds_reasons)


def _runner(
    request: CompareRequest, material: Material, task_count: int
) -> AbstractContextManager[Runner]:
    if request.address:
        return DaskRunner(request.address, msgspec.json.encode(material))
    return LocalRunner(material, min(request.jobs or os.cpu_count() or 1, task_count))


def exit_code_of(comparison: SchedulerComparison) -> int:
    kinds = {each.failure.kind for each in comparison.failures}
    if comparison.is_partial:
        return _INTERRUPTED
    if "input" in kinds:
        return _WRONG_INPUT
    if kinds:
        return _FAILED
    return _REFUSED if any(variant.refusals for variant in comparison.variants) else 0


def require_report(path: Path, *, force: bool) -> None:
    """InputError if the page could not be written."""
    if path.suffix != ".html":
        raise InputError(f'--report is "{path}", expected a name that ends with .html')
    require_extra(f"--report {path}", "altair", "vl_convert")
    keeping.require_new(path, "--report", force=force)


def write_report(
    comparison: SchedulerComparison,
    times: Sequence[VariantTimes] | None,
    sweep: SweepResult,
    path: Path,
) -> None:
    """Write the page; InputError if that fails."""
    from kubestow.simulator.comparison.page import page_of
    from kubestow.simulator.reports.html import page_html

    try:
        keeping.write(path, page_html(page_of(comparison, times, sweep)), force=True)
    except OSError as error:
        raise InputError(f'cannot write the report "{path}": {error.strerror}') from error
