"""What `kubestow simulate --scenario --repeat` does: plays a scenario with several seeds.

It is a comparison of one scheduler with none: the same processes, figures and intervals.
"""

from typing import Final

from kubestow.editions.flags import AlgorithmOptions
from kubestow.errors import InputError
from kubestow.service.commands.compare.runs import CompareRequest, exit_code_of, run_and_print
from kubestow.service.commands.simulate.request import SimulateRequest
from kubestow.service.commands.simulate.scenario import check_scenario, until_s_of
from kubestow.service.formats import CompareFormat, OutputFormat
from kubestow.simulator.comparison.comparison import SchedulerComparison
from kubestow.simulator.comparison.variants import ReadVariant, variant_of
from kubestow.simulator.results import GATED, PENDING

_FORMATS: Final = {
    OutputFormat.TABLE: CompareFormat.TABLE,
    OutputFormat.JSON: CompareFormat.JSON,
    OutputFormat.YAML: CompareFormat.YAML,
}


def simulate_repeatedly(request: SimulateRequest) -> int:
    """Play the scenario with each seed and print figures over all of them; the exit code."""
    _check(request)
    check_scenario(request)
    variant = variant_of(request.edition.version, request.config_file)
    comparison = run_and_print(
        CompareRequest(
            cluster=request.cluster,
            scenario=request.scenario,
            until_s=until_s_of(request.until) if request.until else None,
            variants=[ReadVariant(variant)],
            seed_count=request.repeat or 1,
            first_seed=request.seed,
            output=_FORMATS[request.output],
            jobs=request.jobs,
            feature_gates=request.feature_gates,
        )
    )
    code = exit_code_of(comparison)
    return code or int(request.is_failing_on_pending and _has_waiting(comparison))


def _check(request: SimulateRequest) -> None:
    if request.repeat is None:
        raise InputError("--jobs is for --repeat: one run takes one process")
    if request.scenario is None:
        raise InputError("--repeat plays a scenario with several seeds: give it with --scenario")
    if request.output not in _FORMATS:
        raise InputError(f"-o {request.output} lists pods; with --repeat use table, json or yaml")
    if request.reports or request.record is not None:
        raise InputError("--report and --record are for one run: leave out --repeat")
    if request.algorithm != AlgorithmOptions():
        raise InputError("a Policy is for one run, or a variant of kubestow compare")
    if request.percentage is not None:
        raise InputError(
            "with --repeat, set percentageOfNodesToScore in the configuration (--config)"
        )


def _has_waiting(comparison: SchedulerComparison) -> bool:
    return any(
        run.figures.outcomes.get(PENDING, 0) + run.figures.outcomes.get(GATED, 0)
        for variant in comparison.variants
        for run in variant.runs
    )
