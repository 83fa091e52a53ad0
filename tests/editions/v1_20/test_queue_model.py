"""The queue of v1.20 agrees with a slow reading of spec 02 §19.1, whatever is done to it.

The reading has one list of records with their places, and no heaps, timers or keys.
"""

from typing import Any, Literal, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod
from kubestow.clock import NANOSECONDS
from kubestow.editions.v1_20.queue import SchedulingQueue120
from kubestow.errors import QueueError
from kubestow.framework.events import ASSIGNED_POD_ADD, NODE_ADD
from kubestow.queue import Place, QueuedPod
from kubestow.testing import make_node, make_pod
from kubestow.testing.clock import ManualClock
from kubestow.testing.topology import make_affinity, make_pod_term

NAMES = ("a", "b", "c")
# Pods a and b wait for a pod of the web; c is more important than the others.
PODS = {
    name: make_pod(
        name,
        priority=10 if name == "c" else 0,
        affinity=make_affinity(near=[make_pod_term("zone", "app=web")]) if name in "ab" else None,
    )
    for name in NAMES
}
WEB = make_pod("web", labels={"app": "web"}, node="n")

Step = tuple[str, str, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            # Most often what leads a pod through all places.
            ["add", "status", "spec", "delete", "affinity", *(2 * ["pop", "move", "flush", "fail"])]
        ),
        st.sampled_from(NAMES),
        st.sampled_from((0.0, 0.0, 0.5, 1.0, 31.0)),
    ),
    min_size=20,
    max_size=60,
)

Where = Literal["active", "backoff", "parked"]


class Record:
    def __init__(self, pod: Pod, now_s: float, sequence: int) -> None:
        self.pod = pod
        self.since_s = now_s
        self.attempts = 0
        self.sequence = sequence
        self.place: Where = "active"

    @property
    def expiry_s(self) -> float:
        if not self.attempts:
            return self.since_s
        return self.since_s + min(2 ** (self.attempts - 1), 10)


class Reading:
    """The specification, read slowly."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.popped: dict[str, tuple[Record, int]] = {}
        self.cycle = 0
        self.move_cycle = -1
        self.now_s = 0.0
        self._sequence = 0

    def add(self, pod: Pod) -> None:
        self._sequence += 1
        self.records[pod.metadata.name] = Record(pod, self.now_s, self._sequence)

    def pop(self) -> str | None:
        active = [record for record in self.records.values() if record.place == "active"]
        if not active:
            return None
        best = min(
            active, key=lambda one: (-(one.pod.spec.priority or 0), one.since_s, one.sequence)
        )
        name = best.pod.metadata.name
        del self.records[name]
        best.attempts += 1
        self.cycle += 1
        self.popped[name] = best, self.cycle
        return name

    def fail(self, name: str) -> bool:
        """False if the pod was added again meanwhile."""
        record, _ = self.popped.pop(name)
        queued = self.records.get(name)
        if queued is not None and queued.place == "parked":
            return False
        record.since_s = self.now_s
        if queued is not None:
            return False
        record.place = "backoff" if self.move_cycle >= self.cycle else "parked"
        self._sequence += 1
        record.sequence = self._sequence
        self.records[name] = record
        return True

    def update(self, pod: Pod, *, is_spec: bool) -> None:
        record = self.records.get(pod.metadata.name)
        if record is None:
            self.add(pod)
            return
        record.pod = pod
        if record.place == "backoff" or (record.place == "parked" and is_spec):
            self._activate(record)

    def move(self, *, web_only: bool) -> None:
        for record in self.records.values():
            waits_for_web = record.pod.spec.affinity is not None
            if record.place == "parked" and (waits_for_web or not web_only):
                self._release(record)
        self.move_cycle = self.cycle

    def flush(self) -> None:
        due = [record for record in self.records.values() if record.place == "backoff"]
        for record in sorted(due, key=lambda one: (one.expiry_s, one.sequence)):
            if record.expiry_s <= self.now_s:
                self._activate(record)
        stale = [
            record
            for record in self.records.values()
            if record.place == "parked" and self.now_s - record.since_s > 60
        ]
        for record in stale:
            self._release(record)
        if stale:
            self.move_cycle = self.cycle

    def _release(self, record: Record) -> None:
        if record.expiry_s > self.now_s:
            record.place = "backoff"
        else:
            self._activate(record)

    def _activate(self, record: Record) -> None:
        record.place = "active"
        self._sequence += 1
        record.sequence = self._sequence


class Both(NamedTuple):
    reading: Reading
    queue: SchedulingQueue120
    clock: ManualClock
    popped: dict[str, QueuedPod]


@settings(max_examples=150)
@given(STEPS)
def test_the_queue_agrees_with_the_reading(steps: list[Step]) -> None:
    clock = ManualClock()
    queue = SchedulingQueue120(
        clock=clock,
        sort_key=lambda queued_pod: (-queued_pod.pod_info.priority, queued_pod.timestamp_ns),
        pod_lister=lambda _, name: PODS.get(name),
    )
    both = Both(Reading(), queue, clock, {})
    both.reading.now_s = clock.now_ns() / NANOSECONDS
    for operation, name, seconds in steps:
        # No two steps at the same instant: which of two pods comes first would be left to the heap.
        both.clock.set_s(both.clock.now_ns() / NANOSECONDS + (seconds or 0.125))
        both.reading.now_s = both.clock.now_ns() / NANOSECONDS
        _apply(both, operation, name)
        _compare(both)


def _apply(both: Both, operation: str, name: str) -> None:
    reading, queue, pod = both.reading, both.queue, PODS[name]
    match operation:
        case "add":
            reading.add(pod)
            queue.add(pod)
        case "pop":
            found = queue.pop_nowait()
            assert (None if found is None else found.pod.metadata.name) == reading.pop()
            if found is not None:
                both.popped[found.pod.metadata.name] = found
        case "fail":
            if name in reading.popped:
                _fail(both, name)
        case "status" | "spec":
            new = _changed(pod, operation)
            reading.update(new, is_spec=operation == "spec")
            queue.update(pod, new)
        case "delete":
            reading.records.pop(name, None)
            queue.delete(pod)
        case "move":
            reading.move(web_only=False)
            queue.move_all(NODE_ADD, None, make_node("n"))
        case "affinity":
            reading.move(web_only=True)
            queue.move_all(ASSIGNED_POD_ADD, None, WEB)
        case _:
            reading.flush()
            queue.flush_backoff_completed()
            queue.flush_unschedulable_leftover()


def _fail(both: Both, name: str) -> None:
    is_taken = both.reading.fail(name)
    try:
        both.queue.add_unschedulable_if_not_present(both.popped.pop(name))
    except QueueError:
        assert not is_taken
    else:
        assert is_taken


def _changed(pod: Pod, part: str) -> Pod:
    if part == "spec":
        metadata = msgspec.structs.replace(pod.metadata, annotations={"changed": "yes"})
        return msgspec.structs.replace(pod, metadata=metadata)
    conditions = (Condition(type="PodScheduled", status="False"),)
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, conditions=conditions)
    )


_PLACES: dict[Any, str] = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.UNSCHEDULABLE: "parked",
}


def _compare(both: Both) -> None:
    places = {
        name: _PLACES[place]
        for name in NAMES
        if (place := both.queue.place_of(PODS[name])) is not None
    }
    assert places == {name: record.place for name, record in both.reading.records.items()}
