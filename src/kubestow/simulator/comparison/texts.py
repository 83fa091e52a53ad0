"""Figures of a comparison as texts for people, the same in tables and on the page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.plural import counted
from kubestow.simulator.comparison.comparison import (
    MeasureEstimate,
    VariantFailure,
    VariantResult,
)
from kubestow.simulator.comparison.intervals import Estimate
from kubestow.simulator.comparison.measures import ComparedFigure, measures_of
from kubestow.simulator.reports.tables import Kind
from kubestow.simulator.reports.units import seconds_text
from kubestow.simulator.results import RefusedPods

# Texts of values that are nothing, or too little to be shown.
_NOTHING: Final = ("0", "0 s", "0.0%", "-0", "-0.0%")


class FigureRow(NamedTuple):
    """One figure of all variants. A cell has the mean over seeds, with several seeds its interval,
    and the difference to the first variant in brackets, if there is one."""

    title: str
    cells: list[str]


def figure_rows(variants: Sequence[VariantResult]) -> list[FigureRow]:
    """The figures that are not nothing in all variants."""
    by_variant = [
        {(each.name, each.resource): each for each in variant.figures} for variant in variants
    ]
    rows: list[FigureRow] = []
    for measure in _measures(variants):
        found = [figures.get((measure.name, measure.resource)) for figures in by_variant]
        means = [_number(each.value.mean, measure.kind) for each in found if each is not None]
        if any(mean not in _NOTHING for mean in means):
            rows.append(FigureRow(measure.title, [_cell(each, measure.kind) for each in found]))
    return rows


def _measures(variants: Sequence[VariantResult]) -> list[ComparedFigure]:
    found: dict[ComparedFigure, None] = {}
    for variant in variants:
        for run in variant.runs:
            found.update(dict.fromkeys(measures_of(run.figures)))
    return list(found)


def _cell(each: MeasureEstimate | None, kind: Kind) -> str:
    if each is None:
        return "-"
    text = estimate_text(each.value, kind)
    difference = each.difference
    if difference is None or _number(difference.mean, kind) in _NOTHING:
        return text
    return f"{text} ({estimate_text(difference, kind, is_signed=True)})"


def estimate_text(value: Estimate, kind: Kind, *, is_signed: bool = False) -> str:
    """A mean, with its interval if it has one."""
    sign = "+" if is_signed and value.mean > 0 else ""
    text = f"{sign}{_number(value.mean, kind)}"
    return text if value.plus_minus is None else f"{text} ±{_number(value.plus_minus, kind)}"


def count_text(value: float) -> str:
    """A number of pods, which as a mean may have a fraction."""
    return f"{value:,.1f}".removesuffix(".0")


def _number(value: float, kind: Kind) -> str:
    if kind is Kind.SHARE:
        return f"{100 * value:.1f}%"
    return seconds_text(value) if kind is Kind.SECONDS else count_text(value)


def refusal_texts(variants: Sequence[VariantResult]) -> list[str]:
    """Which pods were never created and why; one line for variants of which the same is true."""
    names: dict[RefusedPods, list[str]] = {}
    for variant in variants:
        for refusal in variant.refusals:
            names.setdefault(refusal, []).append(variant.name)
    return [
        f"{', '.join(where)}: {counted(refusal.pods, 'pod')} of {refusal.owner} refused by the API "
        f"server: {refusal.message}"
        for refusal, where in names.items()
    ]


def failure_text(failure: VariantFailure) -> str:
    """What went wrong, as one line."""
    seeds, where = failure.seeds, ""
    if seeds:
        where = f" (seed {seeds[0]})" if len(seeds) == 1 else f" ({len(seeds)} seeds)"
    return f'variant "{failure.variant}"{where}: {failure.failure.message}'
