"""After any sequence of operations the queue equals a plain model of the rules.

The model keeps one list of pods per place and walks over all of them for every event; it has no
heaps, masks or groups. After each step every pod is in the place the model has it in, with the same
record, and the gauges show the real sizes. Time passes in every step, so that no two records have
the same timestamp: the order among equal pods is the heap's own (`test_heap`).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.errors import QueueError
from kubestow.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    Resource,
)
from kubestow.framework.hints import HintRegistration
from kubestow.framework.status import Status
from kubestow.queue import Place, QueuedPod, SchedulingQueue
from kubestow.testing.builders import Toleration, make_node, make_pod
from kubestow.testing.clock import ManualClock

pytestmark = pytest.mark.slow

PROFILE = "default-scheduler"
SECOND = 10**9
NAMES = ("a", "b", "c", "d")
PLUGINS = ("Fit", "Spread", "Tolerations", "Nothing")
GATES = ("First", "Second")
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
NODE_CONDITION = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_CONDITION)
EVENTS = (NODE_ADD, NODE_LABEL, NODE_CONDITION, ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE)


def node_says(plugin: str) -> Any:
    """A hint that reads its answer from the node of the event."""

    def hint(pod: Pod, old: object, new: object) -> Hint:
        assert isinstance(new, Node)
        return Hint(new.metadata.labels[plugin])

    return hint


def own_update(pod: Pod, old: object, new: object) -> Hint:
    is_own = isinstance(new, Pod) and new.metadata.uid == pod.metadata.uid
    return Hint.QUEUE if is_own else Hint.SKIP


def never(pod: Pod, old: object, new: object) -> Hint:
    return Hint.SKIP


REGISTRATIONS = [
    HintRegistration(ClusterEvent(resource, action), plugin, hint)
    for plugin, resource, action, hint in (
        ("Fit", Resource.NODE, Action.ADD, node_says("Fit")),
        ("Fit", Resource.POD, Action.DELETE, None),
        ("Spread", Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, node_says("Spread")),
        ("Spread", Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL, None),
        ("Tolerations", Resource.POD, Action.UPDATE_POD_TOLERATION, own_update),
        ("First", Resource.NODE, Action.ADD, node_says("First")),
        ("Second", Resource.POD, Action.DELETE, never),
    )
]


UNSCHEDULABLE = st.sets(st.sampled_from(PLUGINS), max_size=2)
PENDING = st.sets(st.sampled_from(PLUGINS), max_size=1)


@dataclass
class Record:
    pod: Pod
    timestamp_ns: int
    attempts: int = 0
    unschedulable_count: int = 0
    errors: int = 0
    initial_attempt_ns: int | None = None
    flush_ns: int | None = None
    unschedulable: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gating_plugin: str = ""

    @property
    def rejectors(self) -> set[str]:
        return self.unschedulable | self.pending

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0


class Model:
    """The rules of spec 02, one list per place."""

    def __init__(self, *, pop_from_backoff: bool) -> None:
        self.pop_from_backoff = pop_from_backoff
        self.now_ns = 0
        self.places: dict[Place, list[Record]] = {place: [] for place in Place}
        self.log: list[tuple[str, Any]] = []  # ("pod", uid) or ("event", (event, new))
        self.closed: dict[str, set[str]] = {gate: set() for gate in GATES}
        self.rejected: Counter[str] = Counter()

    # Where pods are

    def find(self, name: str) -> tuple[Place, Record] | None:
        for place, records in self.places.items():
            for record in records:
                if place is not Place.IN_FLIGHT and record.pod.metadata.name == name:
                    return place, record
        return None

    def flying(self, uid: str) -> Record | None:
        flying = self.places[Place.IN_FLIGHT]
        return next((record for record in flying if record.pod.metadata.uid == uid), None)

    def take(self, name: str) -> None:
        for place, records in self.places.items():
            if place is not Place.IN_FLIGHT:
                records[:] = [r for r in records if r.pod.metadata.name != name]

    def put(self, record: Record, place: Place) -> Place:
        self.take(record.pod.metadata.name)
        self.places[place].append(record)
        return place

    # Gates, backoff, verdicts

    def admits(self, record: Record) -> bool:
        for gate in sorted(GATES, key=lambda gate: gate != record.gating_plugin):
            if record.pod.metadata.name in self.closed[gate]:
                self.rejected[gate] += gate not in record.rejectors
                record.unschedulable.add(gate)
                record.gating_plugin = gate
                return False
        record.gating_plugin = ""
        return True

    def expiry_ns(self, record: Record) -> int | None:
        count = record.errors or record.unschedulable_count
        if not count:
            return None
        expiry_ns = record.timestamp_ns + min(2 ** (count - 1), 10) * SECOND
        return expiry_ns // SECOND * SECOND if self.pop_from_backoff else expiry_ns

    def is_backing_off(self, record: Record) -> bool:
        expiry_ns = self.expiry_ns(record)
        now_ns = self.now_ns // SECOND * SECOND if self.pop_from_backoff else self.now_ns
        return expiry_ns is not None and not expiry_ns < now_ns

    def is_interesting(self, event: ClusterEvent) -> bool:
        return event.is_wildcard or any(one.event.matches(event) for one in REGISTRATIONS)

    def verdict(self, record: Record, event: ClusterEvent, new: object) -> str:
        if not record.rejectors:
            return "after backoff"
        if event.is_wildcard:
            is_meant = new is None or new.metadata.uid == record.pod.metadata.uid
            return "after backoff" if is_meant else "skip"
        helped = {
            plugin
            for registered, plugin, hint in REGISTRATIONS
            if registered.matches(event)
            and plugin in record.rejectors
            and (hint is None or hint(record.pod, None, new) is Hint.QUEUE)
        }
        if helped & record.pending:
            return "immediately"
        return "after backoff" if helped else "skip"

    # Moves

    def requeue(self, record: Record, verdict: str) -> Place:
        if verdict == "skip":
            return self.park(record)
        if verdict == "after backoff" and self.is_backing_off(record):
            if self.pop_from_backoff and not self.admits(record):
                return self.park(record)
            return self.put(record, Place.BACKOFF if record.rejectors else Place.ERROR_BACKOFF)
        return self.to_active(record)

    def park(self, record: Record) -> Place:
        return self.put(record, Place.GATED if record.gating_plugin else Place.UNSCHEDULABLE)

    def to_active(self, record: Record, *, is_from_backoff: bool = False) -> Place:
        if not (is_from_backoff and self.pop_from_backoff) and not self.admits(record):
            found = self.find(record.pod.metadata.name)
            if found and found[0] in (Place.ACTIVE, Place.BACKOFF, Place.ERROR_BACKOFF):
                return found[0]
            return self.park(record)
        if record.initial_attempt_ns is None:
            record.initial_attempt_ns = self.now_ns
        return self.put(record, Place.ACTIVE)

    def log_event(self, event: ClusterEvent, new: object) -> None:
        if self.places[Place.IN_FLIGHT]:
            self.log.append(("event", (event, new)))

    def move(self, records: Iterable[Record], event: ClusterEvent, new: object) -> None:
        if not self.is_interesting(event):
            return
        for record in list(records):
            gate_events = [one.event for one in REGISTRATIONS if one.plugin == record.gating_plugin]
            is_deaf = not event.is_wildcard and not any(e.matches(event) for e in gate_events)
            if record.gating_plugin and is_deaf:
                continue
            verdict = self.verdict(record, event, new)
            if verdict != "skip":
                self.requeue(record, verdict)
        self.log_event(event, new)

    def parked(self) -> list[Record]:
        return self.places[Place.UNSCHEDULABLE] + self.places[Place.GATED]

    # Attempts

    def start(self, record: Record) -> Record | None:
        record.attempts += 1
        self.take(record.pod.metadata.name)
        if self.flying(record.pod.metadata.uid):
            return None
        self.places[Place.IN_FLIGHT].append(record)
        self.log.append(("pod", record.pod.metadata.uid))
        self.rejected.subtract(record.rejectors)
        return record

    def pop(self) -> Record | None:
        while True:
            if active := self.places[Place.ACTIVE]:
                record = min(active, key=lambda r: (-r.priority, r.timestamp_ns))
            elif self.pop_from_backoff and (backoff := self.places[Place.BACKOFF]):
                record = min(
                    backoff, key=lambda r: (self.expiry_ns(r), -r.priority, r.timestamp_ns)
                )
            else:
                return None
            if self.start(record):
                return record

    def done(self, uid: str) -> None:
        if record := self.flying(uid):
            self.places[Place.IN_FLIGHT].remove(record)
            self.log.remove(("pod", uid))
            while self.log and self.log[0][0] == "event":
                self.log.pop(0)

    def missed(self, uid: str) -> list[tuple[ClusterEvent, object]]:
        after = self.log[self.log.index(("pod", uid)) :]
        return [entry for kind, entry in after if kind == "event"]

    def fail(self, record: Record, unschedulable: set[str], pending: set[str]) -> None:
        record.unschedulable, record.pending = unschedulable | pending, set(pending)
        record.gating_plugin = ""
        if record.rejectors:
            record.unschedulable_count += 1
            record.errors = 0
        else:
            record.errors += 1
        record.timestamp_ns, record.flush_ns = self.now_ns, None
        self.rejected.update(record.rejectors)
        missed = self.missed(record.pod.metadata.uid)
        verdicts = {self.verdict(record, event, new) for event, new in missed}
        if not record.rejectors:
            verdicts = {"after backoff"}
        best = next((v for v in ("immediately", "after backoff") if v in verdicts), "skip")
        uid = record.pod.metadata.uid
        self.requeue(record, best)
        self.done(uid)

    def activate(self, pod: Pod) -> bool:
        found = self.find(pod.metadata.name)
        if found is None or found[0] is Place.ACTIVE:
            return False
        place, record = found
        if place in (Place.BACKOFF, Place.ERROR_BACKOFF):
            self.take(pod.metadata.name)
            return self.to_active(record, is_from_backoff=True) is Place.ACTIVE
        return self.to_active(record) is Place.ACTIVE


class QueueMachine(RuleBasedStateMachine):
    pop_from_backoff = True

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(1_000)
        self.model = Model(pop_from_backoff=self.pop_from_backoff)
        self.metrics = Gauges()
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=lambda queued_pod: (-queued_pod.pod_info.priority, queued_pod.timestamp_ns),
            hint_maps={PROFILE: REGISTRATIONS},
            pod_lister=lambda namespace, name: self.pods.get(name),
            pre_enqueue={PROFILE: [(gate, self.check(gate)) for gate in GATES]},
            pop_from_backoff=self.pop_from_backoff,
            metrics=self.metrics,
        )
        self.pods: dict[str, Pod] = {}  # the newest version of each pod, as the API server has it
        self.seen: dict[str, Pod] = {}  # every pod there ever was, by UID
        self.attempts: dict[str, QueuedPod] = {}
        self.tick()

    def check(self, gate: str) -> Any:
        def check(pod: Pod) -> Status | None:
            is_closed = pod.metadata.name in self.model.closed[gate]
            return Status.unresolvable("closed") if is_closed else None

        return check

    def tick(self, seconds: float = 0) -> None:
        self.clock.advance_ns(round(seconds * SECOND) + 1)
        self.model.now_ns = self.clock.now_ns()

    def newest(self, pod: Pod) -> Pod:
        self.pods[pod.metadata.name] = self.seen[pod.metadata.uid] = pod
        return pod

    # Coming and going

    @initialize(
        priorities=st.tuples(*(st.integers(0, 2) for _ in NAMES)),
        closed=st.sets(st.sampled_from(NAMES)),
    )
    def start(self, priorities: tuple[int, ...], closed: set[str]) -> None:
        self.close_gate("Second", closed)
        for name, priority in zip(NAMES, priorities, strict=True):
            self.create(name, priority)

    @rule(name=st.sampled_from(NAMES), priority=st.integers(0, 2))
    def create(self, name: str, priority: int) -> None:
        self.add(self.newest(make_pod(name, priority=priority)))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def add_again(self, data: st.DataObject) -> None:
        self.add(self.pods[data.draw(st.sampled_from(sorted(self.pods)))])

    def add(self, pod: Pod) -> None:
        self.tick()
        self.queue.add(pod)
        self.model.to_active(Record(pod, self.model.now_ns))

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), kinds=st.sets(st.sampled_from(("label", "toleration", "priority"))))
    def update(self, data: st.DataObject, kinds: set[str]) -> None:
        self.tick()
        old = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        new = self.newest(changed(old, kinds))
        self.queue.update(old, new)
        events = [
            ClusterEvent(Resource.UNSCHEDULABLE_POD, action)
            for kind, action in (
                ("label", Action.UPDATE_POD_LABEL),
                ("toleration", Action.UPDATE_POD_TOLERATION),
            )
            if kind in kinds
        ] or [ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)]
        if self.model.flying(new.metadata.uid):
            for event in events:
                self.model.log_event(event, new)
            return
        found = self.model.find(new.metadata.name)
        if found is None:
            self.model.to_active(Record(new, self.model.now_ns))
            return
        place, record = found
        record.pod = new
        if place in (Place.UNSCHEDULABLE, Place.GATED):
            for event in events:
                place = self.model.requeue(record, self.model.verdict(record, event, new))
                if place not in (Place.UNSCHEDULABLE, Place.GATED):
                    break

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        pod = self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))
        self.queue.delete(pod)
        found = self.model.find(pod.metadata.name)
        self.model.take(pod.metadata.name)
        if found and found[0] in (Place.UNSCHEDULABLE, Place.GATED):
            self.model.rejected.subtract(found[1].rejectors)

    # Attempts

    @rule()
    def pop(self) -> None:
        popped, expected = self.queue.pop_nowait(), self.model.pop()
        assert (popped is None) == (expected is None)
        if popped is not None and expected is not None:
            assert popped.pod is expected.pod
            self.attempts[popped.uid] = popped

    @rule(unschedulable=UNSCHEDULABLE, pending=PENDING)
    def pop_and_fail(self, unschedulable: set[str], pending: set[str]) -> None:
        before = set(self.attempts)
        self.pop()
        for uid in set(self.attempts) - before:
            self.fail_one(uid, unschedulable, pending)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), unschedulable=UNSCHEDULABLE, pending=PENDING)
    def fail(self, data: st.DataObject, unschedulable: set[str], pending: set[str]) -> None:
        uid = data.draw(st.sampled_from(sorted(self.attempts)))
        self.fail_one(uid, unschedulable, pending)

    def fail_one(self, uid: str, unschedulable: set[str], pending: set[str]) -> None:
        self.tick()
        popped = self.attempts.pop(uid)
        record = self.model.flying(uid)
        assert record is not None
        newest = self.pods.get(popped.pod.metadata.name)
        if newest is None or newest.metadata.uid != uid:
            self.queue.done(uid)
            self.model.done(uid)
            return
        popped.pod_info.update(newest)
        record.pod = newest
        popped.reject(unschedulable=unschedulable | pending, pending=pending)
        if self.model.find(newest.metadata.name):
            with pytest.raises(QueueError, match="is already present in"):
                self.queue.add_unschedulable_if_not_present(popped)
            self.model.done(uid)
            return
        self.queue.add_unschedulable_if_not_present(popped)
        self.model.fail(record, unschedulable, pending)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.attempts)))
        del self.attempts[uid]
        for _ in range(2):
            self.queue.done(uid)
            self.model.done(uid)

    # Moves

    @rule(
        event=st.sampled_from(EVENTS),
        answers=st.fixed_dictionaries(
            {name: st.sampled_from(("Queue", "QueueSkip")) for name in (*PLUGINS, *GATES)}
        ),
        limit=st.sampled_from((0, 2, 2, 2)),
    )
    def cluster_event(self, event: ClusterEvent, answers: dict[str, str], limit: int) -> None:
        self.tick()
        new = make_node("n", labels=answers) if event.resource == Resource.NODE else None
        self.queue.move_all(event, None, new, lambda pod: (pod.spec.priority or 0) <= limit)
        parked = [record for record in self.model.parked() if record.priority <= limit]
        self.model.move(parked, event, new)

    @rule(names=st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
    def activate(self, names: list[str]) -> None:
        self.tick()
        pods = [self.pods.get(name) or make_pod(name) for name in names]
        self.queue.activate(pods)
        for pod in pods:
            if not self.model.activate(pod) and self.model.flying(pod.metadata.uid):
                self.model.log_event(FORCE_ACTIVATE, pod)

    @rule(gate=st.sampled_from(GATES), names=st.sets(st.sampled_from(NAMES)))
    def close_gate(self, gate: str, names: set[str]) -> None:
        self.model.closed[gate] = names

    @rule(gate=st.sampled_from(GATES))
    def open_gate(self, gate: str) -> None:
        self.model.closed[gate] = set()

    @rule(seconds=st.sampled_from((0.3, 5, 200)))
    def time_passes(self, seconds: float) -> None:
        self.tick(seconds)

    @rule(seconds=st.sampled_from((0, 0.3, 1, 2, 11)))
    def flush_backoff(self, seconds: float) -> None:
        self.tick(seconds)
        self.queue.flush_backoff_completed()
        for place in (Place.BACKOFF, Place.ERROR_BACKOFF):
            for record in list(self.model.places[place]):
                if not self.model.is_backing_off(record):
                    self.model.take(record.pod.metadata.name)
                    self.model.to_active(record, is_from_backoff=True)

    @rule(seconds=st.sampled_from((0, 200, 301)))
    def flush_leftover(self, seconds: int) -> None:
        self.tick(seconds)
        self.queue.flush_unschedulable_leftover()
        old = [
            record
            for record in self.model.parked()
            if self.model.now_ns - max(record.timestamp_ns, record.flush_ns or 0) > 300 * SECOND
        ]
        for record in old:
            record.flush_ns = self.model.now_ns
        if old:
            self.model.move(old, UNSCHEDULABLE_TIMEOUT, None)

    # What holds after every step

    @invariant()
    def every_pod_is_where_the_model_has_it(self) -> None:
        for pod in self.seen.values():
            found = self.model.find(pod.metadata.name)
            place = found[0] if found else None
            if place is None and self.model.flying(pod.metadata.uid):
                place = Place.IN_FLIGHT
            assert self.queue.place_of(pod) is place

    @invariant()
    def every_record_is_as_the_model_has_it(self) -> None:
        for place, records in self.model.places.items():
            for record in records:
                meta = record.pod.metadata
                if place is Place.IN_FLIGHT:
                    queued_pod = self.attempts[meta.uid]
                else:
                    queued_pod = self.queue.get_pod(meta.name, meta.namespace)
                    assert queued_pod is not None
                    assert queued_pod.pod is record.pod
                assert (
                    queued_pod.timestamp_ns,
                    queued_pod.attempts,
                    queued_pod.unschedulable_count,
                    queued_pod.consecutive_errors_count,
                    queued_pod.initial_attempt_ns,
                    queued_pod.flush_timestamp_ns,
                    queued_pod.unschedulable_plugins,
                    queued_pod.pending_plugins,
                    queued_pod.gating_plugin,
                ) == (
                    record.timestamp_ns,
                    record.attempts,
                    record.unschedulable_count,
                    record.errors,
                    record.initial_attempt_ns,
                    record.flush_ns,
                    record.unschedulable,
                    record.pending,
                    record.gating_plugin,
                )

    @invariant()
    def counts_and_gauges_are_the_real_sizes(self) -> None:
        sizes = {place: len(records) for place, records in self.model.places.items()}
        statistics = self.queue.statistics()
        assert (
            statistics.active,
            statistics.backoff,
            statistics.error_backoff,
            statistics.unschedulable,
            statistics.gated,
            statistics.in_flight,
        ) == tuple(sizes[place] for place in Place)
        assert +self.metrics.pending == +Counter(
            active=sizes[Place.ACTIVE],
            backoff=sizes[Place.BACKOFF] + sizes[Place.ERROR_BACKOFF],
            unschedulable=sizes[Place.UNSCHEDULABLE],
            gated=sizes[Place.GATED],
        )
        assert len(self.queue.pending_pods()[0]) == sum(sizes.values()) - sizes[Place.IN_FLIGHT]
        logged = Counter(entry[0].label for kind, entry in self.model.log if kind == "event")
        assert statistics.in_flight_events == logged.total()
        assert +self.metrics.in_flight == +(logged + Counter(PodPopped=sizes[Place.IN_FLIGHT]))
        assert dict(+self.metrics.rejected) == dict(+self.model.rejected)


class GateOffMachine(QueueMachine):
    pop_from_backoff = False


class Gauges:
    """Keeps the gauges."""

    def __init__(self) -> None:
        self.pending: Counter[str] = Counter()
        self.in_flight: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()

    def pending_changed(self, queue: str, delta: int) -> None:
        self.pending[queue] += delta

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None:
        self.in_flight[event] += delta

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None:
        self.rejected[plugin] += delta

    def samples_plugins(self) -> bool:
        return True

    def incoming(self, *_: object) -> None: ...

    def hint_executed(self, *_: object) -> None: ...

    def pre_enqueue_passed(self, *_: object) -> None: ...

    def pre_enqueue_executed(self, *_: object) -> None: ...

    def event_narrowed(self, *_: object, to_all: bool) -> None: ...


def changed(pod: Pod, kinds: set[str]) -> Pod:
    """A newer version of the pod that differs in these things."""
    spec, meta = pod.spec, pod.metadata
    if "label" in kinds:
        labels = {"version": str(int(meta.labels.get("version", "0")) + 1)}
        meta = msgspec.structs.replace(meta, labels=labels)
    if "toleration" in kinds:
        tolerations = (*spec.tolerations, Toleration(operator="Exists"))
        spec = msgspec.structs.replace(spec, tolerations=tolerations)
    if "priority" in kinds:
        spec = msgspec.structs.replace(spec, priority=((spec.priority or 0) + 1) % 3)
    return msgspec.structs.replace(pod, metadata=meta, spec=spec)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(stateful_step_count=60)
TestQueueWithoutPopFromBackoff = GateOffMachine.TestCase
TestQueueWithoutPopFromBackoff.settings = settings(stateful_step_count=60)
