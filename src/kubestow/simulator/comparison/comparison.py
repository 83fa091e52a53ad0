"""The result of a comparison: the data of `-o json`, and of every other form of it.

Everything in it is virtual, so two comparisons of the same input are equal, byte for byte, wherever
they ran. Real times are apart (`Times`).
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kubestow.simulator.comparison.intervals import Estimate, estimate
from kubestow.simulator.comparison.measures import ComparedFigure, Values
from kubestow.simulator.comparison.moved import MovedPod, ReasonCount, reason_counts
from kubestow.simulator.comparison.sweep import RunSummary, SweepResult
from kubestow.simulator.comparison.task import PluginTime, SchedulerVariant, TaskFailure
from kubestow.simulator.reports.figures import Figures
from kubestow.simulator.results import RefusedPods

FORMAT: Final = "kubestow.dev/comparison/v1"
METHOD: Final = "Student t, 95 %, over seeds"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class MeasureEstimate(_Part, frozen=True, kw_only=True):
    """One figure of a variant over all its seeds.

    difference   to the first variant, seed by seed; missing for the first variant itself
    """

    name: str
    resource: str = ""
    value: Estimate
    difference: Estimate | None = None


class RunFigures(_Part, frozen=True, kw_only=True):
    seed: int
    figures: Figures
    is_partial: bool = False


class MovedPods(_Part, frozen=True, kw_only=True):
    """Pods that went elsewhere than in the first variant.

    pods         over all seeds; those beyond the limit are counted only
    count        how many, per seed
    reasons      of those in `pods`
    only_first, only_here   pods that only one of both runs has, per seed
    """

    count: Estimate
    only_first: Estimate
    only_here: Estimate
    reasons: list[ReasonCount] = []
    pods: list[MovedPod] = []


class VariantResult(_Part, frozen=True, kw_only=True):
    """`runs` are those that ended; none if all failed. `moved` is missing for the first variant,
    and where no seed ran with both. `refusals` are pods that were never created, over all seeds."""

    name: str
    version: str
    config: str = ""
    plugins: tuple[str, ...] = ()
    runs: list[RunFigures]
    figures: list[MeasureEstimate]
    moved: MovedPods | None = None
    refusals: list[RefusedPods] = []


class VariantFailure(_Part, frozen=True, kw_only=True):
    """What went wrong with a variant, in the runs of these seeds; none if it was not begun."""

    variant: str
    seeds: list[int]
    failure: TaskFailure


class SchedulerComparison(_Part, frozen=True, kw_only=True):
    """`is_partial`: it was stopped before all runs had ended."""

    format: str = FORMAT
    name: str
    seeds: list[int]
    intervals: str = METHOD
    variants: list[VariantResult]
    failures: list[VariantFailure]
    is_partial: bool = False


class VariantTimes(_Part, frozen=True, kw_only=True):
    """Real time of the runs of a variant, and of its plugins over all seeds."""

    variant: str
    seconds: Estimate
    plugins: list[PluginTime]


def compare(
    name: str, variants: Sequence[SchedulerVariant], seeds: Sequence[int], sweep: SweepResult
) -> SchedulerComparison:
    """What the runs of a sweep say about the variants."""
    first = {run.seed: run for run in sweep.runs_of(variants[0].name)}
    return SchedulerComparison(
        name=name,
        seeds=list(seeds),
        variants=[
            _variant_result(variant, sweep, first if index else None)
            for index, variant in enumerate(variants)
        ],
        failures=_failures(sweep),
        is_partial=sweep.is_partial,
    )


def _variant_result(
    variant: SchedulerVariant, sweep: SweepResult, first: dict[int, RunSummary] | None
) -> VariantResult:
    runs = sweep.runs_of(variant.name)
    base = None if first is None else {seed: run.values for seed, run in first.items()}
    return VariantResult(
        name=variant.name,
        version=variant.version,
        config=variant.config_name,
        plugins=variant.plugins,
        runs=[
            RunFigures(seed=run.seed, figures=run.figures, is_partial=run.is_partial)
            for run in runs
        ],
        figures=_estimates({run.seed: run.values for run in runs}, base),
        moved=None if first is None else _moved(variant.name, sweep, runs, first),
        refusals=_refusals(runs),
    )


def _refusals(runs: Sequence[RunSummary]) -> list[RefusedPods]:
    """How many pods of each owner were refused, with the first message."""
    found: dict[str, RefusedPods] = {}
    for each in (each for run in runs for each in run.refusals):
        known = found.get(each.owner)
        pods = each.pods + (0 if known is None else known.pods)
        found[each.owner] = msgspec.structs.replace(known or each, pods=pods)
    return list(found.values())


def _failures(sweep: SweepResult) -> list[VariantFailure]:
    """What failed, by variant; equal failures of one variant are one."""
    seeds: dict[tuple[str, TaskFailure], list[int]] = {}
    for variant, seed, failure in sweep.failures:
        seeds.setdefault((variant, failure), []).extend(() if seed is None else (seed,))
    return [
        VariantFailure(variant=variant, seeds=each, failure=failure)
        for (variant, failure), each in seeds.items()
    ]


def _estimates(runs: dict[int, Values], first: dict[int, Values] | None) -> list[MeasureEstimate]:
    measures: dict[ComparedFigure, None] = {}
    for values in runs.values():
        measures.update(dict.fromkeys(values))
    return [
        MeasureEstimate(
            name=measure.name,
            resource=measure.resource,
            value=rounded([values[measure] for values in runs.values() if measure in values]),
            difference=None if first is None else _difference(measure, runs, first),
        )
        for measure in measures
    ]


def _difference(
    measure: ComparedFigure, runs: dict[int, Values], first: dict[int, Values]
) -> Estimate | None:
    differences = [
        values[measure] - first[seed][measure]
        for seed, values in runs.items()
        if measure in values and measure in first.get(seed, {})
    ]
    return rounded(differences) if differences else None


def _moved(
    variant: str, sweep: SweepResult, runs: Sequence[RunSummary], first: dict[int, RunSummary]
) -> MovedPods | None:
    both = [(first[run.seed].placements, run) for run in runs if run.seed in first]
    if not both:
        return None
    pods = [pod for run in runs for pod in sweep.moved.get((variant, run.seed), ())]
    return MovedPods(
        count=rounded([float(sweep.moved_counts[variant, run.seed]) for _, run in both]),
        only_first=rounded([float(len(base.keys() - run.placements.keys())) for base, run in both]),
        only_here=rounded([float(len(run.placements.keys() - base.keys())) for base, run in both]),
        reasons=reason_counts(pods),
        pods=pods,
    )


def rounded(values: Sequence[float]) -> Estimate:
    """To a millionth, so that the last bits of sums do not show."""
    found = estimate(values)
    plus_minus = found.plus_minus
    return Estimate(
        mean=round(found.mean, 6),
        plus_minus=None if plus_minus is None else round(plus_minus, 6),
        count=found.count,
    )


def times_of(variants: Sequence[SchedulerVariant], sweep: SweepResult) -> list[VariantTimes]:
    """Real times, which differ from run to run."""
    found: list[VariantTimes] = []
    for variant in variants:
        runs = sweep.runs_of(variant.name)
        if runs:
            found.append(
                VariantTimes(
                    variant=variant.name,
                    seconds=rounded([run.duration_s for run in runs]),
                    plugins=_added([row for run in runs for row in run.times]),
                )
            )
    return found


def _added(rows: Sequence[PluginTime]) -> list[PluginTime]:
    calls: dict[tuple[str, str], int] = {}
    seconds: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row.plugin, row.point)
        calls[key] = calls.get(key, 0) + row.calls
        seconds[key] = seconds.get(key, 0.0) + row.seconds
    added = [
        PluginTime(plugin=key[0], point=key[1], calls=calls[key], seconds=round(seconds[key], 6))
        for key in calls
    ]
    return sorted(added, key=lambda row: (-row.seconds, row.plugin, row.point))
