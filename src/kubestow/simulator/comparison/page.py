"""The page of a comparison: charts with a line per variant, and the tables.

Needs the optional extra `reports`: import this module after `extra.require_extra` only.
"""

from collections.abc import Callable, Sequence
from string import digits
from typing import Final

import altair as alt
from msgspec import UnsetType

from kubestow.plural import counted
from kubestow.simulator.comparison.comparison import (
    SchedulerComparison,
    VariantResult,
    VariantTimes,
)
from kubestow.simulator.comparison.sweep import SweepResult
from kubestow.simulator.comparison.texts import count_text, failure_text, figure_rows, refusal_texts
from kubestow.simulator.reports.charts import (
    COLORS,
    FIGURES,
    HEIGHT,
    AnyChart,
    Drawing,
    lines_chart,
)
from kubestow.simulator.reports.figures import waiting_count
from kubestow.simulator.reports.html import Card, Page, ShownTable
from kubestow.simulator.reports.run_page import DEFINITIONS, USE_DEFINITIONS
from kubestow.simulator.reports.series import (
    Line,
    Point,
    TimeUnit,
    followed_goals,
    goal_line,
    hot_nodes_line,
    imbalance_line,
    in_use_p95_line,
    line_key,
    line_points,
    lost_cpu_line,
    requested_resources,
    stranded_line,
    time_unit,
    used_line,
)
from kubestow.simulator.reports.tables import Column, Kind, Table
from kubestow.simulator.results import RunResult, Sample
from kubestow.simulator.usage.totals import RESOURCES as USE_RESOURCES

_PERCENTILES: Final = (
    ("waitedP50", "median"),
    ("waitedP90", "p90"),
    ("waitedP99", "p99"),
    ("waitedMax", "longest"),
)
_OWN_DEFINITIONS: Final = (
    ("±", "half the 95 % confidence interval of the mean over seeds, by Student's t"),
    ("difference", "to the first variant, seed by seed"),
    ("moved", "placed on another node than in the first variant, or only in one of both"),
    ("fragmentation", "of what is free, the share that is stranded"),
)


def page_of(
    comparison: SchedulerComparison, times: Sequence[VariantTimes] | None, sweep: SweepResult
) -> Page:
    """What the page shows. Charts over time are of the first seed."""
    first_seed = comparison.seeds[0]
    runs = {
        variant.name: run.rows
        for variant in comparison.variants
        if (run := sweep.runs.get((variant.name, first_seed))) is not None and run.rows is not None
    }
    ran = [variant for variant in comparison.variants if variant.runs]
    tables = [_figures_table(ran), _reasons_table(ran), _moved_table(ran)]
    if times is not None:
        tables.append(_times_table(times))
    return Page(
        title=f"{comparison.name}: {', '.join(variant.name for variant in comparison.variants)}",
        subtitle=f"{counted(len(comparison.seeds), 'seed')} from {first_seed}; "
        "charts over time: first seed",
        warning=_warning(comparison),
        cards=_cards(ran),
        drawings=[*_over_time(runs), *_waiting_times(ran), *_moved_bars(ran)],
        tables=[
            ShownTable(table, range(table.row_count), "the first ones")
            for table in tables
            if table.row_count
        ],
        definitions=(
            *_OWN_DEFINITIONS,
            *DEFINITIONS,
            *(USE_DEFINITIONS if any(_has_use(run) for run in runs.values()) else ()),
        ),
    )


def _has_use(run: RunResult) -> bool:
    return not isinstance(run.usage, UnsetType)


def _warning(comparison: SchedulerComparison) -> str:
    texts = [failure_text(each) for each in comparison.failures]
    texts += refusal_texts(comparison.variants)
    if comparison.is_partial:
        texts.insert(0, "The comparison was interrupted: what had ended is shown.")
    return " · ".join(texts)


def _cards(variants: Sequence[VariantResult]) -> list[Card]:
    cards: list[Card] = []
    for variant in variants:
        placed = next((each for each in variant.figures if each.name == "placed"), None)
        if placed is not None:
            cards.append(Card(count_text(placed.value.mean), f"placed, {variant.name}"))
        if variant.moved is not None:
            cards.append(Card(count_text(variant.moved.count.mean), f"moved, {variant.name}"))
    return cards


# --- charts ---


def _over_time(runs: dict[str, RunResult]) -> list[Drawing]:
    if not any(len(run.samples) > 1 for run in runs.values()):
        return []
    unit = time_unit(max(run.virtual_duration_s for run in runs.values()))
    resources = dict.fromkeys(
        resource for run in runs.values() for resource in requested_resources(run)
    )
    parts: list[tuple[str, str, str, Callable[[Sample], float | None]]] = [
        ("placed", "Pods placed since the start", "~s", lambda sample: sample.placed),
        ("waiting", "Pods that wait", "~s", waiting_count),
        ("preempted", "Pods preempted since the start", "~s", lambda sample: sample.preempted),
    ]
    for index, resource in enumerate(USE_RESOURCES):
        hot, p95 = hot_nodes_line(resource)[1], in_use_p95_line(resource)[1]
        parts.append((f"hot{index}", f"{resource}: hot nodes", "~s", hot))
        parts.append((f"use{index}", f"{resource}: in use, p95 of nodes", "~%", p95))
    parts.append(("lost", "cpu: core seconds lost since the start", "~s", lost_cpu_line()[1]))
    makers: tuple[tuple[str, str, Callable[[str], Line]], ...] = (
        ("used", "used share", used_line),
        ("stranded", "stranded share", stranded_line),
        ("imbalance", "imbalance", imbalance_line),
    )
    for index, resource in enumerate(resources):
        for name, title, line in makers:
            parts.append((f"{name}{index}", f"{resource}: {title}", "~%", line(resource)[1]))
    goals = dict.fromkeys(goal for run in runs.values() for goal in followed_goals(run.samples))
    for index, goal in enumerate(goals):
        parts.append((f"goal{index}", f"Goal: {goal}", FIGURES, goal_line(goal)[1]))
    drawings: list[Drawing] = []
    for name, title, y_format, value in parts:
        points = _points(runs, value, unit)
        if any(point["value"] for point in points):
            chart = lines_chart(
                points,
                list(runs),
                name=name,
                unit=unit,
                y_title=_Y_TITLES.get(name.rstrip(digits), "pods" if y_format == "~s" else "share"),
                y_format=y_format,
                is_interactive=True,
            )
            drawings.append(Drawing(name, title, "", chart))
    return drawings


def _points(
    runs: dict[str, RunResult], value: Callable[[Sample], float | None], unit: TimeUnit
) -> list[Point]:
    return [
        {**point, "key": line_key(index)}
        for index, (name, run) in enumerate(runs.items())
        for point in line_points(run.samples, [(name, value)], unit)
    ]


def _waiting_times(variants: Sequence[VariantResult]) -> list[Drawing]:
    points: list[Point] = []
    for variant in variants:
        by_name = {each.name: each.value for each in variant.figures}
        for name, title in _PERCENTILES:
            if name in by_name:
                mean, around = by_name[name].mean, by_name[name].plus_minus or 0.0
                low, high = max(mean - around, 0.0), mean + around
                points.append(
                    {"line": variant.name, "part": title, "value": mean, "low": low, "high": high}
                )
    if not any(point["value"] for point in points):
        return []
    base = alt.Chart(alt.InlineData(values=points)).encode(
        x=alt.X("part:N", sort=[title for _, title in _PERCENTILES], title=None, axis=_FLAT),
        xOffset=alt.XOffset("line:N", sort=[variant.name for variant in variants]),
    )
    scale = alt.Scale(type="symlog", constant=0.1)
    marks = base.mark_point(filled=True, size=70).encode(
        y=alt.Y("value:Q", title="seconds waited", scale=scale, axis=alt.Axis(format="~s")),
        color=_color(variants),
        tooltip=[
            alt.Tooltip("line:N", title=" "),
            alt.Tooltip("part:N", title="waited"),
            alt.Tooltip("value:Q", title="seconds", format=",.3~f"),
        ],
    )
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q", color=_color(variants))
    chart: AnyChart = alt.layer(bars, marks, name="percentiles").properties(height=HEIGHT)
    note = "means over seeds with their intervals; the axis is logarithmic"
    return [Drawing("percentiles", "Waiting times", note, chart)]


def _moved_bars(variants: Sequence[VariantResult]) -> list[Drawing]:
    points = [
        {"line": variant.name, "part": f"{each.reason} {each.plugin}".strip(), "pods": each.pods}
        for variant in variants
        if variant.moved is not None
        for each in variant.moved.reasons
    ]
    if not points:
        return []
    chart = (
        alt.Chart(alt.InlineData(values=points), name="moved_bars")
        .mark_bar()
        .encode(
            y=alt.Y("part:N", sort="-x", title=None),
            yOffset=alt.YOffset("line:N"),
            x=alt.X("pods:Q", title="pods, all seeds"),
            color=_color(variants),
            tooltip=[
                alt.Tooltip("line:N", title=" "),
                alt.Tooltip("part:N", title="why"),
                alt.Tooltip("pods:Q", title="pods"),
            ],
        )
    )
    return [Drawing("moved", "Why pods went elsewhere", "than in the first variant", chart)]


_FLAT: Final = alt.Axis(labelAngle=0)
_Y_TITLES: Final = {"hot": "nodes", "lost": "core seconds", "goal": "figure"}


def _color(variants: Sequence[VariantResult]) -> alt.Color:
    names = [variant.name for variant in variants]
    colors = [COLORS[index % len(COLORS)] for index in range(len(names))]
    return alt.Color("line:N", scale=alt.Scale(domain=names, range=colors), title=None)


# --- tables ---


def _figures_table(variants: Sequence[VariantResult]) -> Table:
    rows = figure_rows(variants)
    return Table(
        "figures",
        "Figures",
        [
            _text("figure", [row.title for row in rows]),
            *(
                _text(variant.name, [row.cells[index] for row in rows])
                for index, variant in enumerate(variants)
            ),
        ],
    )


def _reasons_table(variants: Sequence[VariantResult]) -> Table:
    rows = [
        (variant.name, each)
        for variant in variants
        if variant.moved is not None
        for each in variant.moved.reasons
    ]
    return Table(
        "reasons",
        "Why pods went elsewhere",
        [
            _text("variant", [name for name, _ in rows]),
            _text("reason", [each.reason for _, each in rows]),
            _text("plugin", [each.plugin for _, each in rows]),
            Column("pods", Kind.COUNT, [each.pods for _, each in rows]),
        ],
    )


def _moved_table(variants: Sequence[VariantResult]) -> Table:
    rows = [
        (variant.name, each)
        for variant in variants
        if variant.moved is not None
        for each in variant.moved.pods
    ]
    return Table(
        "moved",
        "Pods that went elsewhere",
        [
            _text("variant", [name for name, _ in rows]),
            Column("seed", Kind.COUNT, [each.seed for _, each in rows]),
            _text("pod", [each.pod for _, each in rows]),
            _text("first_node", [each.first_node for _, each in rows]),
            _text("node", [each.node for _, each in rows]),
            _text("reason", [each.reason for _, each in rows]),
            _text("plugin", [each.plugin for _, each in rows]),
            _text("message", [each.text for _, each in rows]),
        ],
    )


def _times_table(times: Sequence[VariantTimes]) -> Table:
    rows = [(each.variant, row) for each in times for row in each.plugins]
    return Table(
        "times",
        "Real time of plugins",
        [
            _text("variant", [name for name, _ in rows]),
            _text("plugin", [row.plugin for _, row in rows]),
            _text("point", [row.point for _, row in rows]),
            Column("calls", Kind.COUNT, [row.calls for _, row in rows]),
            Column("time_s", Kind.SECONDS, [row.seconds for _, row in rows]),
        ],
    )


def _text(name: str, values: list[str]) -> Column:
    return Column(name, Kind.TEXT, values)
