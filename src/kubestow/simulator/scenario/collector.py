"""Follows a run and makes the rows of its result.

What it knows of a pod that is there is small, and of one that is gone only its row is left, so a
run needs memory for the rows and for what exists at one time.

    decisions ──► attempts, failures
    pods ───────► created ──► got a node ──► ended, preempted, evicted, removed ──► PodRow
    nodes ──────► joined ──► left ──► NodeRow

Not here: samples of the whole cluster (`samples`), what the scenario does (`actions`).
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from kubestow.api.node import Node
from kubestow.api.pod import (
    Pod,
    PodSpec,
    first_condition,
    is_terminal,
    is_terminating,
    key_of,
    priority_of,
)
from kubestow.api.requests import accounted_request, has_status_amounts
from kubestow.api.resources import Resources
from kubestow.api.topology import ZONE_LABEL
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent
from kubestow.cache.node_info import NodeInfo
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object
from kubestow.cluster.resources import NODES, PODS
from kubestow.engine.decision import Decision
from kubestow.queue import QueuedPod
from kubestow.simulator import results
from kubestow.simulator.pod_owner import controllers_above
from kubestow.simulator.results import (
    Change,
    Failure,
    NodeRow,
    PodRow,
    RefusedPods,
    amounts_of,
)
from kubestow.simulator.scenario.shapes import RequestShapes

# Rows of changes and of failures that are kept.
CHANGES_MAX: Final = 10_000
FAILURES_MAX: Final = 100
# The annotation of objects that arrived: the entry of the scenario.
ENTRY: Final = "kubestow.io/entry"
_PREEMPTED: Final = "PreemptionByScheduler"


class _PodRecord:
    """What is known of a pod while it exists."""

    __slots__ = (
        "attempts",
        "created_s",
        "decided_s",
        "ended_s",
        "number",
        "outcome",
        "owner",
        "requests",
        "scheduled_s",
    )

    def __init__(self, number: int, created_s: float, owner: str, requests: dict[str, int]) -> None:
        # From 1, in the order of arrival; 0: it has no row.
        self.number = number
        self.created_s = created_s
        self.owner = owner
        self.requests = requests
        self.attempts = 0
        # Of the last attempt.
        self.decided_s: float | None = None
        self.scheduled_s: float | None = None
        self.ended_s: float | None = None
        # Once it is decided.
        self.outcome = ""


class OnAttempt(Protocol):
    """`Collector.attempted`, or what calls it."""

    def __call__(self, pod: Pod, attempts: int, *, error: str) -> None: ...


class Collector:
    """Follows the store from when it is made; what it is called with costs a few microseconds."""

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        *,
        pool_label: str = "",
        follows_running: bool = True,
        times_decisions: bool = False,
        owner_of: Callable[[Pod], str] | None = None,
    ) -> None:
        """Without `follows_running`, pods that come with a node or have ended have no rows; those
        that go are preempted. With `times_decisions`, a pod gets its node when that is decided, not
        when it is bound. `owner_of` says what made a pod, if that is not the entry of a scenario
        or the controller."""
        self._cluster = cluster
        self._clock = clock
        self._pool_label = pool_label
        self._follows_running = follows_running
        self._times_decisions = times_decisions
        self._owner_of = owner_of or self._entry_or_controller
        self._pods: dict[str, _PodRecord] = {}
        # In the order of arrival; None while the pod exists.
        self._rows: list[PodRow | None] = []
        # Equal requests are one object; so are equal texts of rows.
        self._requests: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
        self._texts: dict[str, str] = {}
        # The spec of the last new pod of each owner, and what it requests.
        self._last_requests: dict[str, tuple[PodSpec, dict[str, int]]] = {}
        self._joined_s: dict[str, float] = {}
        self._is_ready: dict[str, bool] = {}
        self._left: list[NodeRow] = []
        self._failures: Counter[tuple[str, str]] = Counter()
        # The first message and the number of pods of each owner.
        self._refusals: dict[str, tuple[str, int]] = {}
        self.refused_pods = 0
        self.shapes: Final = RequestShapes()
        self.changes: Final[list[Change]] = []
        self.dropped_changes = 0
        self.failed_attempts = 0
        self.arrived = self.placed = self.ended = self.preempted = self.evicted = 0
        cluster.observe(NODES, self._after_node)
        cluster.observe(PODS, self._after_pod)

    def owner_of(self, uid: str) -> str:
        """What made a pod that exists, as rows name it."""
        return self._pods[uid].owner

    # --- Following ----------------------------------------------------------------------------

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """Count a decision; a `DecisionListener`."""
        self.attempted(queued_pod.pod, queued_pod.attempts, error=error_of(decision))

    def attempted(self, pod: Pod, attempts: int, *, error: str = "") -> None:
        """Note the attempts that a pod had so far, and the error of one that failed by one."""
        record = self._pods.get(pod.metadata.uid)
        if record is not None:
            record.attempts = attempts
            if self._times_decisions:
                record.decided_s = self._clock.monotonic_s()
        if error:
            self.failed_attempts += 1
            key = (self._owner_of(pod), error)
            if key in self._failures or len(self._failures) < FAILURES_MAX:
                self._failures[key] += 1

    def refused(self, owner: StoredObject, message: str, change: int) -> None:
        """Count pods of an owner that could not be created, or, with less than 0, could now."""
        name = self._topmost(owner) or f"{owner.resource.kind}/{owner.name}"
        self.refused_of(name, message, change)

    def refused_of(self, name: str, message: str, change: int) -> None:
        """Count refused pods of an owner by the name that rows have for it."""
        self.refused_pods += change
        if name in self._refusals or len(self._refusals) < FAILURES_MAX:
            first, count = self._refusals.get(name, (message, 0))
            self._refusals[name] = (first, count + change)

    def note(self, kind: str, subject: str, detail: str = "") -> None:
        """Add a change to the list."""
        if len(self.changes) >= CHANGES_MAX:
            self.dropped_changes += 1
            return
        change = Change(time_s=self._now_s(), kind=kind, subject=subject, detail=detail)
        self.changes.append(change)

    def _now_s(self) -> float:
        return round(self._clock.monotonic_s(), 3)

    # --- Pods ---------------------------------------------------------------------------------

    def _after_pod(self, event: WatchEvent) -> None:
        pod = event.stored.typed
        assert isinstance(pod, Pod), pod
        uid = pod.metadata.uid
        record = self._pods.get(uid)
        if record is None:
            if event.type == "DELETED":
                return
            record = self._pods[uid] = self._new_record(pod)
        if pod.spec.node_name and record.scheduled_s is None:
            record.scheduled_s = self._now_s()
            self.placed += 1
        if event.type == "DELETED":
            self._conclude(record, pod)
            del self._pods[uid]
            if record.number:
                self._rows[record.number - 1] = self._row(record, pod)
        elif pod.metadata.deletion_timestamp is not None or is_terminal(pod):
            self._conclude(record, pod)

    def _new_record(self, pod: Pod) -> _PodRecord:
        if not self._follows_running and (pod.spec.node_name or is_terminal(pod)):
            return self._unfollowed(pod)
        self._rows.append(None)
        self.arrived += 1
        owner = self._text(self._owner_of(pod))
        return _PodRecord(len(self._rows), self._now_s(), owner, self._requests_of(pod, owner))

    def _requests_of(self, pod: Pod, owner: str) -> dict[str, int]:
        # Pods of one owner mostly share the spec.
        last, is_plain = self._last_requests.get(owner), not has_status_amounts(pod.status)
        if last is not None and last[0] is pod.spec and is_plain:
            return last[1]
        amounts = amounts_of(accounted_request(pod).requested)
        requests = self._requests.setdefault(tuple(amounts.items()), amounts)
        if requests is amounts:
            self.shapes.add(amounts)
        if is_plain:
            self._last_requests[owner] = pod.spec, requests
        return requests

    def _unfollowed(self, pod: Pod) -> _PodRecord:
        """Make the record of a pod without a row: only that it has to go is noted."""
        record = _PodRecord(0, self._now_s(), "", {})
        record.scheduled_s = record.created_s
        if is_terminal(pod) or is_terminating(pod):
            record.outcome = results.ENDED
        return record

    def _entry_or_controller(self, pod: Pod) -> str:
        """What made the pod: the entry of the scenario, or the topmost controller."""
        entry = pod.metadata.annotations.get(ENTRY)
        if entry is not None:
            return entry
        stored = self._cluster.find(PODS, pod.metadata.namespace, pod.metadata.name)
        return "" if stored is None else self._topmost(stored)

    def _topmost(self, stored: StoredObject) -> str:
        """The entry that an object is from, or its topmost controller; empty if it has neither."""
        entry = as_object(stored.metadata.get("annotations")).get(ENTRY)
        if entry:
            return entry
        top = ""
        for each in controllers_above(self._cluster, stored.document, stored.key[0]):
            top = each.name
            if each.stored is None:
                continue
            if entry := as_object(each.stored.metadata.get("annotations")).get(ENTRY):
                return entry
        return top

    def _conclude(self, record: _PodRecord, pod: Pod) -> None:
        """Decide what became of the pod, once."""
        if record.outcome:
            return
        how, reason = disruption_of(pod)
        name = key_of(pod)
        # Older schedulers write no condition.
        if not record.number or how == results.PREEMPTED:
            record.outcome = results.PREEMPTED
            self.preempted += 1
            self.note("preemption", name, f"on {pod.spec.node_name}")
        elif how == results.EVICTED:
            record.outcome = results.EVICTED
            self.evicted += 1
            self.note("eviction", name, f"from {pod.spec.node_name}: {reason}")
        elif pod.spec.node_name:
            record.outcome = results.ENDED
            self.ended += 1
        else:
            record.outcome = results.REMOVED
        record.ended_s = self._now_s()

    def _row(self, record: _PodRecord, pod: Pod) -> PodRow:
        scheduled_s = record.scheduled_s
        if scheduled_s is not None and record.decided_s is not None:
            scheduled_s = round(record.decided_s, 3)
        outcome, reason, message = record.outcome, "", ""
        if not outcome and pod.spec.node_name:
            outcome = results.RUNNING
        elif not outcome:
            outcome = results.GATED if pod.spec.scheduling_gates else results.PENDING
            condition = first_condition(pod.status.conditions, "PodScheduled")
            if condition is not None:
                reason, message = self._text(condition.reason), self._text(condition.message)
        return PodRow(
            namespace=self._text(pod.metadata.namespace),
            name=pod.metadata.name,
            generate_name=self._text(pod.metadata.generate_name),
            owner=record.owner,
            priority=priority_of(pod),
            requests=record.requests,
            outcome=outcome,
            node=self._text(pod.spec.node_name),
            created_s=record.created_s,
            scheduled_s=scheduled_s,
            ended_s=record.ended_s,
            attempts=record.attempts,
            reason=reason,
            message=message,
        )

    def _text(self, text: str) -> str:
        return self._texts.setdefault(text, text)

    # --- Nodes --------------------------------------------------------------------------------

    def _after_node(self, event: WatchEvent) -> None:
        node = event.object
        assert isinstance(node, Node), node
        name = node.metadata.name
        if event.type == "DELETED":
            self._is_ready.pop(name, None)
            joined_s = self._joined_s.pop(name, 0.0)
            row = self._node_row(node, None, joined_s, left_s=self._now_s())
            self._left.append(row)
            return
        if name not in self._joined_s:
            self._joined_s[name] = self._now_s()
        ready = first_condition(node.status.conditions, "Ready")
        is_ready = ready is None or ready.status == "True"
        if is_ready is not self._is_ready.setdefault(name, is_ready):
            self._is_ready[name] = is_ready
            self.note("node ready" if is_ready else "node not ready", name)

    def _node_row(
        self, node: Node, info: NodeInfo | None, joined_s: float, left_s: float | None = None
    ) -> NodeRow:
        labels = node.metadata.labels
        if info is not None and node.status.allocatable:
            allocatable = info.allocatable
        else:
            allocatable = Resources.from_list(node.status.allocatable or node.status.capacity)
        return NodeRow(
            name=node.metadata.name,
            zone=labels.get(ZONE_LABEL, ""),
            pool=labels.get(self._pool_label, "") if self._pool_label else "",
            joined_s=joined_s,
            left_s=left_s,
            pods=0 if info is None else len(info.pods),
            allowed_pods=allocatable.allowed_pods,
            allocatable=amounts_of(allocatable),
            requested={} if info is None else amounts_of(info.requested),
        )

    # --- The result ---------------------------------------------------------------------------

    def pod_rows(self, scheduler_names: frozenset[str]) -> list[PodRow]:
        """All pods in the order of their arrival."""
        rows = list(self._rows)
        for stored in self._cluster.objects_of(PODS):
            pod = stored.typed
            assert isinstance(pod, Pod), pod
            record = self._pods[pod.metadata.uid]
            if not record.number:
                continue
            row = self._row(record, pod)
            if row.outcome == results.PENDING and pod.spec.scheduler_name not in scheduler_names:
                row = _waits_for_another(row, pod.spec.scheduler_name)
            rows[record.number - 1] = row
        return [row for row in rows if row is not None]

    def node_rows(self, infos: dict[str, NodeInfo], *, as_visited: bool = False) -> list[NodeRow]:
        """All nodes, by name or in the order of `infos`; those that left come first."""
        there = sorted(self._cluster.objects_of(NODES), key=lambda stored: stored.name)
        if as_visited:
            ranks = {name: rank for rank, name in enumerate(infos)}
            there.sort(key=lambda stored: ranks.get(stored.name, len(ranks)))
        rows = list(self._left)
        for stored in there:
            node = stored.typed
            assert isinstance(node, Node), node
            joined_s = self._joined_s.get(stored.name, 0.0)
            rows.append(self._node_row(node, infos.get(stored.name), joined_s))
        return rows

    def refusals(self) -> list[RefusedPods]:
        return [
            RefusedPods(owner=owner, message=message, pods=count)
            for owner, (message, count) in self._refusals.items()
            if count
        ]

    def failures(self) -> list[Failure]:
        return [
            Failure(owner=owner, message=message, attempts=count)
            for (owner, message), count in self._failures.items()
        ]


def disruption_of(pod: Pod) -> tuple[str, str]:
    """Preempted or Evicted, and the reason, of a pod that had to go; empty for all others."""
    condition = first_condition(pod.status.conditions, "DisruptionTarget")
    if condition is None:
        return "", ""
    if condition.reason == _PREEMPTED:
        return results.PREEMPTED, condition.reason
    return (results.EVICTED, condition.reason) if condition.status == "True" else ("", "")


def error_of(decision: Decision) -> str:
    """The message of an attempt that an error ended, as of a plugin; empty for all others."""
    status = decision.status
    return decision.message if status is not None and not status.is_rejected else ""


def _waits_for_another(row: PodRow, scheduler_name: str) -> PodRow:
    message = f'no profile for scheduler "{scheduler_name}"'
    return msgspec.structs.replace(row, outcome=results.OTHER_SCHEDULER, reason="", message=message)
