"""One pod, one node, some attempts: what the page shows when something is opened.

Collected on the scheduler's loop (`find_…`), where objects change, and written elsewhere.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import ApiObject, Condition, object_ref
from kubestow.api.pod import Pod
from kubestow.engine.frozen_decision import PodRef
from kubestow.explain.attempt import explain_attempt
from kubestow.explain.explanation import Explanation
from kubestow.explain.history import AttemptHistory, KeptAttempt
from kubestow.explain.running import explain_running, with_running_evidence
from kubestow.explain.running_pod import RunningEvidence, RunningPod, evidence_now, find_running
from kubestow.web.asks import Ask, asks_of
from kubestow.web.devices import NodeDevices, devices_of
from kubestow.web.events import PageEvent
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
    """An `AttemptRow` with the texts of its reason and its owner."""

    id: int
    time: int
    pod: str
    node: str
    result: Result
    reason: str
    duration_ms: float
    nominated: str
    victims: int
    owner: str


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
    created: int


class PodDetail(_Sent, frozen=True, kw_only=True):
    row: PodDetailRow
    labels: dict[str, str]
    phase: str
    scheduler_name: str
    nominated_node: str
    conditions: tuple[Condition, ...]
    asks: tuple[Ask, ...]
    events: tuple[PageEvent, ...]
    explanation: Explanation | None
    note: str
    attempts: tuple[AttemptDetail, ...]


class NodeDetail(_Sent, frozen=True, kw_only=True):
    row: NodeDetailRow
    labels: dict[str, str]
    conditions: tuple[Condition, ...]
    devices: NodeDevices
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
    asks: tuple[Ask, ...]
    events: tuple[PageEvent, ...]
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
    if running is not None:
        # The page's own copy is newer than that of the history, which has more pods.
        kept = follower.attempts.last_copy(pod.metadata.uid) or running.kept
        if kept is not None:
            running = running._replace(kept=kept, evidence=_evidence(follower, pod, kept))
    key = object_ref(pod.metadata)
    groups = scheduler.cache.groups
    own = (row for row in follower.attempts.newest_first() if row.pod == key)
    return FoundPod(
        pod=pod,
        row=_pod_detail_row(follower, follower.rows.pod_row(pod)),
        asks=asks_of(pod, None if groups is None else groups.key_of(pod)),
        events=follower.events.of(key),
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
        asks=found.asks,
        events=found.events,
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
        devices=devices_of(follower.scheduler.objects, node),
        pods=tuple(sorted(on_it, key=lambda each: each.key)),
    )


class AttemptFilter(NamedTuple):
    """Which attempts are shown; an empty field selects all.

    before   those with a lower number
    result   `failed` is any that found no node
    text     a part of the pod's key or of its owner
    """

    before: int | None = None
    result: str = ""
    namespace: str = ""
    owner: str = ""
    text: str = ""


def find_attempts(follower: PageFollower, wanted: AttemptFilter, limit: int) -> AttemptList:
    """The attempts that are wanted, newest first."""
    follower.cut()
    rows = follower.attempts.newest_first()
    before, result, namespace, owner, text = wanted
    owners, prefix, text = follower.words.owners.words, f"{namespace}/", text.lower()
    found = (
        row
        for row in rows
        if (before is None or row.id < before)
        and (not result or row.result == result or (result == "failed" and not row.node))
        and (not namespace or row.pod.startswith(prefix))
        and (not owner or owners[row.owner] == owner)
        and (not text or text in row.pod.lower() or text in owners[row.owner].lower())
    )
    return AttemptList(
        attempts=tuple(_with_text(follower, islice(found, limit))),
        dropped=follower.attempts.dropped,
    )


class FoundAttempt(NamedTuple):
    """An attempt as found on the scheduler's loop; `priorities` of its victims, by key.

    evidence   what is missing for the pod as of now, if it still waits
    """

    attempt: AttemptDetail
    kept: KeptAttempt | None
    priorities: dict[str, int]
    evidence: RunningEvidence


def find_attempt(follower: PageFollower, attempt_id: int) -> FoundAttempt | None:
    follower.cut()
    found = follower.attempts.find(attempt_id)
    if found is None:
        return None
    (attempt,) = _with_text(follower, (found.row,))
    victims = found.kept.decision.victims if found.kept is not None else ()
    rows = [follower.table.pods.get(victim.key) for victim in victims]
    priorities = {row.key: row.priority for row in rows if row is not None}
    evidence = RunningEvidence({})
    pod = follower.scheduler.objects.pods.get(*split_key(found.row.pod))
    kept = found.kept
    if kept is not None and pod is not None and pod.metadata.uid == kept.decision.pod.uid:
        evidence = _evidence(follower, pod, kept)
    return FoundAttempt(attempt, kept, priorities, evidence)


def attempt_detail(found: FoundAttempt) -> OneAttempt:
    def priority_of(victim: PodRef) -> int:
        return found.priorities.get(victim.key, 0)

    explanation = None
    if found.kept is not None:
        explanation = with_running_evidence(
            explain_attempt(found.kept.decision, priority_of=priority_of), found.evidence
        )
    return OneAttempt(attempt=found.attempt, explanation=explanation)


def _evidence(follower: PageFollower, pod: Pod, kept: KeptAttempt) -> RunningEvidence:
    profile = follower.scheduler.profiles.get(pod.spec.scheduler_name)
    if profile is None:
        return RunningEvidence({})
    return evidence_now(follower.scheduler, profile, pod, kept, follower.parts.gates)


def find_object(follower: PageFollower, kind: str, *key: str) -> ApiObject | None:
    """A pod by namespace and name, or a node by name."""
    objects = follower.scheduler.objects
    return objects.nodes.get(*key) if kind == "nodes" else objects.pods.get(*key)


def split_key(key: str) -> tuple[str, str]:
    """Namespace and name."""
    namespace, _, name = key.partition("/")
    return namespace, name


def _with_text(follower: PageFollower, rows: Iterable[AttemptRow]) -> Iterable[AttemptDetail]:
    reasons, owners = follower.words.reasons.words, follower.words.owners.words
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
            owner=owners[row.owner],
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
        created=row.created,
    )


def _by_resource(follower: PageFollower, amounts: tuple[int, ...]) -> dict[str, int]:
    names = follower.words.resource_names()
    return {name: amount for name, amount in zip(names, amounts, strict=False) if amount}
