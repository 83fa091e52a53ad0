"""The state that a page begins with, now or at an earlier time.

Taken in two steps: a `Picture` on the scheduler's loop, which copies two dictionaries of rows and
takes a millisecond for 50,000 pods, and the `State` made of it in another thread.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from kubestow.web.follower import PageFollower
from kubestow.web.past import ReplacedRows, take_back
from kubestow.web.protocol import (
    AttemptRow,
    ClockState,
    Counts,
    Leader,
    Mode,
    NodeColumns,
    NodeRow,
    PluginTime,
    PodColumns,
    PodRow,
    ProfileState,
    SchedulerState,
    SeriesPoint,
    Span,
    State,
    Words,
)
from kubestow.web.table import WaitingCounts

ATTEMPTS_SHOWN: Final = 200


class PageFacts(NamedTuple):
    """What a page shows that does not change."""

    mode: Mode
    version: str
    upstream: str
    profiles: tuple[ProfileState, ...]
    config: str
    actions: tuple[str, ...] = ()


class Picture(NamedTuple):
    """Copies of what the follower has. `changes` are to be taken back, newest first."""

    seq: int
    clock: ClockState
    span: Span
    leader: Leader
    words: Words
    nodes: dict[int, NodeRow]
    pods: dict[str, PodRow]
    changes: Sequence[ReplacedRows]
    series: Sequence[SeriesPoint]
    plugin_times: tuple[PluginTime, ...]
    attempts: tuple[AttemptRow, ...]
    counts: Counts


class PastMoment(NamedTuple):
    """An earlier time in milliseconds, or right after an attempt."""

    time_ms: int | None = None
    attempt: int | None = None


NOW: Final = PastMoment()


def take_picture(follower: PageFollower, moment: PastMoment = NOW) -> Picture | None:
    """The cluster now, or at an earlier moment; None if that is not kept."""
    clock = follower.clock_state()
    changes: Sequence[ReplacedRows] | None = ()
    last = follower.attempts.count
    if moment.attempt is not None:
        found = follower.attempts.find(moment.attempt)
        if found is None:
            return None
        changes, last = follower.past.since_attempt(moment.attempt), moment.attempt
        clock = msgspec.structs.replace(clock, time=found.row.time)
    elif moment.time_ms is not None and moment.time_ms < clock.time:
        changes = follower.past.since_time(moment.time_ms)
        clock = msgspec.structs.replace(clock, time=moment.time_ms)
    if changes is None:
        return None
    attempts = (
        row for row in follower.attempts.newest_first() if row.id <= last and row.time <= clock.time
    )
    return Picture(
        seq=follower.seq,
        clock=clock,
        span=follower.past.span(follower.now_ms()),
        leader=follower.parts.leader(),
        words=follower.words.all(),
        nodes=dict(follower.table.nodes),
        pods=dict(follower.table.pods),
        changes=changes,
        series=[point for point in follower.series.points() if point.time <= clock.time],
        plugin_times=follower.plugin_times.all(),
        attempts=tuple(islice(attempts, ATTEMPTS_SHOWN))[::-1],
        counts=follower.counts(),
    )


def state_of(picture: Picture, facts: PageFacts) -> State:
    """The state; changes the picture's dictionaries."""
    nodes, pods = picture.nodes, picture.pods
    take_back(picture.changes, nodes, pods)
    return State(
        seq=picture.seq,
        mode=facts.mode,
        actions=facts.actions,
        clock=picture.clock,
        span=picture.span,
        scheduler=SchedulerState(
            version=facts.version,
            upstream=facts.upstream,
            leader=picture.leader,
            profiles=facts.profiles,
            config=facts.config,
        ),
        words=picture.words,
        nodes=_node_columns(list(nodes.values())),
        pods=_pod_columns(list(pods.values())),
        queue=WaitingCounts.of(pods.values()).state(),
        series=tuple(picture.series),
        plugin_times=picture.plugin_times,
        attempts=picture.attempts,
        counts=picture.counts,
    )


def _node_columns(rows: Sequence[NodeRow]) -> NodeColumns:
    return NodeColumns(
        id=[row.id for row in rows],
        name=[row.name for row in rows],
        groups=[row.groups for row in rows],
        unschedulable=[row.unschedulable for row in rows],
        ready=[row.ready for row in rows],
        taints=[row.taints for row in rows],
        allocatable=[row.allocatable for row in rows],
        requested=[row.requested for row in rows],
        created=[row.created for row in rows],
    )


def _pod_columns(rows: Sequence[PodRow]) -> PodColumns:
    return PodColumns(
        key=[row.key for row in rows],
        node=[row.node for row in rows],
        place=[row.place for row in rows],
        priority=[row.priority for row in rows],
        owner=[row.owner for row in rows],
        requests=[row.requests for row in rows],
        reason=[row.reason for row in rows],
        rejectors=[row.rejectors for row in rows],
        terminating=[row.terminating for row in rows],
        created=[row.created for row in rows],
    )
