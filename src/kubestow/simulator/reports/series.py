"""What the charts of a run show, as points: few enough for any number of pods and samples.

Not here: how they are drawn (`charts`).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from msgspec import UnsetType

from kubestow.simulator.reports.figures import (
    present_nodes,
    resources_of,
    used_share,
    waited_s,
)
from kubestow.simulator.results import NodeRow, PodRow, RunResult, Sample

# Of each line. Of more samples, each point is the largest value of several.
POINTS_MAX: Final = 400
# Lines or colours of one chart; the rest is left out, or counted as "other".
LINES_MAX: Final = 8
BUCKETS: Final = 10
CHANGE_BUCKETS: Final = 60
OTHER: Final = "other"

# A row of the data of a chart.
Point = dict[str, Any]
# The name of a line, and its value in a sample, if it has one.
Line = tuple[str, Callable[[Sample], float | None]]


class TimeUnit(NamedTuple):
    name: str
    seconds: float


_UNITS: Final = (
    TimeUnit("days", 86400.0),
    TimeUnit("hours", 3600.0),
    TimeUnit("minutes", 60.0),
    TimeUnit("seconds", 1.0),
)


def time_unit(duration_s: float) -> TimeUnit:
    """The largest unit of which the time has at least two."""
    return next((unit for unit in _UNITS if duration_s >= 2 * unit.seconds), _UNITS[-1])


def stretch_length(sample_count: int) -> int:
    """How many samples make one point."""
    return max(math.ceil(sample_count / POINTS_MAX), 1)


def line_points(samples: Sequence[Sample], lines: Sequence[Line], unit: TimeUnit) -> list[Point]:
    """The points of all lines, at the time of the first sample of each stretch."""
    length = stretch_length(len(samples))
    points: list[Point] = []
    for start in range(0, len(samples), length):
        stretch = samples[start : start + length]
        time = _short(stretch[0].time_s / unit.seconds)
        for index, (name, value) in enumerate(lines):
            values = [found for sample in stretch if (found := value(sample)) is not None]
            if values:
                points.append(
                    {
                        "time": time,
                        "key": line_key(index),
                        "line": name,
                        "value": _short(max(values)),
                    }
                )
    return points


def line_key(index: int) -> str:
    """A name for a line that is plain, with any characters in its own name."""
    return f"l{index}"


def requested_resources(result: RunResult) -> list[str]:
    """The resources of which something was requested; at most as many as a chart has lines."""
    requested = {
        resource
        for row in (*result.samples, *result.nodes)
        for resource, amount in row.requested.items()
        if amount > 0
    }
    return [resource for resource in resources_of(result) if resource in requested][:LINES_MAX]


def used_line(resource: str) -> Line:
    return resource, lambda sample: used_share(
        sample.requested.get(resource, 0), sample.allocatable.get(resource, 0)
    )


def stranded_line(resource: str) -> Line:
    return resource, lambda sample: used_share(
        sample.stranded.get(resource, 0), sample.allocatable.get(resource, 0)
    )


def imbalance_line(resource: str) -> Line:
    return resource, lambda sample: sample.imbalance.get(resource)


def in_use_line(resource: str) -> Line:
    """The share of all nodes together that is in use."""

    def value(sample: Sample) -> float | None:
        if isinstance(sample.usage, UnsetType):
            return None
        return used_share(sample.usage.used.get(resource, 0), sample.allocatable.get(resource, 0))

    return resource, value


def in_use_p95_line(resource: str) -> Line:
    return (
        f"{resource}, p95 of nodes",
        lambda sample: (
            None if isinstance(sample.usage, UnsetType) else sample.usage.p95_share.get(resource)
        ),
    )


def hot_nodes_line(resource: str) -> Line:
    return (
        resource,
        lambda sample: (
            None if isinstance(sample.usage, UnsetType) else sample.usage.hot_nodes.get(resource)
        ),
    )


def lost_cpu_line() -> Line:
    return (
        "cpu",
        lambda sample: None if isinstance(sample.usage, UnsetType) else sample.usage.lost_cpu_s,
    )


def followed_goals(samples: Sequence[Sample]) -> list[str]:
    """The goals of rebalancing whose figures samples have; at most as many as a chart has lines."""
    goals = dict.fromkeys(
        goal
        for sample in samples
        if not isinstance(sample.goals, UnsetType)
        for goal in sample.goals
    )
    return list(goals)[:LINES_MAX]


def goal_line(goal: str) -> Line:
    return (
        goal,
        lambda sample: None if isinstance(sample.goals, UnsetType) else sample.goals.get(goal),
    )


def waiting_points(pods: Sequence[PodRow]) -> list[Point]:
    """For some waiting times: the share of all pods that were placed within that time.

    The shares do not reach 1 if pods were never placed.
    """
    counts = sorted(Counter(wait for pod in pods if (wait := waited_s(pod)) is not None).items())
    step = max(math.ceil(len(counts) / POINTS_MAX), 1)
    points: list[Point] = []
    placed = 0
    for index, (wait, count) in enumerate(counts):
        placed += count
        # The last of each stretch, and the first and the last of all.
        if index == 0 or index == len(counts) - 1 or (index + 1) % step == 0:
            points.append({"waited": wait, "share": _short(placed / len(pods))})
    return points


def node_points(nodes: Sequence[NodeRow], resources: Sequence[str]) -> list[Point]:
    """The number of nodes at the end in each tenth of the used share, by resource."""
    points: list[Point] = []
    for resource in resources:
        shares = [
            share
            for node in present_nodes(nodes)
            if (
                share := used_share(
                    node.requested.get(resource, 0), node.allocatable.get(resource, 0)
                )
            )
            is not None
        ]
        counts = Counter(min(int(share * BUCKETS), BUCKETS - 1) for share in shares)
        points += [
            {"bucket": bucket_name(bucket), "line": resource, "nodes": count}
            for bucket, count in sorted(counts.items())
        ]
    return points


def change_points(result: RunResult, unit: TimeUnit) -> list[Point]:
    """The number of changes of each kind in each stretch of time."""
    kinds = Counter(change.kind for change in result.changes).most_common(LINES_MAX)
    named = {kind for kind, _ in kinds}
    width_s = max(result.virtual_duration_s, 1.0) / CHANGE_BUCKETS
    counts = Counter(
        (
            min(int(change.time_s / width_s), CHANGE_BUCKETS - 1),
            change.kind if change.kind in named else OTHER,
        )
        for change in result.changes
    )
    return [
        {
            "time": _short(bucket * width_s / unit.seconds),
            "end": _short((bucket + 1) * width_s / unit.seconds),
            "line": kind,
            "changes": count,
        }
        for (bucket, kind), count in sorted(counts.items())
    ]


def bucket_name(bucket: int) -> str:
    """The used shares that a bucket has, lower end included; the last one has all above, too."""
    return f"{bucket * 100 // BUCKETS}-{(bucket + 1) * 100 // BUCKETS} %"


def _short(value: float) -> float:
    """Six digits: more are not seen, and the page has many of them."""
    return float(f"{value:.6g}")
