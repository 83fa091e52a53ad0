"""Which figures of runs are compared, in the order of the tables.

Not here: how a figure is defined (`reports.figures`). Fragmentation is derived here: of
what is free, the share that is stranded, both over time.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kubestow.simulator.reports.figures import Figures, ResourceFigures
from kubestow.simulator.reports.tables import Kind
from kubestow.simulator.results import EVICTED, PREEMPTED

_SECONDS_PER_HOUR: Final = 3600.0


class ComparedFigure(NamedTuple):
    """`name` is that of JSON and CSV, `title` that of tables; of one resource, or of the run."""

    name: str
    resource: str
    title: str
    kind: Kind


# ComparedFigure → its value in a run.
Values = dict[ComparedFigure, float]


class _Whole(NamedTuple):
    name: str
    title: str
    kind: Kind
    value: Callable[[Figures], float | None]


class _PerResource(NamedTuple):
    name: str
    title: str
    value: Callable[[ResourceFigures], float | None]


_WHOLE: Final = (
    _Whole("pods", "pods", Kind.COUNT, lambda run: run.pods),
    _Whole("placed", "placed", Kind.COUNT, lambda run: run.placed),
    _Whole("unplaced", "never placed", Kind.COUNT, lambda run: run.unplaced),
    _Whole(
        "waitedP50", "waited, median", Kind.SECONDS, lambda run: run.waiting and run.waiting.p50_s
    ),
    _Whole("waitedP90", "waited, p90", Kind.SECONDS, lambda run: run.waiting and run.waiting.p90_s),
    _Whole("waitedP99", "waited, p99", Kind.SECONDS, lambda run: run.waiting and run.waiting.p99_s),
    _Whole(
        "waitedMax", "waited, longest", Kind.SECONDS, lambda run: run.waiting and run.waiting.max_s
    ),
    _Whole("waitingPeak", "waiting at once, most", Kind.COUNT, lambda run: run.waiting_peak),
    _Whole("preempted", "preempted", Kind.COUNT, lambda run: run.outcomes.get(PREEMPTED, 0)),
    _Whole("evicted", "evicted", Kind.COUNT, lambda run: run.outcomes.get(EVICTED, 0)),
    _Whole("attempts", "attempts", Kind.COUNT, lambda run: run.attempts),
    _Whole("failedAttempts", "attempts with an error", Kind.COUNT, lambda run: run.failed_attempts),
    _Whole("nodesUsed", "nodes with pods at the end", Kind.COUNT, lambda run: run.nodes_used),
    _Whole(
        "nodeHours",
        "node hours",
        Kind.COUNT,
        lambda run: None if run.node_seconds is None else run.node_seconds / _SECONDS_PER_HOUR,
    ),
)
_PER_RESOURCE: Final = (
    _PerResource("used", "used", lambda each: each.mean_used_share),
    _PerResource("usedPeak", "used, most", lambda each: each.peak_used_share),
    _PerResource("stranded", "stranded", lambda each: each.mean_stranded_share),
    _PerResource("fragmentation", "stranded of what is free", lambda each: _fragmentation(each)),
    _PerResource("imbalance", "imbalance", lambda each: each.mean_imbalance),
)


def measures_of(figures: Figures) -> Values:
    """What was measured in a run; what was not is left out."""
    found: Values = {}
    for each in _WHOLE:
        value = each.value(figures)
        if value is not None:
            found[ComparedFigure(each.name, "", each.title, each.kind)] = float(value)
    for resource in figures.resources:
        for each in _PER_RESOURCE:
            value = each.value(resource)
            if value is not None:
                title = f"{resource.resource} {each.title}"
                found[ComparedFigure(each.name, resource.resource, title, Kind.SHARE)] = value
    return found


def _fragmentation(each: ResourceFigures) -> float | None:
    used, stranded = each.mean_used_share, each.mean_stranded_share
    if used is None or stranded is None or used >= 1:
        return None
    return round(stranded / (1 - used), 6)
