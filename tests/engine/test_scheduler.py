"""The scheduling cycle: what is skipped, assumed and undone (spec 04 §3, §10, §11)."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.engine.metrics import NoSchedulerMetrics
from kubestow.engine.scheduler import CYCLES_PER_TURN_MAX, TURN_S, PodAttempt
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import Plugin
from kubestow.framework.status import Code, Status
from kubestow.queue import Place
from kubestow.testing import make_node, make_pod
from kubestow.testing.profiles import make_plugin

Run = Callable[[Coroutine[Any, Any, None]], None]
World = Any  # the class the fixture of that name gives

UNSCHEDULABLE = Status.unschedulable


def error(text: str) -> Status:
    return Status.from_error(PluginError(text))


# --- skipping (§3, §3.3) ---


def test_3_3_1_a_pod_being_deleted_is_not_tried(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pod = make_pod("p", namespace="ns", deleted=datetime(2026, 1, 1, tzinfo=UTC))
        world.create(pod)
        assert world.schedule() is None
        (event,) = world.events.events
        assert (event.type, event.reason, event.action, event.note) == (
            "Warning",
            "FailedScheduling",
            "Scheduling",
            "skip schedule deleting pod: ns/p",
        )
        await world.settle()
        assert world.server.patches == []
        assert world.place_of(pod) is None
        assert world.decisions == []

    run(go())


def test_3_3_2_an_assumed_pod_is_dropped_without_event(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        world.schedule()
        world.queue.add(pod)  # an update that raced with the decision
        await world.settle()
        assert world.schedule() is None
        assert world.place_of(pod) is None
        assert [event.reason for event in world.events.events] == ["Scheduled"]

    run(go())


def test_a_pod_of_no_profile_is_dropped(
    make_world: type[World], run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pod = make_pod("p", scheduler_name="unknown")
        world.queue.add(pod)
        assert world.schedule() is None
        assert 'profile not found for scheduler name "unknown"' in caplog.text
        assert world.place_of(pod) is None
        assert world.notes == []

    run(go())


def test_a_pod_without_uid_is_tried_and_fails_at_the_cache(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        world.create(make_pod("p", uid=""))
        assert world.schedule() is not None
        assert world.notes == ["cannot get cache key for pod with empty UID"]

    run(go())


# --- failing before a node is chosen ---


def test_14_3_6_no_nodes(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world()
        pod = world.create(make_pod("p"))
        world.schedule()
        await world.settle()
        assert world.conditions == [("Unschedulable", "no nodes available to schedule pods")]
        assert world.place_of(pod) is Place.ERROR_BACKOFF

    run(go())


def test_a_snapshot_that_contradicts_itself_is_an_error(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1", zone="A")])
        world.create(make_pod("first"))
        world.schedule()
        world.scheduler.handlers.node_added(make_node("n1", zone="B"))
        pod = world.create(make_pod("p", nominated_node="n1"))
        decision = world.schedule()
        assert decision.status.code is Code.ERROR
        await world.settle()
        ((reason, message),) = world.conditions
        assert reason == "SchedulerError"
        assert message.startswith("snapshot state is not consistent, length of NodeInfoList=1")
        assert world.nominations == [""]
        assert world.place_of(pod) is Place.ERROR_BACKOFF

    run(go())


def test_a_pod_that_fits_nowhere_waits_for_an_event(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        picky = make_plugin("Picky", pre_filter=lambda *_: UNSCHEDULABLE("not today"))
        world = make_world(picky, nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        world.schedule()
        await world.settle()
        assert world.conditions == [("Unschedulable", "0/1 nodes are available: not today.")]
        assert world.place_of(pod) is Place.UNSCHEDULABLE
        await asyncio.sleep(2)  # its backoff is over
        world.scheduler.handlers.node_added(make_node("n2"))
        assert world.place_of(pod) is Place.ACTIVE

    run(go())


# --- Reserve and Permit (§10, §11) ---


def reserving(name: str, answer: Status | None, calls: list[str]) -> Plugin:
    def reserve(state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        calls.append(f"reserve {name} {node_name}")
        return answer

    return make_plugin(name, reserve=reserve, unreserve=lambda *_: calls.append(f"undo {name}"))


@pytest.mark.parametrize(
    ("answer", "reason", "message", "place"),
    [
        pytest.param(
            error("db"),
            "SchedulerError",
            'running Reserve plugin "R2": db',
            Place.ERROR_BACKOFF,
            id="10-1",
        ),
        pytest.param(
            UNSCHEDULABLE("full"),
            "Unschedulable",
            "0/1 nodes are available: 1 full.",
            Place.UNSCHEDULABLE,
            id="10-2",
        ),
        pytest.param(
            Status.unresolvable("no"),
            "Unschedulable",
            "0/1 nodes are available: 1 no.",
            Place.UNSCHEDULABLE,
            id="10-3",
        ),
    ],
)
def test_a_reserve_that_fails_is_undone(
    make_world: type[World], run: Run, answer: Status, reason: str, message: str, place: Place
) -> None:
    async def go() -> None:
        calls: list[str] = []
        plugins = [
            reserving(name, answer if name == "R2" else None, calls) for name in ("R1", "R2", "R3")
        ]
        world = make_world(*plugins, nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        world.schedule()
        await world.settle()
        assert calls == ["reserve R1 n1", "reserve R2 n1", "undo R3", "undo R2", "undo R1"]
        assert world.cache.statistics().pods == 0
        assert world.conditions == [(reason, message)]
        assert world.place_of(pod) is place
        if place is Place.UNSCHEDULABLE:
            assert world.queue.get_pod("p", "default").unschedulable_plugins == {"R2"}

    run(go())


def test_10_4_a_pod_that_cannot_be_assumed_is_not_undone(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        calls: list[str] = []
        world = make_world(reserving("R1", None, calls), nodes=[make_node("n1")])
        pod = world.create(make_pod("p", uid="u1"))
        world.cache.add_pod(PodInfo(make_pod("p", uid="u1", node="n1")))
        world.schedule()
        await world.settle()
        assert calls == []
        text = "pod u1(default/p) is in the cache, so can't be assumed"
        assert world.conditions == [("SchedulerError", text)]
        assert world.place_of(pod) is Place.ERROR_BACKOFF
        assert world.cache.statistics().pods == 1

    run(go())


@pytest.mark.parametrize(
    ("answer", "message", "pending"),
    [
        pytest.param(UNSCHEDULABLE("quota"), "0/1 nodes are available: 1 quota.", set(), id="11-2"),
        pytest.param(
            Status(Code.PENDING, "p"), "0/1 nodes are available: 1 p.", {"Permit"}, id="11-6"
        ),
    ],
)
def test_a_permit_that_rejects_is_undone(
    make_world: type[World], run: Run, answer: Status, message: str, pending: set[str]
) -> None:
    async def go() -> None:
        calls: list[str] = []
        world = make_world(
            reserving("R1", None, calls),
            make_plugin("Wait", permit=lambda *_: (Status.wait(), 10.0)),
            make_plugin("Permit", permit=lambda *_: (answer, 0.0)),
            nodes=[make_node("n1")],
        )
        world.create(make_pod("p"))
        world.schedule()
        await world.settle()
        assert calls == ["reserve R1 n1", "undo R1"]
        assert list(world.scheduler.waiting_pods) == []
        assert world.conditions == [("Unschedulable", message)]
        queued_pod = world.queue.get_pod("p", "default")
        assert queued_pod.unschedulable_plugins == {"Permit"}
        assert queued_pod.pending_plugins == pending
        assert world.cache.statistics().pods == 0

    run(go())


def test_an_assumed_pod_loses_its_nomination(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        world.create(make_pod("p", uid="u1", nominated_node="n1"))
        assert world.queue.nominator.nominated_nodes() == ["n1"]
        world.schedule()
        assert world.queue.nominator.nominated_nodes() == []

    run(go())


def test_the_next_pod_sees_the_assumed_one(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        world.create(make_pod("first", cpu="3"))
        world.create(make_pod("second"))
        world.schedule()
        world.schedule()
        assert world.scheduler.snapshot.columns.requested[0].tolist() == [3000]

    run(go())


def test_pods_to_activate_are_activated_once_the_pod_is_permitted(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        parked = make_pod("parked")

        def permit(state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
            state.pods_to_activate["default/parked"] = parked
            return Status.wait(), 100.0

        def pre_filter(state: CycleState, pod: PodInfo, nodes: object) -> Status | None:
            return UNSCHEDULABLE("no") if pod.name == "parked" else None

        world = make_world(
            make_plugin("Permit", permit=permit),
            make_plugin("Picky", pre_filter=pre_filter),
            nodes=[make_node("n1")],
        )
        world.create(parked)
        world.schedule()
        assert world.place_of(parked) is Place.UNSCHEDULABLE
        world.create(make_pod("p"))
        decision = world.schedule()
        assert world.place_of(parked) is Place.ACTIVE
        assert decision.state.pods_to_activate == {}

    run(go())


# --- running ---


def test_every_decision_reaches_the_listeners(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        world.create(make_pod("a"))
        world.create(make_pod("b"))
        world.schedule()
        world.schedule()
        assert [decision.pod.name for decision in world.decisions] == ["a", "b"]

    run(go())


def test_the_loop_schedules_until_the_queue_is_closed(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        loop = asyncio.ensure_future(world.scheduler.run())
        for number in range(40):
            world.create(make_pod(f"p{number}"))
        await world.settle()
        await world.settle()
        assert len(world.server.bound) == 40
        world.create(make_pod("late"))
        await world.settle()
        assert len(world.server.bound) == 41
        assert not loop.done()
        world.queue.close()
        await loop
        assert world.scheduler.tasks.is_idle

    run(go())


def test_in_real_time_other_tasks_run_after_a_time(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        world.scheduler.is_in_real_time = True
        metrics = NoSchedulerMetrics()
        # A cycle takes a twentieth of a turn.
        metrics.now_s = lambda: len(world.decisions) * TURN_S / 20  # type: ignore[method-assign]
        world.scheduler.metrics = metrics
        ends: list[int] = []
        world.scheduler.on_turn_over = lambda: ends.append(len(world.decisions))
        pods = CYCLES_PER_TURN_MAX * 5
        for number in range(pods):
            world.create(make_pod(f"p{number}"))
        loop = asyncio.ensure_future(world.scheduler.run())
        await asyncio.sleep(0)
        assert ends == [21]
        world.queue.close()
        await loop
        assert len(world.decisions) == pods

    run(go())


def test_all_nodes_are_read_before_the_first_pod(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1"), make_node("n2")])
        assert not world.scheduler.snapshot.names
        world.scheduler.prepare()
        assert world.scheduler.snapshot.names == ["n1", "n2"]

    run(go())


def test_other_tasks_run_between_cycles(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pods = CYCLES_PER_TURN_MAX + 10
        for number in range(pods):
            world.create(make_pod(f"p{number}"))
        loop = asyncio.ensure_future(world.scheduler.run())
        await asyncio.sleep(0)
        assert 0 < len(world.decisions) < pods
        world.queue.close()
        await loop
        assert len(world.decisions) == pods

    run(go())


def test_what_fails_beside_the_loop_is_logged(
    make_world: type[World], run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async def broken() -> None:
            raise ValueError("a mistake of ours")

        world = make_world(nodes=[make_node("n1")])
        world.scheduler.tasks.spawn(broken())
        assert not world.scheduler.tasks.is_idle
        await world.settle()
        assert world.scheduler.tasks.is_idle
        assert "a mistake of ours" in caplog.text

    run(go())


def test_each_profile_has_its_own_name(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")], profile_names=["first", "second"])

        def pod(name: str) -> Pod:
            return make_pod(name, scheduler_name=name)

        for name in ("first", "second", "third"):
            world.create(pod(name))
        world.schedule()
        world.schedule()
        assert [decision.profile_name for decision in world.decisions] == ["first", "second"]
        assert world.queue.pop_nowait() is None

    run(go())


def test_a_bound_pod_frees_its_node_when_it_is_deleted(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pod = world.create(make_pod("p", cpu="1"))
        world.schedule()
        await world.settle()
        bound = world.confirm(pod, "n1")
        assert world.cache.node("n1").requested.milli_cpu == 1000
        world.delete(bound)
        assert world.cache.node("n1").requested.milli_cpu == 0

    run(go())


def test_a_pod_deleted_while_it_is_bound_is_forgotten_at_once(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        world.schedule()
        world.delete(pod)
        assert world.cache.statistics().pods == 0
        await world.settle()
        assert world.scheduler.tasks.is_idle

    run(go())


def test_an_attempt_has_no_effect_until_it_is_concluded(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world = make_world(nodes=[make_node("n1")])
        pod = make_pod("p")
        world.create(pod)
        attempt = world.scheduler.begin(world.queue.pop_nowait())
        assert isinstance(attempt, PodAttempt)
        assert attempt.decision is None
        attempt.decide()
        assert attempt.decision is not None
        assert attempt.decision.node_name == "n1"
        assert not world.scheduler.cache.is_assumed(pod)
        assert world.decisions == []
        attempt.conclude()
        assert world.scheduler.cache.is_assumed(pod)
        assert [decision.node_name for decision in world.decisions] == ["n1"]
        assert not attempt.has_victims
        await world.settle()

    run(go())
