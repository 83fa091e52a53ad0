"""What happened since the page follows, at several widths: a played day is seen at one look.

    seconds ──► 10 s ──► a minute ──► ten minutes ──► an hour

Each width keeps its newest points; a question is answered with the finest width that reaches back
far enough. A width without anything in between has no point: values then are those before.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from kubestow.web.protocol import NodeRow, SeriesPoint

POINTS_MAX: Final = 720
WIDTHS_MS: Final = (1_000, 10_000, 60_000, 600_000, 3_600_000)
# Groups of nodes whose use is kept, and resources of each; causes of waiting of one point.
GROUPS_MAX: Final = 24
RESOURCES_MAX: Final = 8
CAUSES_MAX: Final = 6

ZONE: Final = "topology.kubernetes.io/zone"
# Labels that name the pool of a node; the first that nodes are grouped by.
POOLS: Final = (
    "pool",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
NO_SHARE: Final = -1


class TrendPoint(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of time; what is no count is as at its end.

    time      the begin, milliseconds since 1970
    failed    attempts that found no node
    evicted   pods that were chosen as victims
    p50_ms    latency; of several seconds the mean, weighted by attempts, and of `p99_ms` the most
    places    pods at each place
    causes    pairs of an index in `Words.rejectors` and how many waiting pods have it
    use       by group, by resource: requested of allocatable in thousandths, -1 without any
    """

    time: int
    scheduled: int
    failed: int
    evicted: int
    p50_ms: float
    p99_ms: float
    places: tuple[int, ...]
    causes: tuple[tuple[int, int], ...]
    use: tuple[tuple[int, ...], ...]


class TrendGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes with a value of a label; all nodes have an empty key."""

    key: str
    value: str


class TrendAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Points of one width; `begin` is that of all that is kept."""

    begin: int
    width_ms: int
    groups: tuple[TrendGroup, ...]
    points: tuple[TrendPoint, ...]


class UseSums:
    """What is requested and allocatable on all nodes, in each zone and in each pool."""

    def __init__(self, groupings: Sequence[str]) -> None:
        pool = next((key for key in POOLS if key in groupings), None)
        self._keys = [
            (key, groupings.index(key))
            for key in (ZONE, pool)
            if key is not None and key in groupings
        ]
        self._places: dict[tuple[str, str], int] = {("", ""): 0}
        self._allocatable: list[list[int]] = [[]]
        self._requested: list[list[int]] = [[]]

    def groups(self) -> tuple[TrendGroup, ...]:
        return tuple(TrendGroup(key=key, value=value) for key, value in self._places)

    def replace(self, old: NodeRow | None, new: NodeRow | None) -> None:
        if old is not None:
            self._add(old, -1)
        if new is not None:
            self._add(new, 1)

    def shares(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(
                requested * 1000 // allocatable if allocatable else NO_SHARE
                for requested, allocatable in zip(group, limits, strict=True)
            )
            for group, limits in zip(self._requested, self._allocatable, strict=True)
        )

    def _add(self, row: NodeRow, sign: int) -> None:
        self._add_to(0, row, sign)
        for key, index in self._keys:
            value = row.groups[index] if index < len(row.groups) else ""
            place = self._place(key, value) if value else None
            if place is not None:
                self._add_to(place, row, sign)

    def _place(self, key: str, value: str) -> int | None:
        place = self._places.get((key, value))
        if place is None and len(self._places) < GROUPS_MAX:
            place = self._places[key, value] = len(self._places)
            self._allocatable.append([])
            self._requested.append([])
        return place

    def _add_to(self, place: int, row: NodeRow, sign: int) -> None:
        for sums, amounts in (
            (self._allocatable[place], row.allocatable),
            (self._requested[place], row.requested),
        ):
            shown = amounts[:RESOURCES_MAX]
            missing = len(shown) - len(sums)
            if missing > 0:
                self._allocatable[place] += [0] * missing
                self._requested[place] += [0] * missing
            for index, amount in enumerate(shown):
                sums[index] += sign * amount


class Trends:
    def __init__(self) -> None:
        self._levels = [deque[TrendPoint](maxlen=POINTS_MAX) for _ in WIDTHS_MS]
        self._begin_ms = 0

    def add(self, second: TrendPoint) -> None:
        """A second that has ended, or the current one again as far as it is."""
        self._begin_ms = self._begin_ms or second.time
        finest = self._levels[0]
        again = finest.pop() if finest and finest[-1].time == second.time else None
        finest.append(second)
        for width_ms, points in zip(WIDTHS_MS[1:], self._levels[1:], strict=True):
            begin_ms = second.time - second.time % width_ms
            if points and points[-1].time == begin_ms:
                points.append(_merged(points.pop(), second, again))
            else:
                points.append(msgspec.structs.replace(second, time=begin_ms))

    def between(self, begin_ms: int, end_ms: int, groups: tuple[TrendGroup, ...]) -> TrendAnswer:
        """The points of that time, of the finest width that reaches back to its begin."""
        wanted_ms = max(begin_ms, self._begin_ms)
        level = next(
            (
                level
                for level, points in enumerate(self._levels)
                if (end_ms - wanted_ms) // WIDTHS_MS[level] <= POINTS_MAX
                and (len(points) < POINTS_MAX or points[0].time <= wanted_ms)
            ),
            len(WIDTHS_MS) - 1,
        )
        width_ms, points = WIDTHS_MS[level], self._levels[level]
        # The one before has the values that hold until the next one.
        before = [point for point in points if point.time + width_ms <= begin_ms][-1:]
        within = [
            point for point in points if begin_ms < point.time + width_ms <= end_ms + width_ms
        ]
        return TrendAnswer(
            begin=self._begin_ms, width_ms=width_ms, groups=groups, points=(*before, *within)
        )


def trend_of(
    second: SeriesPoint,
    evicted: int,
    causes: Sequence[tuple[int, int]],
    use: tuple[tuple[int, ...], ...],
) -> TrendPoint:
    return TrendPoint(
        time=second.time,
        scheduled=second.scheduled,
        failed=second.unschedulable + second.errors,
        evicted=evicted,
        p50_ms=second.p50_ms,
        p99_ms=second.p99_ms,
        places=second.places,
        causes=tuple(causes[:CAUSES_MAX]),
        use=use,
    )


def _merged(point: TrendPoint, second: TrendPoint, again: TrendPoint | None) -> TrendPoint:
    """A point with a second more; `again` is what it already has of that second."""

    def more(name: str) -> int:
        counted = 0 if again is None else getattr(again, name)
        return getattr(second, name) - counted

    scheduled, failed = point.scheduled + more("scheduled"), point.failed + more("failed")
    before = point.scheduled + point.failed
    attempts = second.scheduled + second.failed
    mean = point.p50_ms
    if again is None and attempts:
        mean = (point.p50_ms * before + second.p50_ms * attempts) / (before + attempts)
    return TrendPoint(
        time=point.time,
        scheduled=scheduled,
        failed=failed,
        evicted=point.evicted + more("evicted"),
        p50_ms=round(mean, 3),
        p99_ms=max(point.p99_ms, second.p99_ms),
        places=second.places,
        causes=second.causes,
        use=second.use,
    )
