"""The binding cycle, and how a failed one is undone (spec 04 §12)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.config.feature_gates import FeatureGates
from kubestow.engine.bind import (
    Placement,
    pre_bind_groups,
    rejected_on,
    run_bind,
    run_pre_flight,
)
from kubestow.engine.decision import FitError
from kubestow.errors import ConflictError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Resource, on
from kubestow.framework.plugin import Plugin, PreFlight
from kubestow.framework.profile import plugin_name
from kubestow.framework.status import Code, Status
from kubestow.queue import Place, QueuedPod
from kubestow.testing import make_node, make_pod
from kubestow.testing.profiles import make_plugin, make_profile

Run = Callable[[Coroutine[Any, Any, None]], None]
World = Any  # the class the fixture of that name gives

UNSCHEDULABLE = Status.unschedulable
SKIP, WORK = PreFlight(Status.skip()), PreFlight(None)
PARALLEL_WORK, PARALLEL_SKIP = PreFlight(None, True), PreFlight(Status.skip(), True)


def error(text: str) -> Status:
    return Status.from_error(PluginError(text))


def pre_binding(
    name: str,
    flight: PreFlight | Status | Exception = WORK,
    work: Callable[[], Awaitable[Status | None]] | None = None,
    calls: list[str] | None = None,
) -> Plugin:
    def pre_flight(*_: object) -> Any:
        if isinstance(flight, Exception):
            raise flight
        return flight

    async def pre_bind(*_: object) -> Status | None:
        if calls is not None:
            calls.append(name)
        return await work() if work is not None else None

    return make_plugin(name, pre_bind_pre_flight=pre_flight, pre_bind=pre_bind)


def placement_of(*plugins: Plugin) -> Placement:
    info = PodInfo(make_pod("p", node="n1"))
    queued_pod = QueuedPod(info, timestamp_ns=0)
    return Placement(make_profile(*plugins), CycleState(), queued_pod, "n1")


# --- PreBindPreFlight and groups (§12.1, §12.4) ---


def groups(*flights: PreFlight) -> tuple[list[list[str]], Status | None]:
    placement = placement_of(
        *(pre_binding(name, flight) for name, flight in zip("VDX", flights, strict=False))
    )
    outcome = run_pre_flight(placement)
    found = pre_bind_groups(placement.profile, placement.state)
    return [[plugin_name(plugin) for plugin in group] for group in found], outcome


@pytest.mark.parametrize(
    ("flights", "expected"),
    [
        pytest.param([PARALLEL_WORK, PARALLEL_WORK, WORK], [["V", "D"], ["X"]], id="12-1"),
        pytest.param([PARALLEL_WORK, PARALLEL_SKIP, PARALLEL_WORK], [["V", "X"]], id="12-2"),
        pytest.param([PARALLEL_WORK, SKIP, PARALLEL_WORK], [["V"], ["X"]], id="12-3"),
        pytest.param([WORK, WORK, WORK], [["V"], ["D"], ["X"]], id="one-after-the-other"),
        pytest.param([PARALLEL_SKIP, WORK, SKIP], [["D"]], id="only-one-has-work"),
        pytest.param([], [], id="no-plugins"),
    ],
)
def test_groups(flights: list[PreFlight], expected: list[list[str]]) -> None:
    found, outcome = groups(*flights)
    assert found == expected
    assert outcome == (None if expected else Status.skip())


def test_12_4_all_skip() -> None:
    found, outcome = groups(SKIP, PARALLEL_SKIP, SKIP)
    assert found == []
    assert outcome == Status.skip()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(PreFlight(error("boom")), 'running PreBindPreFlight "V": boom', id="error"),
        pytest.param(PluginError("raised"), 'running PreBindPreFlight "V": raised', id="exception"),
        pytest.param(
            PreFlight(UNSCHEDULABLE("no")),
            'PreBindPreFlight V returned "Unschedulable", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status",
            id="a-code-that-has-no-place-here",
        ),
    ],
)
def test_a_pre_flight_that_fails_leaves_no_sets(answer: Any, text: str) -> None:
    placement = placement_of(
        pre_binding("A", PARALLEL_SKIP), pre_binding("V", answer), pre_binding("X", PARALLEL_SKIP)
    )
    status = run_pre_flight(placement)
    assert status is not None
    assert (status.code, status.message, status.plugin) == (Code.ERROR, text, "V")
    assert placement.state.skip_pre_bind == set()
    assert placement.state.parallel_pre_bind == set()


# --- Bind (§12.5) ---


def binding(name: str, answer: Any, calls: list[str]) -> Plugin:
    async def bind(*_: object) -> Status | None:
        calls.append(name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return make_plugin(name, bind=bind)


@pytest.mark.parametrize(
    ("answers", "status", "called"),
    [
        pytest.param([Status.skip(), None, None], None, "AB", id="the-first-that-does-not-skip"),
        pytest.param([Status.skip()], Status.skip(), "A", id="all-skip"),
        pytest.param(
            [error("boom"), None],
            error('running Bind plugin "A": boom').with_plugin("A"),
            "A",
            id="error",
        ),
        pytest.param(
            [ConflictError("taken")],
            error('running Bind plugin "A": taken').with_plugin("A"),
            "A",
            id="exception",
        ),
        pytest.param(
            [UNSCHEDULABLE("no"), None], UNSCHEDULABLE("no").with_plugin("A"), "A", id="rejection"
        ),
    ],
)
def test_bind_plugins(run: Run, answers: list[Any], status: Status | None, called: str) -> None:
    async def go() -> None:
        calls: list[str] = []
        plugins = [
            binding(name, answer, calls) for name, answer in zip("ABC", answers, strict=False)
        ]
        assert await run_bind(placement_of(*plugins)) == status
        assert calls == list(called)

    run(go())


def test_a_rejection_is_worded_as_one_node_that_does_not_fit() -> None:
    rejection = Status(Code.PENDING, "p").with_plugin("Permit")
    status = rejected_on("n1", rejection)
    assert isinstance(status.error, FitError)
    assert (status.code, status.plugin) == (Code.PENDING, "Permit")
    assert status.message == "0/1 nodes are available: 1 p."
    diagnosis = status.error.diagnosis
    assert diagnosis.unschedulable_plugins == diagnosis.pending_plugins == {"Permit"}
    assert diagnosis.statuses() == {"n1": rejection}


# --- whole binding cycles ---


def test_a_pod_is_bound(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        calls: list[tuple[str, str]] = []
        post_bind = make_plugin(
            "Post", post_bind=lambda _, pod, node: calls.append((pod.name, node))
        )
        world = make_world(post_bind, nodes=[make_node("n1")])
        pod = world.create(make_pod("web", namespace="shop"))
        world.schedule()
        assert world.cache.is_assumed(pod)
        await world.settle()
        assert world.server.bound == {"web": "n1"}
        (event,) = world.events.events
        assert (event.type, event.reason, event.action, event.note) == (
            "Normal",
            "Scheduled",
            "Binding",
            "Successfully assigned shop/web to n1",
        )
        assert calls == [("web", "n1")]
        assert world.server.patches == []
        assert world.scheduler.tasks.is_idle
        assert world.queue.statistics().in_flight == 0
        assert world.cache.is_assumed(pod)  # until the watch shows it
        world.confirm(pod, "n1")
        assert not world.cache.is_assumed(pod)

    run(go())


def failing_world(
    make_world: type[World], *plugins: Plugin, gates: FeatureGates | None = None
) -> tuple[World, Pod, list[str]]:
    """A world with a parked pod that every AssignedPodDelete moves; undone steps are recorded."""
    undone: list[str] = []
    reserve = make_plugin(
        "Reserve", reserve=lambda *_: None, unreserve=lambda *_: undone.append("unreserve")
    )
    world = make_world(reserve, *plugins, nodes=[make_node("n1")], gates=gates)
    return world, world.create(make_pod("p", uid="u1")), undone


FAILURES = [
    pytest.param(
        make_plugin("B", bind=lambda *_: _return(error("boom"))),
        "SchedulerError",
        'running Bind plugin "B": boom',
        id="bind-error",
    ),
    pytest.param(
        make_plugin("B", bind=lambda *_: _return(UNSCHEDULABLE("quota"))),
        "Unschedulable",
        "quota",
        id="bind-rejection",
    ),
    pytest.param(
        pre_binding("V", PreFlight(error("boom"))),
        "SchedulerError",
        'running PreBindPreFlight "V": boom',
        id="pre-flight-error",
    ),
    pytest.param(
        pre_binding("V", WORK, lambda: _return(error("boom"))),
        "SchedulerError",
        'running PreBind plugin "V": boom',
        id="pre-bind-error",
    ),
    pytest.param(
        pre_binding("V", WORK, lambda: _return(Status(Code.PENDING, "later"))),
        "Unschedulable",
        "later",
        id="pre-bind-rejection",
    ),
    pytest.param(
        pre_binding("V", WORK, lambda: _raise(PluginError("raised"))),
        "SchedulerError",
        'running PreBind plugin "V": raised',
        id="pre-bind-exception",
    ),
]


async def _return(status: Status | None) -> Status | None:
    await asyncio.sleep(0)
    return status


async def _raise(exception: Exception) -> Status | None:
    await asyncio.sleep(0)
    raise exception


@pytest.mark.parametrize(("plugin", "reason", "message"), FAILURES)
def test_12_6_after_done_no_failure_can_park_the_pod(
    make_world: type[World], run: Run, plugin: Plugin, reason: str, message: str
) -> None:
    async def go() -> None:
        world, pod, undone = failing_world(make_world, plugin)
        world.schedule()
        await world.settle()
        assert undone == ["unreserve"]
        assert world.cache.statistics().pods == 0
        assert world.place_of(pod) is Place.ERROR_BACKOFF
        assert world.conditions == [(reason, message)]
        assert world.notes == [message]
        assert world.server.bound == {}

    run(go())


def test_12_6_when_all_binders_skip_there_is_no_event(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        skipping = make_plugin("B", bind=lambda *_: _return(Status.skip()))
        world, pod, undone = failing_world(make_world, skipping)
        world.schedule()
        await world.settle()
        assert undone == ["unreserve"]
        assert world.place_of(pod) is Place.ERROR_BACKOFF
        assert (world.notes, world.server.patches) == ([], [])

    run(go())


class ParksPods:
    """Rejects pods until a pod is deleted, and records the calls of its hint."""

    name = "ParksPods"

    def __init__(self) -> None:
        self.hinted: list[tuple[str, str]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: object) -> Status | None:
        return Status.unresolvable("not yet") if pod.name.startswith("parked") else None

    def events(self) -> Any:
        def hint(pod: Pod, old: Any, new: Any) -> Hint:
            self.hinted.append((pod.metadata.name, old.spec.node_name))
            return Hint.SKIP

        return [on(Resource.POD, Action.DELETE, hint)]


@pytest.mark.parametrize(
    ("status", "hinted"),
    [
        pytest.param(error("boom"), ["parked"], id="error"),
        pytest.param(UNSCHEDULABLE("quota"), ["parked"], id="rejection"),
    ],
)
def test_12_6_the_event_of_a_failed_binding_has_the_node(
    make_world: type[World], run: Run, status: Status, hinted: list[str]
) -> None:
    async def go() -> None:
        parking = ParksPods()
        binder = make_plugin("B", bind=lambda *_: _return(status))
        world, pod, _ = failing_world(make_world, parking, binder)
        parked = world.create(make_pod("parked"))
        world.schedule()
        world.schedule()
        assert world.place_of(parked) is Place.UNSCHEDULABLE
        await world.settle()
        assert parking.hinted == [(name, "n1") for name in hinted]
        assert world.place_of(pod) is Place.ERROR_BACKOFF

    run(go())


def test_12_6_a_pod_is_not_moved_by_its_own_resources(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world, pod, _ = failing_world(
            make_world, make_plugin("Gate", permit=lambda *_: (Status.wait("wait"), 5.0))
        )
        world.schedule()
        await asyncio.sleep(6)
        # Rejected and parked with its plugin; AssignedPodDelete would have moved it.
        assert world.place_of(pod) is Place.UNSCHEDULABLE
        assert world.queue.get_pod("p", "default").unschedulable_plugins == {"Gate"}

    run(go())


def test_without_an_assumed_pod_in_the_cache_there_is_no_event(
    make_world: type[World], run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        parking = ParksPods()
        binder = make_plugin("B", bind=lambda *_: _return(error("boom")))
        world, pod, _ = failing_world(make_world, parking, binder)
        world.create(make_pod("parked"))
        world.schedule()
        world.schedule()
        # The pod is bound, and the watch shows it before the error of the request.
        world.confirm(pod, "n1")
        await world.settle()
        assert "ForgetPod failed" in caplog.text
        assert parking.hinted == []
        assert world.cache.statistics().pods == 1
        assert world.place_of(pod) is None

    run(go())


# --- Permit (§11, §12.2, §12.3) ---


def permit(*answers: Any, name: str = "Permit") -> Plugin:
    return make_plugin(name, permit=lambda *_: answers[0])


def test_11_1_no_plugin_allows(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        a = permit((Status.wait(), 10.0), name="A")
        b = permit((Status.wait(), 1200.0), name="B")
        world, pod, undone = failing_world(make_world, a, b)
        world.schedule()
        await asyncio.sleep(9.9)
        assert world.scheduler.waiting_pods.get("u1") is not None
        assert world.place_of(pod) is Place.IN_FLIGHT
        await asyncio.sleep(0.2)
        message = (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin A."
        )
        assert world.conditions == [("Unschedulable", message)]
        assert undone == ["unreserve"]
        assert world.place_of(pod) is Place.UNSCHEDULABLE
        assert world.queue.get_pod("p", "default").unschedulable_plugins == {"A"}
        assert world.scheduler.waiting_pods.get("u1") is None

    run(go())


def test_11_3_all_plugins_allow(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        a, b = permit((Status.wait(), 10.0), name="A"), permit((Status.wait(), 10.0), name="B")
        world, _, _ = failing_world(make_world, a, b)
        world.schedule()
        waiting = world.scheduler.waiting_pods.get("u1")
        waiting.allow("A")
        await world.settle()
        assert world.server.bound == {}
        waiting.allow("B")
        await world.settle()
        assert world.server.bound == {"p": "n1"}
        assert list(world.scheduler.waiting_pods) == []

    run(go())


def test_11_4_a_waiting_pod_is_preempted(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world, pod, _ = failing_world(make_world, permit((Status.wait(), 10.0)))
        world.schedule()
        world.scheduler.waiting_pods.get("u1").preempt("DefaultPreemption", "preempted")
        await world.settle()
        assert world.conditions == [
            ("SchedulerError", "waiting on permit for pod: preempted"),
        ]
        assert world.place_of(pod) is Place.ERROR_BACKOFF

    run(go())


def test_11_5_a_waiting_pod_is_deleted(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world, pod, undone = failing_world(make_world, permit((Status.wait(), 10.0)))
        world.schedule()
        world.delete(pod)
        await world.settle()
        assert world.notes == ["0/1 nodes are available: 1 removed."]
        assert undone == ["unreserve"]
        assert world.cache.statistics().pods == 0
        assert world.place_of(pod) is None

    run(go())


def test_12_2_the_node_is_announced_while_the_pod_waits(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        world, _, _ = failing_world(make_world, permit((Status.wait(), 10.0)))
        world.schedule()
        await world.settle()
        assert world.nominations == ["n1"]

    run(go())


@pytest.mark.parametrize(
    ("flight", "nominated", "announced"),
    [
        pytest.param(WORK, "", ["n1"], id="work-to-do"),
        pytest.param(SKIP, "", [], id="12-4-nothing-to-do"),
        pytest.param(WORK, "n1", [], id="12-6-known-already"),
    ],
)
def test_12_2_announcing_the_node(
    make_world: type[World], run: Run, flight: PreFlight, nominated: str, announced: list[str]
) -> None:
    async def go() -> None:
        calls: list[str] = []
        world = make_world(pre_binding("D", flight, calls=calls), nodes=[make_node("n1")])
        world.create(make_pod(nominated_node=nominated))
        world.schedule()
        await world.settle()
        assert world.nominations == announced
        assert calls == ([] if flight is SKIP else ["D"])
        assert list(world.server.bound.values()) == ["n1"]

    run(go())


def test_12_2_the_pod_is_in_flight_until_its_node_is_announced(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        calls: list[str] = []
        world = make_world(pre_binding("D", WORK, calls=calls), nodes=[make_node("n1")])
        world.server.patching.clear()
        pod = world.create(make_pod())
        world.schedule()
        await world.settle()
        assert (world.place_of(pod), calls) == (Place.IN_FLIGHT, [])
        world.server.patching.set()
        await world.settle()
        assert (world.place_of(pod), calls) == (None, ["D"])

    run(go())


def test_12_5_with_the_gate_off_all_plugins_run_in_order(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        calls: list[str] = []
        flights = {"V": PARALLEL_WORK, "D": PARALLEL_SKIP, "X": PreFlight(error("never asked"))}
        plugins = [pre_binding(name, flight, calls=calls) for name, flight in flights.items()]
        gates = FeatureGates({"NominatedNodeNameForExpectation": False})
        world, _, _ = failing_world(
            make_world, *plugins, permit((Status.wait(), 10.0)), gates=gates
        )
        world.schedule()
        world.scheduler.waiting_pods.get("u1").allow("Permit")
        await world.settle()
        assert calls == ["V", "D", "X"]
        assert world.server.patches == []
        assert world.server.bound == {"p": "n1"}

    run(go())


def test_a_wait_that_never_began_does_not_delay_the_next_attempt(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        world, _, _ = failing_world(
            make_world, permit((Status.wait(), 900.0)), pre_binding("V", PreFlight(error("boom")))
        )
        world.schedule()
        await world.settle()
        assert list(world.scheduler.waiting_pods) == []

    run(go())


# --- PreBind (§12.4) ---


def test_a_group_runs_at_the_same_time(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        order: list[str] = []

        def working(name: str, seconds: float) -> Callable[[], Awaitable[Status | None]]:
            async def work() -> Status | None:
                order.append(f"{name} begins")
                await asyncio.sleep(seconds)
                order.append(f"{name} ends")
                return None

            return work

        world, _, _ = failing_world(
            make_world,
            pre_binding("V", PARALLEL_WORK, working("V", 5)),
            pre_binding("D", PARALLEL_WORK, working("D", 3)),
            pre_binding("X", WORK, working("X", 1)),
        )
        world.schedule()
        await asyncio.sleep(7)
        assert order == ["V begins", "D begins", "D ends", "V ends", "X begins", "X ends"]
        assert world.server.bound == {"p": "n1"}

    run(go())


def test_the_first_failure_of_a_group_cancels_the_others(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        cancelled: list[str] = []

        async def slow() -> Status | None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError as cancellation:
                cancelled.append(str(cancellation))
                raise
            return None

        async def failing() -> Status | None:
            await asyncio.sleep(2)
            return UNSCHEDULABLE("no disk")

        world, pod, _ = failing_world(
            make_world,
            pre_binding("V", PARALLEL_WORK, slow),
            pre_binding("D", PARALLEL_WORK, failing),
            pre_binding("X", WORK, slow),
        )
        world.schedule()
        await asyncio.sleep(3)
        assert cancelled == ["some other PreBind operation failed"]
        assert world.conditions == [("Unschedulable", "no disk")]
        assert world.place_of(pod) is Place.ERROR_BACKOFF

    run(go())


@pytest.mark.parametrize("is_group", [False, True], ids=["alone", "in-a-group"])
def test_a_pod_in_pre_bind_can_be_cancelled(
    make_world: type[World], run: Run, is_group: bool
) -> None:
    async def slow() -> Status | None:
        await asyncio.sleep(1000)
        return None

    async def go() -> None:
        flight = PARALLEL_WORK if is_group else WORK
        plugins = [pre_binding("V", flight, slow)]
        if is_group:
            plugins.append(pre_binding("D", flight, slow))
        world, pod, undone = failing_world(make_world, *plugins)
        world.schedule()
        await asyncio.sleep(5)
        entry = world.scheduler.binder.in_pre_bind["u1"]
        assert entry.cancel("preempted by DefaultPreemption")
        await world.settle()
        text = 'running PreBind plugin "V": preempted by DefaultPreemption'
        assert world.conditions == [("SchedulerError", text)]
        assert undone == ["unreserve"]
        assert world.place_of(pod) is Place.ERROR_BACKOFF
        assert world.scheduler.binder.in_pre_bind == {}
        assert world.scheduler.tasks.is_idle

    run(go())


def test_a_plugin_that_ends_despite_the_cancellation(make_world: type[World], run: Run) -> None:
    async def ignores_cancellation() -> Status | None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        return None

    async def go() -> None:
        world, pod, _ = failing_world(make_world, pre_binding("V", WORK, ignores_cancellation))
        world.schedule()
        await asyncio.sleep(5)
        assert world.scheduler.binder.in_pre_bind["u1"].cancel("preempted by DefaultPreemption")
        await world.settle()
        assert world.conditions == [("SchedulerError", "preempted by DefaultPreemption")]
        assert world.place_of(pod) is Place.ERROR_BACKOFF
        assert world.server.bound == {}

    run(go())


def test_during_bind_a_pod_is_not_in_pre_bind(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        entries: list[Any] = []

        async def bind(*_: object) -> Status | None:
            entries.append(world.scheduler.binder.in_pre_bind.get("u1"))
            return None

        world, _, _ = failing_world(make_world, pre_binding("V", WORK), make_plugin("B", bind=bind))
        world.schedule()
        await world.settle()
        assert entries == [None]

    run(go())


def test_cancelling_the_task_cancels_the_binding(make_world: type[World], run: Run) -> None:
    """At shutdown: nothing is undone, the process ends."""

    async def slow() -> Status | None:
        await asyncio.sleep(1000)
        return None

    async def go() -> None:
        world, _, undone = failing_world(make_world, pre_binding("V", WORK, slow))
        world.schedule()
        await asyncio.sleep(1)
        (task,) = world.scheduler.tasks._tasks - {asyncio.current_task()}
        task.cancel()
        await world.settle()
        assert task.cancelled()
        assert undone == []

    run(go())


def test_pods_to_activate_are_activated_after_binding(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        parked_later: list[Pod] = []

        async def bind(state: CycleState, *_: object) -> Status | None:
            for pod in parked_later:
                state.pods_to_activate[pod.metadata.name] = pod
            return None

        parking = ParksPods()
        world = make_world(parking, make_plugin("B", bind=bind), nodes=[make_node("n1")])
        parked = world.create(make_pod("parked"))
        world.schedule()
        assert world.place_of(parked) is Place.UNSCHEDULABLE
        parked_later.append(parked)
        world.create(make_pod("p"))
        world.schedule()
        await world.settle()
        assert world.place_of(parked) is Place.ACTIVE

    run(go())


# --- writes of one pod keep their order ---


def test_a_binding_waits_for_the_condition_of_the_attempt_before(run: Run, make_world: Any) -> None:
    """An API server that takes the condition last would leave a bound pod PodScheduled=False."""
    refusals = [Status.unschedulable("full")]

    def reserve(*_: object) -> Status | None:
        return refusals.pop() if refusals else None

    async def go() -> None:
        once = make_plugin("Once", reserve=reserve, unreserve=lambda *_: None, events=tuple)
        world: World = make_world(once, nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        other = make_pod("q")
        world.server.patching.clear()
        world.schedule()
        await world.settle()
        world.queue.activate([pod])
        world.create(other)
        world.schedule()
        world.schedule()
        await world.settle()
        # The other pod has nothing under way and does not wait.
        assert (world.server.patches, world.server.bound) == ([], {"q": "n1"})
        world.server.patching.set()
        await world.settle()
        assert [patch.pod for patch in world.server.patches] == ["p"]
        assert world.server.bound == {"q": "n1", "p": "n1"}

    run(go())
