"""Which figures of runs are compared, in the order of the tables.

Not here: how a figure is defined (`reports.figures`). Fragmentation is derived here: of
what is free, the share that is stranded, both over time.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import UnsetType

from kubestow.simulator.reports.figures import Figures, ResourceFigures
from kubestow.simulator.reports.tables import Kind
from kubestow.simulator.results import EVICTED, PREEMPTED
from kubestow.simulator.usage.results import ResourceUsage

_SECONDS_PER_HOUR: Final = 3600.0


class ComparedFigure(NamedTuple):
    """`name` is that of JSON and CSV, `title` that of tables; of one resource, or of the run."""

    name: str
    resource: str
    title: str
    kind: Kind


Values = dict[ComparedFigure, float]


# Name, title, kind and value of each figure; those of a resource are shares.
_Whole = tuple[str, str, Kind, Callable[[Figures], float | None]]
_PerResource = tuple[str, str, Callable[[ResourceFigures], float | None]]
_PerUse = tuple[str, str, Kind, Callable[[ResourceUsage], float]]

_WHOLE: Final[Sequence[_Whole]] = (
    ("pods", "pods", Kind.COUNT, lambda run: run.pods),
    ("placed", "placed", Kind.COUNT, lambda run: run.placed),
    ("unplaced", "never placed", Kind.COUNT, lambda run: run.unplaced),
    ("refused", "refused, never created", Kind.COUNT, lambda run: run.refused),
    ("waitedP50", "waited, median", Kind.SECONDS, lambda run: run.waiting and run.waiting.p50_s),
    ("waitedP90", "waited, p90", Kind.SECONDS, lambda run: run.waiting and run.waiting.p90_s),
    ("waitedP99", "waited, p99", Kind.SECONDS, lambda run: run.waiting and run.waiting.p99_s),
    ("waitedMax", "waited, longest", Kind.SECONDS, lambda run: run.waiting and run.waiting.max_s),
    ("waitingPeak", "waiting at once, most", Kind.COUNT, lambda run: run.waiting_peak),
    ("preempted", "preempted", Kind.COUNT, lambda run: run.outcomes.get(PREEMPTED, 0)),
    ("evicted", "evicted", Kind.COUNT, lambda run: run.outcomes.get(EVICTED, 0)),
    (
        "memoryEvictions",
        "evicted for memory",
        Kind.COUNT,
        lambda run: None if isinstance(run.usage, UnsetType) else run.usage.memory_evictions,
    ),
    (
        "lostCpu",
        "cpu lost, core seconds",
        Kind.COUNT,
        lambda run: None if isinstance(run.usage, UnsetType) else run.usage.lost_cpu_s,
    ),
    ("attempts", "attempts", Kind.COUNT, lambda run: run.attempts),
    ("failedAttempts", "attempts with an error", Kind.COUNT, lambda run: run.failed_attempts),
    ("nodesUsed", "nodes with pods at the end", Kind.COUNT, lambda run: run.nodes_used),
    (
        "nodeHours",
        "node hours",
        Kind.COUNT,
        lambda run: None if run.node_seconds is None else run.node_seconds / _SECONDS_PER_HOUR,
    ),
)
_PER_RESOURCE: Final[Sequence[_PerResource]] = (
    ("used", "used", lambda each: each.mean_used_share),
    ("usedPeak", "used, most", lambda each: each.peak_used_share),
    ("stranded", "stranded", lambda each: each.mean_stranded_share),
    ("fragmentation", "stranded of what is free", lambda each: _fragmentation(each)),
    ("imbalance", "imbalance", lambda each: each.mean_imbalance),
)
_PER_USE: Final[Sequence[_PerUse]] = (
    ("hotNodeMinutes", "hot node minutes", Kind.COUNT, lambda each: each.hot_node_minutes),
    ("inUse", "in use", Kind.SHARE, lambda each: each.mean_share),
    ("inUseP50", "in use, p50 of nodes", Kind.SHARE, lambda each: each.p50_share),
    ("inUseP95", "in use, p95 of nodes", Kind.SHARE, lambda each: each.p95_share),
    ("inUseP99", "in use, p99 of nodes", Kind.SHARE, lambda each: each.p99_share),
    ("inUseMax", "in use, most of a node", Kind.SHARE, lambda each: each.max_share),
)


def measures_of(figures: Figures) -> Values:
    """What was measured in a run; what was not is left out."""
    found: Values = {}
    for name, title, kind, value_of in _WHOLE:
        value = value_of(figures)
        if value is not None:
            found[ComparedFigure(name, "", title, kind)] = float(value)
    for each in figures.resources:
        for name, title, share_of in _PER_RESOURCE:
            share = share_of(each)
            if share is not None:
                titled = f"{each.resource} {title}"
                found[ComparedFigure(name, each.resource, titled, Kind.SHARE)] = share
    for used in () if isinstance(figures.usage, UnsetType) else figures.usage.resources:
        for name, title, kind, value_of in _PER_USE:
            titled = f"{used.resource} {title}"
            found[ComparedFigure(name, used.resource, titled, kind)] = value_of(used)
    for goal, mean in ({} if isinstance(figures.goals, UnsetType) else figures.goals).items():
        found[ComparedFigure("goal", goal, f"{goal}, mean over time", Kind.NUMBER)] = mean
    return found


def _fragmentation(each: ResourceFigures) -> float | None:
    used, stranded = each.mean_used_share, each.mean_stranded_share
    if used is None or stranded is None or used >= 1:
        return None
    return round(stranded / (1 - used), 6)
