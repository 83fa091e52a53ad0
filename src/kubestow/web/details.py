"""One pod, one node, some attempts: what the page shows when something is opened.

Collected on the scheduler's loop (`find_…`), where objects change, and written elsewhere.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import Condition, object_ref
from kubestow.api.pod import Pod
from kubestow.engine.frozen_decision import PodRef
from kubestow.explain.attempt import explain_attempt
from kubestow.explain.explanation import Explanation
from kubestow.explain.history import AttemptHistory, KeptAttempt
from kubestow.explain.running import explain_running
from kubestow.explain.running_pod import RunningPod, find_running
from kubestow.web.follower import PageFollower
from kubestow.web.protocol import NO_PLACE, PLACES, AttemptRow, NodeRow, PodRow, Result

# Attempts in one answer; those of one pod.
ATTEMPTS_MAX: Final = 1_000
POD_ATTEMPTS_MAX: Final = 50

NOT_TRIED: Final = "it waits for its first attempt"
NOT_OURS: Final = "no profile of this scheduler places it"
NOT_KEPT: Final = (
    "no attempt of it is kept: it was placed before the page was opened, or among many others"
)


class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class AttemptDetail(_Sent, frozen=True, kw_only=True):
    """An `AttemptRow` with the text of its reason."""

    id: int
    time: int
    pod: str
    node: str
    result: Result
    reason: str
    duration_ms: float
    nominated: str
    victims: int


class PodDetailRow(_Sent, frozen=True, kw_only=True):
    """A `PodRow` with texts."""

    key: str
    node: str
    place: str
    priority: int
    owner: str
    requests: dict[str, int]
    reason: str
    rejectors: str
    terminating: bool
    created: int


class NodeDetailRow(_Sent, frozen=True, kw_only=True):
    """A `NodeRow` with names."""

    id: int
    name: str
    groups: dict[str, str]
    unschedulable: bool
    ready: bool
    taints: tuple[str, ...]
    allocatable: dict[str, int]
    requested: dict[str, int]


class PodDetail(_Sent, frozen=True, kw_only=True):
    row: PodDetailRow
    labels: dict[str, str]
    phase: str
    scheduler_name: str
    nominated_node: str
    conditions: tuple[Condition, ...]
    explanation: Explanation | None
    note: str
    attempts: tuple[AttemptDetail, ...]


class NodeDetail(_Sent, frozen=True, kw_only=True):
    row: NodeDetailRow
    labels: dict[str, str]
    conditions: tuple[Condition, ...]
    pods: tuple[PodRow, ...]


class AttemptList(_Sent, frozen=True, kw_only=True):
    attempts: tuple[AttemptDetail, ...]
    dropped: int


class OneAttempt(_Sent, frozen=True, kw_only=True):
    attempt: AttemptDetail
    explanation: Explanation | None


class FoundPod(NamedTuple):
    """A pod as found on the scheduler's loop."""

    pod: Pod
    row: PodDetailRow
    running: RunningPod | None
    attempts: tuple[AttemptDetail, ...]


def find_pod(
    follower: PageFollower, history: AttemptHistory, namespace: str, name: str
) -> FoundPod | None:
    follower.cut()
    scheduler = follower.scheduler
    pod = scheduler.objects.pods.get(namespace, name)
    if pod is None:
        return None
    running = find_running(scheduler, history, namespace, name)
    copied = follower.attempts.last_copy(pod.metadata.uid)
    if running is not None and copied is not None:
        running = running._replace(kept=copied)
    key = object_ref(pod.metadata)
    own = (row for row in follower.attempts.newest_first() if row.pod == key)
    return FoundPod(
        pod=pod,
        row=_pod_detail_row(follower, follower.rows.pod_row(pod)),
        running=running,
        attempts=tuple(_with_text(follower, islice(own, POD_ATTEMPTS_MAX))),
    )


def pod_detail(found: FoundPod) -> PodDetail:
    pod, running = found.pod, found.running
    explanation = None if running is None else explain_running(running)
    note = ""
    if running is None:
        note = NOT_OURS
    elif explanation is None:
        note = NOT_TRIED if running.place == "active" else NOT_KEPT
    return PodDetail(
        row=found.row,
        labels=pod.metadata.labels,
        phase=pod.status.phase,
        scheduler_name=pod.spec.scheduler_name,
        nominated_node=pod.status.nominated_node_name,
        conditions=pod.status.conditions,
        explanation=explanation,
        note=note,
        attempts=found.attempts,
    )


def find_node(follower: PageFollower, name: str) -> NodeDetail | None:
    follower.cut()
    node = follower.scheduler.objects.nodes.get(name)
    if node is None:
        return None
    row = follower.rows.node_row(node)
    on_it = (each for each in follower.table.pods.values() if each.node == row.id)
    return NodeDetail(
        row=_node_detail_row(follower, row),
        labels=node.metadata.labels,
        conditions=node.status.conditions,
        pods=tuple(sorted(on_it, key=lambda each: each.key)),
    )


def find_attempts(follower: PageFollower, before: int | None, limit: int) -> AttemptList:
    """Attempts with a lower number, newest first."""
    follower.cut()
    rows = follower.attempts.newest_first()
    wanted = (row for row in rows if before is None or row.id < before)
    return AttemptList(
        attempts=tuple(_with_text(follower, islice(wanted, limit))),
        dropped=follower.attempts.dropped,
    )


class FoundAttempt(NamedTuple):
    """An attempt as found on the scheduler's loop; `priorities` of its victims, by key."""

    attempt: AttemptDetail
    kept: KeptAttempt | None
    priorities: dict[str, int]


def find_attempt(follower: PageFollower, attempt_id: int) -> FoundAttempt | None:
    follower.cut()
    found = follower.attempts.find(attempt_id)
    if found is None:
        return None
    (attempt,) = _with_text(follower, (found.row,))
    victims = found.kept.decision.victims if found.kept is not None else ()
    rows = [follower.table.pods.get(victim.key) for victim in victims]
    priorities = {row.key: row.priority for row in rows if row is not None}
    return FoundAttempt(attempt, found.kept, priorities)


def attempt_detail(found: FoundAttempt) -> OneAttempt:
    def priority_of(victim: PodRef) -> int:
        return found.priorities.get(victim.key, 0)

    explanation = None
    if found.kept is not None:
        explanation = explain_attempt(found.kept.decision, priority_of=priority_of)
    return OneAttempt(attempt=found.attempt, explanation=explanation)


def _with_text(follower: PageFollower, rows: Iterable[AttemptRow]) -> Iterable[AttemptDetail]:
    reasons = follower.words.reasons.words
    for row in rows:
        yield AttemptDetail(
            id=row.id,
            time=row.time,
            pod=row.pod,
            node=row.node,
            result=row.result,
            reason=reasons[row.reason],
            duration_ms=row.duration_ms,
            nominated=row.nominated,
            victims=row.victims,
        )


def _pod_detail_row(follower: PageFollower, row: PodRow) -> PodDetailRow:
    words = follower.words
    return PodDetailRow(
        key=row.key,
        node=follower.rows.node_name(row.node) if row.node >= 0 else "",
        place="" if row.place == NO_PLACE else PLACES[row.place],
        priority=row.priority,
        owner=words.owners.words[row.owner],
        requests=_by_resource(follower, words.requests.words[row.requests]),
        reason=words.reasons.words[row.reason],
        rejectors=words.rejectors.words[row.rejectors],
        terminating=row.terminating,
        created=row.created,
    )


def _node_detail_row(follower: PageFollower, row: NodeRow) -> NodeDetailRow:
    return NodeDetailRow(
        id=row.id,
        name=row.name,
        groups={
            key: value
            for key, value in zip(follower.words.groupings.words, row.groups, strict=False)
            if value
        },
        unschedulable=row.unschedulable,
        ready=row.ready,
        taints=row.taints,
        allocatable=_by_resource(follower, row.allocatable),
        requested=_by_resource(follower, row.requested),
    )


def _by_resource(follower: PageFollower, amounts: tuple[int, ...]) -> dict[str, int]:
    names = follower.words.resource_names()
    return {name: amount for name, amount in zip(names, amounts, strict=False) if amount}
