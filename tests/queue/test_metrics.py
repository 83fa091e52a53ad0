"""What the queue reports to its recorder, step by step (spec 02 §16)."""

from typing import Any

from kubestow.api.pod import Pod
from kubestow.framework.events import NODE_ADD, Action, Hint, Resource
from kubestow.framework.status import Status
from kubestow.queue import NO_METRICS
from kubestow.testing.builders import Toleration, make_node, make_pod
from kubestow.testing.clock import ManualClock


def queues(pod: Pod, old: object, new: object) -> Hint:
    return Hint.QUEUE


QUEUE_A = ("A", Resource.NODE, Action.ADD, queues)


def test_the_worked_sequence(bench: Any, clock: ManualClock) -> None:
    queue, pod, metrics = bench.queue(QUEUE_A), make_pod(), bench.metrics
    queue.add(pod)  # step 1
    assert metrics.incoming_total == {("active", "UnschedulablePodAdd"): 1}
    assert +metrics.pending == {"active": 1}

    record = queue.pop_nowait()  # step 2
    assert not +metrics.pending
    assert metrics.in_flight == {"PodPopped": 1}

    bench.fail(queue, record, "A", "B")  # step 3
    assert metrics.incoming_total["unschedulable", "ScheduleAttemptFailure"] == 1
    assert +metrics.pending == {"unschedulable": 1}
    assert metrics.unschedulable == {"A": 1, "B": 1}
    assert not +metrics.in_flight

    queue.move_all(NODE_ADD, None, make_node("n"))  # step 4
    assert metrics.incoming_total["backoff", "NodeAdd"] == 1
    assert +metrics.pending == {"backoff": 1}
    assert metrics.unschedulable == {"A": 1, "B": 1}
    assert metrics.hints == [("A", "NodeAdd", "Queue")]

    clock.advance_s(2)
    queue.flush_backoff_completed()  # step 5
    assert metrics.incoming_total["active", "BackoffComplete"] == 1
    assert +metrics.pending == {"active": 1}

    queue.pop_nowait()  # step 6
    assert not +metrics.unschedulable
    assert sum(metrics.incoming_total.values()) == 4


def test_deleting_a_pod_that_backs_off_leaves_its_rejections_counted(bench: Any) -> None:
    queue, pod = bench.queue(QUEUE_A), make_pod()
    bench.park(queue, pod, "A", "B")
    queue.move_all(NODE_ADD, None, make_node("n"))
    queue.delete(pod)
    assert not +bench.metrics.pending
    assert bench.metrics.unschedulable == {"A": 1, "B": 1}


def test_a_pod_gated_by_its_own_update_only_changes_its_gauge(bench: Any) -> None:
    is_closed = False
    queue = bench.queue(
        ("A", Resource.POD, Action.UPDATE_POD_TOLERATION, queues),
        gates=[("Gate", lambda _: Status.unresolvable("no") if is_closed else None)],
    )
    pod = make_pod()
    bench.park(queue, pod, "A")
    incoming = bench.metrics.incoming_total.copy()
    is_closed = True
    queue.update(pod, make_pod(uid=pod.metadata.uid, tolerations=[Toleration(key="x")]))
    assert +bench.metrics.pending == {"gated": 1}
    assert bench.metrics.incoming_total == incoming
    assert bench.metrics.unschedulable == {"A": 1, "Gate": 1}


def test_a_pod_gated_by_a_cluster_event_counts_as_coming_in(bench: Any) -> None:
    is_closed = False
    queue = bench.queue(
        QUEUE_A, gates=[("Gate", lambda _: Status.unresolvable("no") if is_closed else None)]
    )
    bench.park(queue, make_pod(), "A")
    is_closed = True
    queue.move_all(NODE_ADD, None, make_node("n"))
    assert +bench.metrics.pending == {"gated": 1}
    assert bench.metrics.incoming_total["unschedulable", "NodeAdd"] == 1


def test_logged_events_are_counted_until_they_are_dropped(bench: Any) -> None:
    queue = bench.queue(QUEUE_A)
    queue.add(make_pod("a"))
    queue.add(make_pod("b"))
    first, second = queue.pop_nowait(), queue.pop_nowait()
    queue.move_all(NODE_ADD, None, make_node("n"))
    assert bench.metrics.in_flight == {"PodPopped": 2, "NodeAdd": 1}
    queue.done(first.uid)
    assert (bench.metrics.flush_count, bench.metrics.in_flight["NodeAdd"]) == (0, 1)
    queue.done(second.uid)
    assert not +bench.metrics.in_flight
    assert bench.metrics.flush_count == 1


def test_a_plugin_in_both_sets_counts_once(bench: Any) -> None:
    queue = bench.queue()
    queue.add(make_pod())
    bench.fail(queue, queue.pop_nowait(), pending=["P"])
    assert bench.metrics.unschedulable == {"P": 1}


def test_a_queue_without_a_recorder_works_the_same(bench: Any) -> None:
    bench.metrics = NO_METRICS
    queue, pod = bench.queue(QUEUE_A, gates=[("Gate", lambda _: None)]), make_pod()
    bench.park(queue, pod, "A")
    queue.move_all(NODE_ADD, None, make_node("n"))
    assert queue.pop_nowait().pod is pod
