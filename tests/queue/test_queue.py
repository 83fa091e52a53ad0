"""Every operation of the queue, place by place (spec 02 §5, §9, §12, §13)."""

import asyncio
from typing import Any

import msgspec
import pytest

from kubestow.api.pod import Pod, PodSchedulingGroup
from kubestow.clock import NANOSECONDS
from kubestow.errors import QueueError
from kubestow.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    ClusterEvent,
    Hint,
    HintFunction,
    Resource,
)
from kubestow.framework.hints import HintRegistration
from kubestow.framework.status import Status
from kubestow.queue import Place, SchedulingQueue
from kubestow.testing.builders import Toleration, make_node, make_pod
from kubestow.testing.clock import ManualClock
from kubestow.testing.clock import nanoseconds as ns

Registration = tuple[str, str, Action, HintFunction | None]
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)


def queues(pod: Pod, old: object, new: object) -> Hint:
    return Hint.QUEUE


def never(pod: Pod, old: object, new: object) -> Hint:
    return Hint.SKIP


def own_update(pod: Pod, old: object, new: object) -> Hint:
    is_own = isinstance(new, Pod) and new.metadata.uid == pod.metadata.uid
    return Hint.QUEUE if is_own else Hint.SKIP


FIT: Registration = ("Fit", Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, queues)
AFFINITY: Registration = ("Affinity", Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, queues)
TAINTS: Registration = ("Taints", Resource.POD, Action.UPDATE_POD_TOLERATION, own_update)
GATE: Registration = (
    "SchedulingGates",
    Resource.POD,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    own_update,
)


def check_gates(pod: Pod) -> Status | None:
    gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    return Status.unresolvable(f"waiting for scheduling gates: [{gates}]") if gates else None


GATES = [("SchedulingGates", check_gates)]


def changed(pod: Pod, **spec: Any) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **spec))


def nominated(pod: Pod, node_name: str) -> Pod:
    status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
    return msgspec.structs.replace(pod, status=status)


def member(name: str, priority: int | None = None, *gates: str) -> Pod:
    group = PodSchedulingGroup(pod_group_name="g")
    return changed(make_pod(name, priority=priority, gates=gates), scheduling_group=group)


class TestAdd:
    def test_a_new_pod_is_active_and_stamped(self, bench: Any, clock: ManualClock) -> None:
        queue, pod = bench.queue(), make_pod()
        clock.set_s(5)
        queue.add(pod)
        record = queue.get_pod("p", "default")
        assert queue.place_of(pod) is Place.ACTIVE
        assert (record.timestamp_ns, record.initial_attempt_ns, record.attempts) == (
            ns(5),
            ns(5),
            0,
        )

    def test_a_gated_pod_is_parked_without_a_first_attempt(self, bench: Any) -> None:  # Q5-1
        queue, pod = bench.queue(GATE, gates=GATES), make_pod(gates=["g1", "g2"])
        queue.add(pod)
        record = queue.get_pod("p", "default")
        assert queue.place_of(pod) is Place.GATED
        assert record.gating_plugin == "SchedulingGates"
        assert record.unschedulable_plugins == {"SchedulingGates"}
        assert (record.attempts, record.initial_attempt_ns) == (0, None)
        assert bench.metrics.pending == {"gated": 1}
        assert bench.metrics.incoming_total == {("unschedulable", "UnschedulablePodAdd"): 1}
        assert bench.metrics.unschedulable == {"SchedulingGates": 1}

    def test_adding_again_replaces_the_record_wherever_it_is(self, bench: Any) -> None:
        queue, pod = bench.queue(FIT), make_pod()
        for place in (Place.ACTIVE, Place.UNSCHEDULABLE, Place.BACKOFF, Place.ERROR_BACKOFF):
            queue.delete(pod)
            if place is Place.ACTIVE:
                queue.add(pod)
            else:
                bench.park(queue, pod, *([] if place is Place.ERROR_BACKOFF else ["Fit"]))
            if place is Place.BACKOFF:
                queue.move_all(NODE_ADD, None, make_node("n"))
            assert queue.place_of(pod) is place
            before = queue.get_pod("p", "default")
            queue.add(pod)
            assert queue.place_of(pod) is Place.ACTIVE
            assert queue.get_pod("p", "default") is not before
            assert queue.statistics().active == 1
            assert len(queue.pending_pods()[0]) == 1

    @pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF])
    def test_a_refused_newcomer_does_not_replace_a_record_on_its_way(
        self, bench: Any, place: Place
    ) -> None:
        queue, pod = bench.queue(FIT, gates=GATES), make_pod()
        if place is Place.ACTIVE:
            queue.add(pod)
        else:
            bench.park(queue, pod, "Fit")
            queue.move_all(NODE_ADD, None, make_node("n"))
        before = queue.get_pod("p", "default")
        queue.add(make_pod(gates=["g"]))
        assert queue.place_of(pod) is place
        assert queue.get_pod("p", "default") is before

    def test_a_refused_newcomer_replaces_a_parked_record(self, bench: Any) -> None:
        queue = bench.queue(gates=GATES)
        bench.park(queue, make_pod(), "Fit")
        gated = make_pod(gates=["g"])
        queue.add(gated)
        assert queue.place_of(gated) is Place.GATED
        assert queue.pods_in_unschedulable() == [gated]
        assert +bench.metrics.pending == {"gated": 1}

    def test_a_pod_in_flight_can_be_added_and_is_dropped_when_popped(
        self, bench: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue, pod = bench.queue(), make_pod()
        queue.add(pod)
        first = queue.pop_nowait()
        queue.add(pod)
        assert queue.place_of(pod) is Place.ACTIVE
        again = queue.get_pod("p", "default")
        assert queue.pop_nowait() is None
        assert again.attempts == 1
        assert (
            "the same pod is tracked in multiple places in the scheduler: default/p" in caplog.text
        )
        assert queue.statistics().in_flight == 1
        queue.done(first.uid)
        assert queue.place_of(pod) is None

    def test_a_nomination_in_the_status_is_registered(self, bench: Any) -> None:
        queue = bench.queue()
        queue.add(make_pod(nominated_node="n1"))
        (info,) = queue.nominator.nominated_pods_for_node("n1")
        assert info is queue.get_pod("p", "default").pod_info


class TestPop:
    def test_popping_starts_an_attempt(self, bench: Any) -> None:  # Q9-1
        queue, pod = bench.queue(), make_pod()
        queue.add(pod)
        record = queue.pop_nowait()
        assert record.attempts == 1
        assert queue.place_of(pod) is Place.IN_FLIGHT
        assert queue.pop_nowait() is None

    def test_a_rejected_pod_is_popped_early_when_nothing_is_active(
        self, bench: Any, clock: ManualClock
    ) -> None:  # Q9-2
        queue, pod = bench.queue(AFFINITY), make_pod()
        clock.set_s(6.4)
        record = bench.park(queue, pod, "Affinity")
        assert (record.unschedulable_count, record.timestamp_ns) == (1, ns(6.4))
        clock.set_s(6.9)
        queue.move_all(NODE_LABEL, make_node("n"), make_node("n", labels={"a": "b"}))
        assert queue.place_of(pod) is Place.BACKOFF
        assert record.backoff_expiry_ns == ns(7)
        clock.set_s(6.95)
        assert queue.pop_nowait() is record
        assert bench.metrics.incoming_total["active", "PopFromBackoffQ"] == 1

    def test_an_active_pod_goes_before_one_that_backs_off(self, bench: Any) -> None:
        queue = bench.queue(FIT)
        bench.park(queue, make_pod("urgent", priority=100), "Fit")
        queue.move_all(NODE_ADD, None, make_node("n"))
        queue.add(make_pod("usual"))
        assert queue.pop_nowait().pod_info.name == "usual"
        assert queue.pop_nowait().pod_info.name == "urgent"

    def test_without_the_gate_no_pod_is_popped_early(self, bench: Any) -> None:
        queue = bench.queue(FIT, pop_from_backoff=False)
        bench.park(queue, make_pod(), "Fit")
        queue.move_all(NODE_ADD, None, make_node("n"))
        assert queue.statistics().backoff == 1
        assert queue.pop_nowait() is None

    def test_a_pod_that_hit_an_error_waits_for_the_end_of_its_backoff(
        self, bench: Any, clock: ManualClock
    ) -> None:  # Q9-4
        queue, pod = bench.queue(), make_pod()
        clock.set_s(20.3)
        record = bench.park(queue, pod)
        assert queue.place_of(pod) is Place.ERROR_BACKOFF
        assert record.consecutive_errors_count == 1
        assert record.backoff_expiry_ns == ns(21)
        assert queue.pop_nowait() is None
        clock.set_s(21)
        queue.flush_backoff_completed()
        assert queue.place_of(pod) is Place.ERROR_BACKOFF
        clock.set_s(22)
        queue.flush_backoff_completed()
        assert queue.pop_nowait() is record
        bench.fail(queue, record)
        assert record.backoff_expiry_ns == ns(24)


class TestWaitingPop:
    def test_it_waits_until_a_pod_is_there(self, bench: Any) -> None:
        async def scenario() -> None:
            queue, pod = bench.queue(), make_pod()
            popping = asyncio.ensure_future(queue.pop())
            await asyncio.sleep(0)
            assert not popping.done()
            queue.add(pod)
            assert (await popping).pod is pod

        asyncio.run(scenario())

    def test_it_gets_the_best_of_all_pods_of_a_move(self, bench: Any, clock: ManualClock) -> None:
        async def scenario() -> None:
            queue = bench.queue(FIT)
            for priority in (1, 9, 5):
                bench.park(queue, make_pod(f"p{priority}", priority=priority), "Fit")
            clock.advance_s(60)
            popping = [asyncio.ensure_future(queue.pop()) for _ in range(3)]
            await asyncio.sleep(0)
            queue.move_all(NODE_ADD, None, make_node("n"))
            records = await asyncio.gather(*popping)
            assert [record.pod_info.priority for record in records] == [9, 5, 1]

        asyncio.run(scenario())

    @pytest.mark.parametrize("wake", ["failure", "move", "own update"])
    def test_a_pod_that_starts_to_back_off_ends_the_wait(self, bench: Any, wake: str) -> None:
        async def scenario() -> None:
            queue, pod = bench.queue(FIT, TAINTS), make_pod()
            queue.add(pod)
            record = queue.pop_nowait()
            popping = asyncio.ensure_future(queue.pop())
            await asyncio.sleep(0)
            if wake == "failure":
                queue.move_all(NODE_ADD, None, make_node("n"))
                bench.fail(queue, record, "Fit")
            elif wake == "move":
                bench.fail(queue, record, "Fit")
                queue.move_all(NODE_ADD, None, make_node("n"))
            else:
                bench.fail(queue, record, "Taints")
                queue.update(pod, changed(pod, tolerations=(Toleration(operator="Exists"),)))
            assert await popping is record

        asyncio.run(scenario())

    def test_a_cancelled_wait_loses_no_pod(self, bench: Any) -> None:
        async def scenario() -> None:
            queue, pod = bench.queue(), make_pod()
            cancelled, popping = (asyncio.ensure_future(queue.pop()) for _ in range(2))
            await asyncio.sleep(0)
            queue.add(pod)
            cancelled.cancel()
            assert (await popping).pod is pod

        asyncio.run(scenario())

    def test_a_closed_queue_gives_what_is_left_and_then_nothing(self, bench: Any) -> None:
        async def scenario() -> None:
            queue = bench.queue(FIT)
            bench.park(queue, make_pod("backs-off"), "Fit")
            queue.move_all(NODE_ADD, None, make_node("n"))
            bench.park(queue, make_pod("parked"), "Fit")
            queue.add(make_pod("active"))
            queue.close()
            assert (await queue.pop()).pod_info.name == "active"
            assert (await queue.pop()).pod_info.name == "backs-off"
            assert await queue.pop() is None
            assert queue.statistics().unschedulable == 1

        asyncio.run(scenario())

    def test_closing_ends_waiting_pops(self, bench: Any) -> None:
        async def scenario() -> None:
            queue = bench.queue()
            popping = [asyncio.ensure_future(queue.pop()) for _ in range(2)]
            await asyncio.sleep(0)
            queue.close()
            assert await asyncio.gather(*popping) == [None, None]

        asyncio.run(scenario())


class TestFailure:
    def test_a_pod_without_events_is_parked(self, bench: Any) -> None:  # Q9-1
        queue, pod = bench.queue(AFFINITY), make_pod()
        bench.park(queue, pod, "Affinity")
        assert queue.place_of(pod) is Place.UNSCHEDULABLE
        assert queue.statistics().in_flight == 0

    @pytest.mark.parametrize(
        ("plugins", "pending", "event", "place"),
        [
            pytest.param([], [], NODE_ADD, Place.ERROR_BACKOFF, id="no-rejectors"),
            pytest.param(["Fit"], [], NODE_ADD, Place.BACKOFF, id="relevant"),
            pytest.param(["Fit"], [], NODE_LABEL, Place.UNSCHEDULABLE, id="of-no-help"),
            pytest.param(["Fit"], ["Affinity"], NODE_LABEL, Place.ACTIVE, id="pending"),
        ],
    )
    def test_events_during_the_attempt_decide(
        self, bench: Any, plugins: list[str], pending: list[str], event: ClusterEvent, place: Place
    ) -> None:
        queue, pod = bench.queue(FIT, AFFINITY), make_pod()
        queue.add(pod)
        record = queue.pop_nowait()
        queue.move_all(event, None, make_node("n"))
        bench.fail(queue, record, *plugins, pending=pending)
        assert queue.place_of(pod) is place
        assert queue.statistics().in_flight == queue.statistics().in_flight_events == 0

    def test_the_record_gets_new_timestamps(self, bench: Any, clock: ManualClock) -> None:
        queue = bench.queue()
        record = bench.park(queue, make_pod(), "Fit")
        record.was_flushed_from_unschedulable = True
        record.flush_timestamp_ns = record.backoff_expiry_ns = 7
        clock.advance_s(60)
        queue.activate([record.pod])
        bench.fail(queue, queue.pop_nowait(), "Fit")
        assert record.timestamp_ns == clock.now_ns()
        assert record.backoff_expiry_ns is None
        assert record.flush_timestamp_ns is None
        assert not record.was_flushed_from_unschedulable

    def test_counts_of_rejections_and_of_errors(self, bench: Any) -> None:  # Q4-5, Q4-6
        queue = bench.queue()
        record = bench.park(queue, make_pod(), "Fit")
        for plugins, counts in [([], (1, 1)), ([], (1, 2)), (["Fit"], (2, 0)), ([], (2, 1))]:
            queue.activate([record.pod])
            bench.fail(queue, queue.pop_nowait(), *plugins)
            assert (record.unschedulable_count, record.consecutive_errors_count) == counts

    @pytest.mark.parametrize(
        ("place", "text"),
        [
            (Place.ACTIVE, "Pod default/p is already present in the active queue"),
            (Place.BACKOFF, "Pod default/p is already present in the backoff queue"),
            (Place.UNSCHEDULABLE, "Pod default/p is already present in unschedulable queue"),
        ],
    )
    def test_a_pod_that_is_back_already_is_refused_and_done(
        self, bench: Any, place: Place, text: str
    ) -> None:  # Q9-7
        queue, pod = bench.queue(FIT), make_pod()
        if place is Place.ACTIVE:
            queue.add(pod)
            record = queue.pop_nowait()
            queue.add(pod)
        else:
            record = bench.park(queue, pod, "Fit")
            if place is Place.BACKOFF:
                queue.move_all(NODE_ADD, None, make_node("n"))
        before = (record.timestamp_ns, record.unschedulable_count)
        bench.clock.advance_s(1)
        record.reject(unschedulable=["Fit"])
        with pytest.raises(QueueError, match=f"^{text}$"):
            queue.add_unschedulable_if_not_present(record)
        assert (record.timestamp_ns, record.unschedulable_count) == before
        assert queue.place_of(pod) is place
        if place is Place.ACTIVE:
            assert queue.pop_nowait() is not None

    def test_without_an_entry_in_flight_the_pod_is_tried_after_backoff(
        self, bench: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue, pod = bench.queue(FIT), make_pod()
        queue.add(pod)
        record = queue.pop_nowait()
        queue.done(record.uid)
        bench.fail(queue, record, "Fit")
        assert queue.place_of(pod) is Place.BACKOFF
        assert "is not in flight" in caplog.text

    def test_a_rejected_pod_of_an_empty_cluster_is_not_moved_by_nodes(self, bench: Any) -> None:
        queue, pod = bench.queue(FIT), make_pod()  # Q9-8
        bench.park(queue, pod)
        queue.move_all(NODE_ADD, None, make_node("n"))
        assert queue.place_of(pod) is Place.ERROR_BACKOFF

    def test_a_gate_may_keep_a_failed_pod_out_of_backoff(self, bench: Any) -> None:
        queue, pod = bench.queue(FIT, gates=GATES), make_pod()
        queue.add(pod)
        record = queue.pop_nowait()
        record.pod_info.update(make_pod(uid=record.uid, gates=["g"]))
        bench.fail(queue, record)
        assert queue.place_of(pod) is Place.GATED
        assert record.unschedulable_plugins == {"SchedulingGates"}


class TestUpdate:
    def test_in_the_active_queue_the_pod_is_swapped_and_moved(self, bench: Any) -> None:
        queue, pod = bench.queue(), make_pod("a")
        queue.add(make_pod("b", priority=5))
        queue.add(pod)
        record = queue.get_pod("a", "default")
        bench.clock.advance_s(3)
        incoming = bench.metrics.incoming_total.copy()
        queue.update(pod, nominated(changed(pod, priority=9), "n1"))
        assert queue.pods_in_active()[0] is record.pod
        assert record.pod_info.priority == 9
        assert record.timestamp_ns == ns(1_000)
        assert queue.nominator.nominated_nodes() == ["n1"]
        assert bench.metrics.incoming_total == incoming

    @pytest.mark.parametrize("plugins", [["Fit"], []])
    def test_while_backing_off_the_pod_is_swapped_and_stays(
        self, bench: Any, plugins: list[str]
    ) -> None:
        queue, pod = bench.queue(FIT, gates=GATES), make_pod()
        record = bench.park(queue, pod, *plugins)
        queue.move_all(NODE_ADD, None, make_node("n"))
        place, expiry_ns = queue.place_of(pod), record.backoff_expiry_ns
        queue.update(pod, changed(pod, priority=9, scheduling_gates=("g",)))
        assert queue.place_of(pod) is place
        assert (record.pod_info.priority, record.backoff_expiry_ns) == (9, expiry_ns)

    def test_in_flight_every_kind_of_change_is_logged(self, bench: Any) -> None:  # Q10-4
        queue = bench.queue(("Spread", Resource.POD, Action.UPDATE_POD_LABEL, own_update))
        pod = make_pod()
        queue.add(pod)
        record = queue.pop_nowait()
        newer = make_pod(uid=record.uid, labels={"a": "b"}, tolerations=[Toleration(key="x")])
        queue.update(pod, newer)
        assert record.pod is pod
        assert queue.statistics().in_flight_events == 2
        bench.fail(queue, record, "Spread")
        assert queue.place_of(pod) is Place.BACKOFF
        assert queue.statistics().in_flight_events == 0

    def test_a_parked_pod_is_moved_by_the_first_change_that_helps(self, bench: Any) -> None:
        queue, pod = bench.queue(TAINTS), make_pod()  # Q9-5
        record = bench.park(queue, pod, "Taints")
        newer = make_pod(uid=record.uid, labels={"a": "b"}, tolerations=[Toleration(key="x")])
        queue.update(pod, newer)
        assert queue.place_of(pod) is Place.BACKOFF
        assert record.pod is newer
        label = "UnschedulablePodUpdatePodToleration"
        assert bench.metrics.incoming_total["backoff", label] == 1

    def test_the_schedulers_own_patch_only_refreshes_the_pod(self, bench: Any) -> None:  # Q9-6
        queue, pod = bench.queue(FIT), make_pod()
        record = bench.park(queue, pod, "Fit")
        newer = nominated(pod, "n1")
        queue.update(pod, newer)
        assert queue.place_of(pod) is Place.UNSCHEDULABLE
        assert record.pod is newer
        assert queue.nominator.nominated_nodes() == ["n1"]

    def test_removing_one_of_two_gates_leaves_the_pod_gated(self, bench: Any) -> None:  # Q5-2
        queue, pod = bench.queue(GATE, gates=GATES), make_pod(gates=["g1", "g2"])
        queue.add(pod)
        queue.update(pod, make_pod(uid=pod.metadata.uid, gates=["g2"]))
        assert queue.place_of(pod) is Place.GATED

    def test_removing_the_last_gate_makes_the_pod_active(
        self, bench: Any, clock: ManualClock
    ) -> None:  # Q5-3
        queue, pod = bench.queue(GATE, gates=GATES), make_pod(gates=["g1"])
        clock.set_s(10)
        queue.add(pod)
        clock.set_s(60)
        queue.update(pod, make_pod(uid=pod.metadata.uid))
        record = queue.get_pod("p", "default")
        assert queue.place_of(pod) is Place.ACTIVE
        assert (record.initial_attempt_ns, record.timestamp_ns) == (ns(60), ns(10))
        label = "UnschedulablePodUpdatePodSchedulingGatesEliminated"
        assert bench.metrics.incoming_total["active", label] == 1

    def test_an_unknown_pod_is_added(self, bench: Any) -> None:
        queue, pod = bench.queue(), make_pod()
        queue.update(pod, nominated(pod, "n1"))
        assert queue.place_of(pod) is Place.ACTIVE
        assert queue.nominator.nominated_nodes() == ["n1"]
        assert bench.metrics.incoming_total == {("active", "UnschedulablePodUpdate"): 1}

    def test_without_the_gate_a_pod_that_starts_to_back_off_is_not_parked_as_well(
        self, bench: Any
    ) -> None:
        labels: Registration = ("Labels", Resource.POD, Action.UPDATE_POD_LABEL, own_update)
        queue, pod = bench.queue(labels, pop_from_backoff=False), make_pod()
        record = bench.park(queue, pod, "Labels")
        newer = make_pod(uid=record.uid, labels={"a": "b"}, tolerations=[Toleration(key="x")])
        queue.update(pod, newer)
        assert queue.place_of(pod) is Place.BACKOFF
        assert queue.pods_in_unschedulable() == []


class TestMoves:
    @pytest.mark.parametrize(
        ("now", "place"),
        [
            pytest.param(10.9, Place.BACKOFF, id="Q8-1"),
            pytest.param(12, Place.ACTIVE, id="Q8-1-later"),
        ],
    )
    def test_a_moved_pod_backs_off_until_its_expiry(
        self, bench: Any, clock: ManualClock, now: float, place: Place
    ) -> None:
        queue, pod = bench.queue(FIT), make_pod()
        clock.set_s(10.2)
        record = bench.park(queue, pod, "Fit")
        clock.set_s(now)
        queue.move_all(NODE_ADD, None, make_node("n"))
        assert queue.place_of(pod) is place
        assert record.timestamp_ns == ns(10.2)

    def test_events_without_registrations_do_nothing(self, bench: Any) -> None:  # Q10-5
        queue = bench.queue(FIT)
        queue.add(make_pod())
        queue.pop_nowait()
        queue.move_all(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.UPDATE), None, None)
        assert queue.statistics().in_flight_events == 0
        queue.move_all(NODE_ADD, None, make_node("n"))
        assert queue.statistics().in_flight_events == 1

    def test_a_pre_check_holds_parked_pods_back_but_not_the_log(self, bench: Any) -> None:
        queue = bench.queue(FIT)
        low, high = make_pod("low", priority=1), make_pod("high", priority=9)
        bench.park(queue, low, "Fit")
        bench.park(queue, high, "Fit")
        queue.add(make_pod("flies"))
        queue.pop_nowait()
        queue.move_all(NODE_ADD, None, make_node("n"), lambda pod: (pod.spec.priority or 0) <= 1)
        assert queue.place_of(low) is Place.BACKOFF
        assert queue.place_of(high) is Place.UNSCHEDULABLE
        assert queue.statistics().in_flight_events == 1

    def test_a_gated_pod_moves_only_after_events_of_its_gate(self, bench: Any) -> None:  # Q5-4
        is_closed = False
        queue = bench.queue(
            FIT,
            ("Fit", Resource.POD, Action.DELETE, queues),
            ("Gate", Resource.POD, Action.DELETE, never),
            gates=[("Gate", lambda _: Status.unresolvable("no") if is_closed else None)],
        )
        pod = make_pod()
        bench.park(queue, pod, "Fit")
        is_closed = True
        queue.move_all(ASSIGNED_POD_DELETE, make_pod("x", node="n"), None)
        assert queue.place_of(pod) is Place.GATED
        is_closed = False
        asked = len(bench.metrics.hints)
        queue.move_all(NODE_ADD, None, make_node("n"))
        assert queue.place_of(pod) is Place.GATED
        assert len(bench.metrics.hints) == asked
        queue.move_all(ASSIGNED_POD_DELETE, make_pod("x", node="n"), None)
        assert queue.place_of(pod) is Place.BACKOFF

    def test_a_preemptor_is_gated_while_its_victims_leave(self, bench: Any) -> None:  # Q5-5
        preempting = {"p"}

        def still_preempting(pod: Pod) -> Status | None:
            if pod.metadata.name in preempting:
                return Status.unresolvable("waiting for the preemption for this pod to be finished")
            return None

        queue = bench.queue(
            ("Fit", Resource.POD, Action.DELETE, queues),
            ("Preemption", Resource.POD, Action.DELETE, never),
            gates=[("Preemption", still_preempting)],
        )
        preempting.clear()
        pod = make_pod()
        record = bench.park(queue, pod, "Fit")
        preempting.add("p")
        queue.move_all(ASSIGNED_POD_DELETE, make_pod("victim", node="n"), None)
        assert queue.place_of(pod) is Place.GATED
        assert record.unschedulable_plugins == {"Fit", "Preemption"}
        preempting.clear()
        queue.move_all(ASSIGNED_POD_DELETE, make_pod("victim", node="n"), None)
        assert queue.place_of(pod) is Place.BACKOFF

    def test_pods_are_moved_by_plugins_of_their_own_profile(self, bench: Any) -> None:
        event = ClusterEvent(Resource.NODE, Action.ADD)
        queue = bench.queue(
            hint_maps={
                "default-scheduler": [HintRegistration(event, "A", None)],
                "other": [HintRegistration(event, "B", None)],
            }
        )
        mine, other = make_pod("mine"), make_pod("other", scheduler_name="default-scheduler")
        bench.park(queue, mine, "A")
        bench.park(queue, other, "B")
        queue.move_all(NODE_ADD, None, make_node("n"))
        assert queue.place_of(mine) is Place.BACKOFF
        assert queue.place_of(other) is Place.UNSCHEDULABLE

    def test_an_event_costs_nothing_for_pods_it_does_not_concern(self, bench: Any) -> None:
        def fails(*_: object) -> Hint:
            raise AssertionError("asked about an event its plugin did not register for")

        queue = bench.queue(
            ("Fit", Resource.NODE, Action.ADD, fails),
            ("Spread", Resource.POD, Action.ADD, queues),
        )
        for number in range(50):
            bench.park(queue, make_pod(f"p{number}"), "Fit")
        queue.move_all(ASSIGNED_POD_ADD, None, make_pod("x", node="n"))
        assert bench.metrics.hints == []
        assert queue.statistics().unschedulable == 50


class TestBackoffFlush:
    def test_the_whole_window_moves_and_the_rest_stays(
        self, bench: Any, clock: ManualClock
    ) -> None:  # Q9-3
        queue = bench.queue(AFFINITY)
        clock.set_s(6.4)
        early = make_pod("early")
        bench.park(queue, early, "Affinity")
        clock.set_s(7.1)
        late = make_pod("late")
        bench.park(queue, late, "Affinity")
        queue.move_all(NODE_LABEL, make_node("n"), make_node("n"))
        for now, places in [
            (7.5, (Place.BACKOFF, Place.BACKOFF)),
            (8, (Place.ACTIVE, Place.BACKOFF)),
            (9, (Place.ACTIVE, Place.ACTIVE)),
        ]:
            clock.set_s(now)
            queue.flush_backoff_completed()
            assert (queue.place_of(early), queue.place_of(late)) == places
        assert bench.metrics.incoming_total["active", "BackoffComplete"] == 2

    @pytest.mark.parametrize(
        ("pop_from_backoff", "place"), [(True, Place.ACTIVE), (False, Place.GATED)]
    )
    def test_gates_are_asked_on_leaving_only_without_the_feature(
        self, bench: Any, clock: ManualClock, pop_from_backoff: bool, place: Place
    ) -> None:
        is_closed = False
        queue = bench.queue(
            FIT,
            gates=[("Gate", lambda _: Status.unresolvable("no") if is_closed else None)],
            pop_from_backoff=pop_from_backoff,
        )
        pod = make_pod()
        bench.park(queue, pod, "Fit")
        queue.move_all(NODE_ADD, None, make_node("n"))
        is_closed = True
        clock.advance_s(5)
        queue.flush_backoff_completed()
        assert queue.place_of(pod) is place


class TestLeftoverFlush:
    def test_a_pod_parked_for_longer_than_the_limit_is_moved(
        self, bench: Any, clock: ManualClock
    ) -> None:  # Q9.6-1, Q9.6-3
        queue, pod = bench.queue(), make_pod()
        clock.set_s(0)
        record = bench.park(queue, pod, "Fit")
        record.unschedulable_count = 3
        clock.set_s(300)
        queue.flush_unschedulable_leftover()
        assert queue.place_of(pod) is Place.UNSCHEDULABLE
        clock.set_s(330)
        queue.flush_unschedulable_leftover()
        assert queue.place_of(pod) is Place.ACTIVE
        assert record.was_flushed_from_unschedulable
        assert record.flush_timestamp_ns == ns(330)
        assert bench.metrics.incoming_total["active", "UnschedulableTimeout"] == 1

    def test_a_gated_pod_is_asked_again_after_each_limit(
        self, bench: Any, clock: ManualClock
    ) -> None:  # Q9.6-2, Q9.6-4
        queue, pod = bench.queue(GATE, gates=GATES), make_pod(gates=["g"])
        clock.set_s(0)
        queue.add(pod)
        record = queue.get_pod("p", "default")
        counts = {301: 1, 541: 1, 602: 2}
        for now, count in counts.items():
            clock.set_s(now)
            queue.flush_unschedulable_leftover()
            assert queue.place_of(pod) is Place.GATED
            assert not record.was_flushed_from_unschedulable
            key = ("unschedulable", "UnschedulableTimeout")
            assert bench.metrics.incoming_total[key] == count
        assert record.flush_timestamp_ns == ns(602)

    def test_it_reaches_pods_in_flight_if_anything_was_flushed(
        self, bench: Any, clock: ManualClock
    ) -> None:
        queue, pod = bench.queue(), make_pod("flies")
        queue.add(pod)
        record = queue.pop_nowait()
        queue.flush_unschedulable_leftover()
        assert queue.statistics().in_flight_events == 0
        bench.park(queue, make_pod("parked"), "Fit")
        clock.advance_s(301)
        queue.flush_unschedulable_leftover()
        bench.fail(queue, record, "Fit")
        assert queue.place_of(pod) is Place.BACKOFF


class TestActivate:
    def test_a_gated_pod_is_asked_again_and_stays(self, bench: Any) -> None:  # Q9.7-1
        queue, pod = bench.queue(GATE, gates=GATES), make_pod(gates=["g"])
        queue.add(pod)
        queue.activate([pod])
        assert queue.place_of(pod) is Place.GATED
        assert queue.statistics().in_flight_events == 0

    def test_backoff_is_cut_short_without_asking_gates(self, bench: Any) -> None:  # Q9.7-2
        queue, pod = bench.queue(FIT, gates=GATES), make_pod()
        record = bench.park(queue, pod, "Fit")
        record.unschedulable_count = 9
        queue.move_all(NODE_ADD, None, make_node("n"))
        passes = len(bench.metrics.passes)
        queue.activate([pod])
        assert queue.place_of(pod) is Place.ACTIVE
        assert len(bench.metrics.passes) == passes
        assert bench.metrics.incoming_total["active", "ForceActivate"] == 1

    def test_an_active_or_unknown_pod_is_not_changed(self, bench: Any) -> None:  # Q9.7-3, Q9.7-4
        queue, pod = bench.queue(), make_pod()
        queue.add(pod)
        record = queue.get_pod("p", "default")
        queue.activate([pod, make_pod("unknown")])
        assert queue.get_pod("p", "default") is record
        assert len(queue.pending_pods()[0]) == 1

    def test_a_pod_in_flight_will_not_park(self, bench: Any) -> None:  # Q10-6
        queue, first, second = bench.queue(FIT), make_pod("a"), make_pod("b")
        queue.add(first)
        queue.add(second)
        one, other = queue.pop_nowait(), queue.pop_nowait()
        queue.activate([one.pod])
        bench.fail(queue, one, "Fit")
        bench.fail(queue, other, "Fit")
        assert queue.place_of(one.pod) is Place.BACKOFF
        assert queue.place_of(other.pod) is Place.UNSCHEDULABLE


class TestGroups:
    def test_the_last_member_releases_its_gated_siblings(self, bench: Any) -> None:  # Q13-1
        known: set[str] = set()

        def gang(pod: Pod) -> Status | None:
            return None if len(known) >= 3 else Status.unresolvable("waiting for minCount pods")

        def same_group(pod: Pod, old: object, new: object) -> Hint:
            is_same = (
                isinstance(new, Pod) and new.spec.scheduling_group == pod.spec.scheduling_group
            )
            return Hint.QUEUE if is_same else Hint.SKIP

        queue = bench.queue(
            ("GangScheduling", Resource.POD, Action.ADD, same_group),
            gates=[("GangScheduling", gang)],
        )
        pods = [member(f"g-{number}") for number in range(3)]
        for pod, active in zip(pods, (0, 0, 3), strict=True):
            known.add(pod.metadata.name)
            queue.add(pod)
            queue.move_all(ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD), None, pod)
            assert queue.statistics().active == active


class TestDelete:
    @pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE])
    def test_a_pod_is_removed_from_where_it_is(self, bench: Any, place: Place) -> None:
        queue, pod = bench.queue(FIT), make_pod(nominated_node="n1")
        bench.park(queue, pod, "Fit")
        if place is Place.BACKOFF:
            queue.move_all(NODE_ADD, None, make_node("n"))
        elif place is Place.ACTIVE:
            queue.activate([pod])
        assert queue.place_of(pod) is place
        queue.delete(pod)
        assert queue.place_of(pod) is None
        assert len(queue.nominator) == 0
        assert not +bench.metrics.pending
        # Only deleting a parked pod changes the gauge of its rejectors.
        assert bench.metrics.unschedulable["Fit"] == (0 if place is Place.UNSCHEDULABLE else 1)

    def test_an_attempt_goes_on(self, bench: Any) -> None:
        queue, pod = bench.queue(), make_pod()
        queue.add(pod)
        queue.pop_nowait()
        queue.delete(pod)
        assert queue.place_of(pod) is Place.IN_FLIGHT


class TestClosing:
    def test_all_attempts_are_done(self, bench: Any) -> None:
        queue = bench.queue()
        queue.add(make_pod())
        queue.pop_nowait()
        queue.close()
        assert queue.statistics().in_flight == 0
        assert not +bench.metrics.in_flight

    def test_closing_twice_is_refused(self, bench: Any) -> None:
        queue = bench.queue()
        queue.close()
        with pytest.raises(QueueError, match="closed already"):
            queue.close()

    def test_the_timers_end(self, bench: Any) -> None:
        async def scenario() -> None:
            queue = bench.queue()
            timers = asyncio.ensure_future(queue.run_timers())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not timers.done()
            queue.close()
            await timers
            await queue.run_timers()  # does not start again

        asyncio.run(scenario())

    def test_the_leftover_flush_runs_when_the_timers_start(
        self, bench: Any, clock: ManualClock
    ) -> None:
        async def scenario() -> None:
            queue, pod = bench.queue(), make_pod()
            bench.park(queue, pod, "Fit")
            clock.advance_s(301)
            timers = asyncio.ensure_future(queue.run_timers())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert queue.place_of(pod) is Place.ACTIVE
            queue.close()
            await timers

        asyncio.run(scenario())


class TestReading:
    def full_queue(self, bench: Any) -> SchedulingQueue:
        queue = bench.queue(FIT, gates=GATES)
        bench.park(queue, make_pod("failed"))
        bench.park(queue, make_pod("rejected"), "Fit")
        queue.move_all(NODE_ADD, None, make_node("n"))
        bench.park(queue, make_pod("parked"), "Fit")
        queue.add(make_pod("gated", gates=["g"]))
        queue.add(make_pod("flying", priority=9, nominated_node="n1"))
        queue.pop_nowait()
        queue.move_all(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE), None, None)
        bench.park(queue, make_pod("parked-too"), "Other")
        queue.add(make_pod("active"))
        return queue

    def test_statistics_count_every_place(self, bench: Any) -> None:
        statistics = self.full_queue(bench).statistics()
        assert msgspec.structs.asdict(statistics) == {
            "active": 1,
            "backoff": 2,
            "error_backoff": 1,
            "unschedulable": 1,
            "gated": 1,
            "in_flight": 1,
            "in_flight_events": 1,
            "nominated": 1,
        }

    def test_pending_pods_come_place_by_place(self, bench: Any) -> None:
        queue = self.full_queue(bench)
        pods, summary = queue.pending_pods()
        assert [pod.metadata.name for pod in pods] == [
            "active",
            "rejected",
            "parked",
            "failed",
            "gated",
            "parked-too",
        ]
        assert summary == "activeQ:1; backoffQ:3; unschedulablePods:2"

    def test_records_are_found_by_name(self, bench: Any) -> None:
        queue = self.full_queue(bench)
        for name in ("active", "rejected", "failed", "gated", "parked-too"):
            assert queue.get_pod(name, "default").pod_info.name == name
        assert queue.get_pod("flying", "default") is None
        assert queue.get_pod("active", "elsewhere") is None


def test_limits_of_backoff_and_parking_can_be_set(bench: Any, clock: ManualClock) -> None:
    queue = bench.queue(
        initial_backoff_ns=3 * NANOSECONDS,
        max_backoff_ns=4 * NANOSECONDS,
        max_unschedulable_ns=5 * NANOSECONDS,
    )
    failed, parked = make_pod("failed"), make_pod("parked")
    record = bench.park(queue, failed)
    assert record.backoff_expiry_ns == clock.now_ns() + 3 * NANOSECONDS
    bench.park(queue, parked, "Fit")
    clock.advance_s(6)
    queue.flush_unschedulable_leftover()
    assert queue.place_of(parked) is Place.ACTIVE


class TestNextTry:
    def test_the_time_depends_on_the_place(self, bench: Any, clock: ManualClock) -> None:
        queue, pod = bench.queue(FIT), make_pod()
        clock.set_s(10)
        queue.add(pod)
        assert queue.next_try_ns(pod) is None  # It is next.
        record = queue.pop_nowait()
        assert queue.next_try_ns(pod) is None  # It is being tried.
        bench.fail(queue, record, "Fit")
        # Nothing but the flush of leftovers is sure to come.
        assert queue.next_try_ns(pod) == ns(10) + 300 * NANOSECONDS
        queue.move_all(NODE_ADD, None, make_node())
        assert queue.place_of(pod) is Place.BACKOFF
        assert ns(10) < queue.next_try_ns(pod) <= ns(12)

    def test_a_gated_pod_has_none(self, bench: Any) -> None:
        queue, pod = bench.queue(GATE, gates=GATES), make_pod(gates=["g"])
        queue.add(pod)
        assert queue.next_try_ns(pod) is None
        assert queue.next_try_ns(make_pod("unknown")) is None
