"""The charts of a run: one specification each, for the page and for pictures.

Needs the optional extra `reports`: import this module after `extra.require_extra` only.

Names of charts and of what is selected in them are given, not counted by the library: the same run
gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import altair as alt
import vl_convert

from kubestow.files import keeping
from kubestow.simulator.reports.series import (
    BUCKETS,
    Line,
    Point,
    TimeUnit,
    bucket_name,
    change_points,
    followed_goals,
    goal_line,
    hot_nodes_line,
    imbalance_line,
    in_use_line,
    in_use_p95_line,
    line_key,
    line_points,
    lost_cpu_line,
    node_points,
    requested_resources,
    stranded_line,
    stretch_length,
    time_unit,
    used_line,
    waiting_points,
)
from kubestow.simulator.results import RunResult
from kubestow.simulator.usage.totals import RESOURCES as USE_RESOURCES

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart
# Vega-Lite, as JSON values.
Specification = dict[str, Any]

# Read well on white and on black.
COLORS: Final = (
    "#3b82c4", "#e07b39", "#3a9d6e", "#c2527a", "#8b6fc9", "#4fa3ad", "#b08d2e", "#8a919c",
)  # fmt: skip
# How whole numbers are written on an axis.
COUNTS: Final = "~s"
# How figures of goals are written, which may have a fraction.
FIGURES: Final = ".4~g"
_SHARES: Final = "~%"
GOAL_NOTE: Final = "the figure that kubestow rebalance makes better"
WIDTH: Final = 640
HEIGHT: Final = 220
_PNG_SCALE: Final = 2.0
_PLACES: Final = ("active", "backoff", "unschedulable", "gated")
_FLOWS: Final = ("arrived", "placed", "ended")


class Drawing(NamedTuple):
    """A chart with the text that goes with it. `name` is a part of file names."""

    name: str
    title: str
    note: str
    chart: AnyChart


def drawings_of(result: RunResult, *, is_interactive: bool) -> list[Drawing]:
    """The charts of a run; those that would be empty are left out."""
    drawings: list[Drawing] = []
    if result.samples:
        drawings += _over_time(result, is_interactive=is_interactive)
    if any(pod.scheduled_s is not None for pod in result.pods):
        drawings.append(_waiting_times(result, is_interactive=is_interactive))
    resources = requested_resources(result)
    if resources and result.nodes:
        drawings.append(_nodes(result, resources))
    if result.changes:
        drawings.append(_changes(result))
    return drawings


def thinning_note(result: RunResult) -> str:
    """What a point of a line stands for, if that is more than one sample."""
    length = stretch_length(len(result.samples))
    return f"each point over time is the largest value of {length} samples" if length > 1 else ""


def picture(drawings: Sequence[Drawing], title: str, note: str) -> Specification:
    """All charts below each other, as one specification."""
    parts = [
        drawing.chart.properties(
            width=WIDTH, title=alt.TitleParams(drawing.title, subtitle=drawing.note, anchor="start")
        )
        for drawing in drawings
    ]
    head = alt.TitleParams(title, subtitle=note, anchor="start", fontSize=18)
    spec = alt.vconcat(*parts, title=head).to_dict()
    return {**spec, "resolve": {"scale": {"color": "independent"}}, "config": CONFIG}


def draw(spec: Specification, path: Path) -> None:
    """Write a specification as a picture: SVG or PNG."""
    if path.suffix == ".svg":
        keeping.write(path, vl_convert.vegalite_to_svg(spec), force=True)
    else:
        keeping.write(path, vl_convert.vegalite_to_png(spec, scale=_PNG_SCALE), force=True)


CONFIG: Final[dict[str, Any]] = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"gridColor": "#e3e6ea", "domainColor": "#a0a7b1", "tickColor": "#a0a7b1"},
    "legend": {"orient": "bottom", "title": None},
    "range": {"category": list(COLORS)},
    "title": {"anchor": "start", "subtitleColor": "#6b7280"},
}


def lines_chart(
    points: Sequence[Point],
    order: Sequence[str],
    *,
    name: str,
    unit: TimeUnit,
    y_title: str,
    y_format: str = COUNTS,
    is_interactive: bool,
) -> AnyChart:
    """Steps over time, a line for each name in `order`."""
    data = alt.InlineData(values=list(points))
    x = _time("time", unit)
    step = 1 if y_format == COUNTS else alt.Undefined
    y = alt.Y(
        "value:Q",
        title=y_title,
        axis=alt.Axis(format=y_format, tickMinStep=step),
        scale=alt.Scale(zero=True),
    )
    color = _color(order)
    lines = alt.Chart(data, name=f"{name}_lines").mark_line(interpolate="step-after", strokeWidth=2)
    if not is_interactive:
        return lines.encode(x=x, y=y, color=color).properties(height=HEIGHT)
    shown, zoom = _legend_choice(name), _zoom(name)
    near = alt.selection_point(
        name=f"{name}_near",
        nearest=True,
        on="pointerover",
        clear="pointerout",
        fields=["time"],
        empty=False,
    )
    faded = alt.condition(shown, alt.value(1.0), alt.value(0.12))
    drawn = lines.encode(x=x, y=y, color=color, opacity=faded).add_params(shown, zoom)
    # One rule for each time shows the values of all lines. Their keys, not their names, become
    # fields: a name may have dots and brackets, which mean something in the name of a field.
    rules = (
        alt.Chart(data, name=f"{name}_rules")
        .transform_pivot("key", value="value", groupby=["time"])
        .mark_rule(color="#8a919c")
        .encode(
            x=x,
            opacity=alt.condition(near, alt.value(0.7), alt.value(0.0)),
            tooltip=[
                alt.Tooltip("time:Q", title=unit.name, format=",.5~g"),
                *(
                    alt.Tooltip(f"{line_key(index)}:Q", title=line, format=y_format)
                    for index, line in enumerate(order)
                ),
            ],
        )
        .add_params(near)
    )
    return alt.layer(drawn, rules).properties(height=HEIGHT)


class _TimeChart(NamedTuple):
    """A chart over time; `y_title` is what is counted."""

    name: str
    title: str
    note: str
    y_title: str
    y_format: str
    lines: Sequence[Line]


def _over_time(result: RunResult, *, is_interactive: bool) -> list[Drawing]:
    unit = time_unit(result.virtual_duration_s)
    drawings: list[Drawing] = []
    for each in _time_charts(result):
        lines = [line for line in each.lines if any(line[1](sample) for sample in result.samples)]
        points = line_points(result.samples, lines, unit)
        values = {point["value"] for point in points}
        # Lines of zeros, and a number of nodes that never changes, are not drawn.
        if not values or (each.name == "nodes" and len(values) == 1):
            continue
        chart = lines_chart(
            points,
            [line for line, _ in lines],
            name=each.name,
            unit=unit,
            y_title=each.y_title,
            y_format=each.y_format,
            is_interactive=is_interactive,
        )
        drawings.append(Drawing(each.name, each.title, each.note, chart))
    return drawings


def _time_charts(result: RunResult) -> Iterator[_TimeChart]:
    yield from _charts_of_pods()
    yield from _charts_of_requests(requested_resources(result))
    yield from _charts_of_use()
    yield _TimeChart("nodes", "Nodes", "", "nodes", COUNTS, [_count_line("nodes")])
    for index, goal in enumerate(followed_goals(result.samples)):
        lines = [goal_line(goal)]
        yield _TimeChart(f"goal{index}", f"Goal: {goal}", GOAL_NOTE, "figure", FIGURES, lines)


def _charts_of_pods() -> Iterator[_TimeChart]:
    note = "to be tried, backing off, waiting for an event, and gated"
    places = [_count_line(place) for place in _PLACES]
    yield _TimeChart("waiting", "Waiting pods", note, "pods", COUNTS, places)
    yield _TimeChart("running", "Pods on nodes", "", "pods", COUNTS, [_count_line("running")])
    flows = [_count_line(name) for name in _FLOWS]
    yield _TimeChart("flow", "Pods since the start", "", "pods", COUNTS, flows)


def _charts_of_requests(resources: Sequence[str]) -> Iterator[_TimeChart]:
    note = "requested of what all nodes have"
    yield _TimeChart("used", "Used share", note, "share", _SHARES, list(map(used_line, resources)))
    note = "free, but too little on its node for any pod of this run"
    lines = list(map(stranded_line, resources))
    yield _TimeChart("stranded", "Stranded share", note, "share", _SHARES, lines)
    note = "standard deviation of the used share over nodes"
    lines = list(map(imbalance_line, resources))
    yield _TimeChart("imbalance", "Imbalance", note, "deviation", _SHARES, lines)


def _charts_of_use() -> Iterator[_TimeChart]:
    note = "what pods really take, of what nodes have: of all nodes together, and p95 of nodes"
    lines = [line(name) for name in USE_RESOURCES for line in (in_use_line, in_use_p95_line)]
    yield _TimeChart("in_use", "In use", note, "share", _SHARES, lines)
    note = "nodes of which more is in use than the scenario allows (hot)"
    lines = list(map(hot_nodes_line, USE_RESOURCES))
    yield _TimeChart("hot", "Hot nodes", note, "nodes", COUNTS, lines)
    note, lines = "what pods asked for while their node had no more", [lost_cpu_line()]
    yield _TimeChart("lost", "CPU lost since the start", note, "core seconds", COUNTS, lines)


def _count_line(field: str) -> Line:
    return field, lambda sample: getattr(sample, field)


def _waiting_times(result: RunResult, *, is_interactive: bool) -> Drawing:
    points = waiting_points(result.pods)
    chart = (
        alt.Chart(alt.InlineData(values=points), name="waits_line")
        .mark_line(
            interpolate="step-after",
            strokeWidth=2,
            color=COLORS[0],
            point=alt.OverlayMarkDef(size=16, color=COLORS[0]),
        )
        .encode(
            # Many pods do not wait at all, which a logarithm cannot show.
            x=alt.X(
                "waited:Q",
                title="seconds waited",
                scale=alt.Scale(type="symlog", constant=0.1, nice=False),
                axis=alt.Axis(format=",.1~f", values=_decades(points[-1]["waited"])),
            ),
            y=alt.Y(
                "share:Q",
                title="share of all pods",
                axis=alt.Axis(format=_SHARES),
                scale=alt.Scale(domain=[0, 1]),
            ),
            tooltip=[
                alt.Tooltip("share:Q", title="of all pods", format=".1~%"),
                alt.Tooltip("waited:Q", title="waited at most, s", format=",.3~f"),
            ],
        )
        .properties(height=HEIGHT)
    )
    if is_interactive:
        chart = chart.add_params(_zoom("waits"))
    note = "the share of all pods that were placed within a time; the axis is logarithmic"
    return Drawing("waits", "Waiting times", note, chart)


def _decades(longest_s: float) -> list[float]:
    return [0.0, *(10.0**power for power in range(-1, 9) if 10.0**power <= max(longest_s, 1.0))]


def _nodes(result: RunResult, resources: Sequence[str]) -> Drawing:
    points = node_points(result.nodes, resources)
    chart = (
        alt.Chart(alt.InlineData(values=points), name="fill_bars")
        .mark_bar()
        .encode(
            x=alt.X(
                "bucket:N",
                scale=alt.Scale(domain=[bucket_name(bucket) for bucket in range(BUCKETS)]),
                title="used share",
                axis=alt.Axis(labelAngle=0),
            ),
            xOffset=alt.XOffset("line:N", sort=list(resources)),
            y=alt.Y("nodes:Q", title="nodes", axis=alt.Axis(format="~s", tickMinStep=1)),
            color=_color(resources),
            tooltip=[
                alt.Tooltip("line:N", title=" "),
                alt.Tooltip("bucket:N", title="used share"),
                alt.Tooltip("nodes:Q", title="nodes"),
            ],
        )
        .properties(height=HEIGHT)
    )
    return Drawing("fill", "Nodes by used share", "at the end of the run", chart)


def _changes(result: RunResult) -> Drawing:
    unit = time_unit(result.virtual_duration_s)
    points = change_points(result, unit)
    chart = (
        alt.Chart(alt.InlineData(values=points), name="changes_bars")
        .mark_bar(orient="vertical")
        .encode(
            x=_time("time", unit),
            x2="end:Q",
            y=alt.Y(
                "changes:Q",
                title="changes",
                stack="zero",
                axis=alt.Axis(format="~s", tickMinStep=1),
            ),
            color=_color(sorted({point["line"] for point in points})),
            tooltip=[
                alt.Tooltip("line:N", title=" "),
                alt.Tooltip("changes:Q", title="changes"),
                alt.Tooltip("time:Q", title=f"from, {unit.name}", format=",.5~g"),
            ],
        )
        .properties(height=HEIGHT)
    )
    return Drawing("changes", "Changes of the cluster", "by kind", chart)


def _time(field: str, unit: TimeUnit) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title=f"{unit.name} from the start",
        axis=alt.Axis(format="~g"),
        scale=alt.Scale(nice=False),
    )


def _color(order: Sequence[str]) -> alt.Color:
    colors = [COLORS[index % len(COLORS)] for index in range(len(order))]
    return alt.Color(
        "line:N",
        sort=list(order),
        scale=alt.Scale(domain=list(order), range=colors),
        legend=alt.Legend(orient="bottom", title=None) if len(order) > 1 else None,
    )


def _legend_choice(name: str) -> alt.Parameter:
    """A click on an entry of the legend shows that line only; shift adds another."""
    return alt.selection_point(name=f"{name}_shown", fields=["line"], bind="legend")


def _zoom(name: str) -> alt.Parameter:
    """Dragging moves the time axis; with shift the wheel zooms, alone it scrolls the page."""
    return alt.selection_interval(
        name=f"{name}_zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]"
    )
