"""A plan is carried out step by step, and ends at the first surprise."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import Raw, budget, documents, node, owner, pod
from tests.simulator.rebalance.test_gangs import SETUP, gang

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.eviction import evict
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.server_fields import require_same
from kubestow.clock import Clock, SystemClock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ApiError, ConflictError, InputError
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.manifests import READ_KINDS
from kubestow.simulator.rebalance import RebalanceOptions, carrying_out, read_goal
from kubestow.simulator.rebalance.carrying_out import PlanRunner, RebalanceRun
from kubestow.simulator.rebalance.ground import ground_of
from kubestow.simulator.rebalance.pacing import Pacing, parse_hours
from kubestow.simulator.rebalance.plan import EvictedPod, ScaledOwner
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import PlayedStage
from kubestow.simulator.virtual_time import run_in_virtual_time

START_S = 3.0
CROWDED = [
    node("a"),
    node("b"),
    node("c"),
    owner("web", 4, cpu="500m"),
    *(pod(f"web-{number}", "a", cpu="500m", restartPolicy="Always") for number in range(4)),
]


class Server:
    """A cluster in virtual time. `before_eviction` is called with the number of the eviction.

    `after_read` is called with the number of reads so far, the first being that of the plan; it may
    raise.
    """

    def __init__(self, store: MemoryCluster, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self.before_eviction: Callable[[int], None] = lambda _: None
        self.after_eviction: Callable[[int], None] = lambda _: None
        self.after_read: Callable[[int], None] = lambda _: None
        # Called with the number of replicas before a controller is scaled.
        self.before_scaling: Callable[[int], None] = lambda _: None
        self.scaled: list[int] = []
        # Interrupts the run.
        self.stop: Callable[[], None] = lambda: None
        self._reads = 0
        self.evicted: list[str] = []
        self.asked: list[str] = []
        self.notes: list[tuple[str, str]] = []

    async def read(self) -> Sequence[Document]:
        found = [
            Document(stored.document, f"{resource.qualified_name} {stored.name}")
            for resource in self.store.resources
            if resource.kind in READ_KINDS
            for stored in self.store.objects_of(resource)
        ]
        self._reads += 1
        self.after_read(self._reads)
        return found

    async def pods(self, namespace: str) -> Sequence[Pod]:
        pods = self.store.objects_of(PODS)
        found = [each.typed for each in pods if namespace in ("", each.key[0])]
        return [each for each in found if isinstance(each, Pod)]

    async def evict(self, pod: EvictedPod, version: str, *, is_dry: bool = False) -> None:
        if is_dry:
            self.asked.append(pod.name)
            return
        self.before_eviction(len(self.evicted) + 1)
        stored, now = self.store.get(PODS, pod.namespace, pod.name), self._clock.now_ns()
        evict(self.store, stored, now=whole_seconds(now), uid=pod.uid, resource_version=version)
        self.evicted.append(pod.name)
        self.after_eviction(len(self.evicted))

    async def annotate(
        self, namespace: str, name: str, values: Mapping[str, str | None], version: str = ""
    ) -> None:
        require_same(self.store.get(PODS, namespace, name), uid="", resource_version=version)
        patch = {"metadata": {"annotations": dict(values)}}
        self.store.patch(PODS, namespace, name, patch, "merge")

    async def scale(
        self, namespace: str, owner: ScaledOwner, *, before: int, after: int, version: str = ""
    ) -> None:
        self.before_scaling(after)
        resource = self.store.resources.named(f"{owner.kind.lower()}s.apps")
        stored = self.store.get(resource, namespace, owner.name)
        require_same(stored, uid=owner.uid, resource_version=version)
        if stored.document["spec"]["replicas"] != before:
            raise ConflictError(f"it has other replicas than {before}")
        patch = {"spec": {"replicas": after}}
        self.store.patch(resource, namespace, owner.name, patch, "merge")
        self.scaled.append(after)

    async def replica_set(self, namespace: str, name: str) -> JsonObject:
        resource = self.store.resources.named("replicasets.apps")
        return self.store.get(resource, namespace, name).document

    async def close_node(self, name: str, *, is_closed: bool) -> None:
        self.store.patch(NODES, "", name, {"spec": {"unschedulable": is_closed or None}}, "merge")

    def note(self, pod: Pod, reason: str, text: str) -> None:
        self.notes.append((reason, text))


class Played:
    def __init__(self, run: RebalanceRun, server: Server, texts: list[str], took_s: float) -> None:
        self.run = run
        self.server = server
        self.texts = texts
        self.took_s = took_s

    def is_closed(self, name: str) -> bool:
        return bool(self.server.store.get(NODES, "", name).document["spec"].get("unschedulable"))


def play(
    goal: str,
    *raw: Raw,
    act: Callable[[Server, int], None] = lambda server, number: None,
    after: Callable[[Server, int], None] = lambda server, number: None,
    read: Callable[[Server, int], None] = lambda server, number: None,
    stop_after: int = 0,
    stop_at: str = "",
    pacing: Callable[[Clock], Pacing] = Pacing,
    scaling: Callable[[Server, int], None] = lambda server, number: None,
    setup: PlacingSetup | None = None,
    surges: bool = False,
    then: Callable[[Server], Awaitable[None]] | None = None,
    **options: Any,
) -> Played:
    """Plan, and carry out in virtual time; `act` is called before each eviction, `read` after each
    read, `scaling` before a controller is scaled, with its replicas after that.

    It is interrupted after an eviction, by its number, or at a text of its progress.
    """

    setup = setup or PlacingSetup()

    async def run() -> Played:
        scenario = Scenario(
            name="run",
            until_s=math.inf,
            documents=documents(*raw),
            start_delay_s=START_S,
            stop_s=math.inf,
            stops_repeating=True,
        )
        simulation = Simulation(scenario, SchedulerConfig(), gates=setup.gates)
        stage, clock = simulation.stage, simulation.clock
        assert isinstance(stage, PlayedStage)
        server, texts = Server(stage.store, clock), list[str]()
        stopping = Stopping(clock, math.inf)

        def planner(found: Sequence[Document]) -> Planner:
            ground = ground_of(found, setup, clock)
            given = RebalanceOptions(max_moves=10, surges=surges)
            return Planner(ground, read_goal(goal), given, Stopping(clock, math.inf))

        def acted(number: int) -> None:
            after(server, number)
            if number == stop_after:
                stopping.stop()

        def said(text: str) -> None:
            texts.append(text)
            if stop_at and text.startswith(stop_at):
                stopping.stop()

        server.before_eviction = lambda number: act(server, number)
        server.after_eviction = acted
        server.stop = stopping.stop
        server.before_scaling = lambda number: scaling(server, number)
        server.after_read = lambda number: read(server, number)
        async with simulation.running():
            plan = planner(await server.read()).plan()
            runner = PlanRunner(
                server,
                clock,
                planner,
                pacing=pacing(clock),
                stopping=stopping,
                on_text=said,
                max_moves=10,
                **options,
            )
            started_s = clock.monotonic_s()
            done = await runner.run(plan)
            if then is not None:
                await then(server)
            return Played(done, server, texts, clock.monotonic_s() - started_s)

    return run_in_virtual_time(_no_nested(run))


async def _no_nested(run: Callable[[], Any]) -> Played:
    return await run()


def appears(server: Server, name: str, on: str, cpu: str) -> None:
    """A pod that another scheduler has placed."""
    server.store.load([pod(name, on, cpu=cpu, kind="")], admission=False)


def test_all_steps_are_done_as_foretold() -> None:
    played = play("balance", *CROWDED)
    assert played.run.surprise == ""
    assert len(played.run.done) == played.run.planned == 2
    assert all(move.actual == move.foretold for move in played.run.done)
    assert played.server.notes[0][0] == "Rebalance"


def test_the_next_eviction_waits_for_the_end_of_the_last() -> None:
    played = play("balance", *CROWDED, budget("web", maxUnavailable=1))
    assert played.run.surprise == ""
    # Each pod takes its grace period of 30 s to end.
    assert played.took_s >= 60


def test_a_pod_that_appears_ends_the_run_before_anything_is_evicted_in_vain() -> None:
    """It takes the place that the second replacement needs."""

    def fill(server: Server, number: int) -> None:
        if number == 1:
            for name in ("b", "c"):
                appears(server, f"filler-{name}", name, "3500m")

    played = play("balance", *CROWDED, after=fill)
    assert len(played.server.evicted) == 1
    assert played.run.surprise
    assert len(played.run.done) == 1


def test_a_change_that_does_no_harm_is_no_surprise() -> None:
    def appear(server: Server, number: int) -> None:
        appears(server, f"tiny-{number}", "a", "1m")

    played = play("balance", *CROWDED, after=appear)
    assert played.run.surprise == ""
    assert len(played.run.done) == 2


def test_a_node_that_is_closed_ends_the_run() -> None:
    def close(server: Server, number: int) -> None:
        if number == 1:
            for name in ("b", "c"):
                server.store.patch(NODES, "", name, {"spec": {"unschedulable": True}}, "merge")

    played = play("balance", *CROWDED, after=close)
    assert len(played.server.evicted) == 1
    assert played.run.surprise


def test_it_plans_again_after_a_surprise() -> None:
    """The node of the second replacement is closed: the pod goes to another one."""
    closed: list[str] = []

    def close_last(server: Server, number: int) -> None:
        if number == 1:
            used = {each.typed.spec.node_name for each in server.store.objects_of(PODS)}  # type: ignore[attr-defined]
            name = next(name for name in ("b", "c") if name not in used)
            closed.append(name)
            server.store.patch(NODES, "", name, {"spec": {"unschedulable": True}}, "merge")

    played = play("balance", *CROWDED, after=close_last, replans=True)
    assert played.run.plans == 2
    assert played.run.surprise == ""
    assert all(move.actual not in closed for move in played.run.done)


def test_an_interrupted_run_ends_after_the_eviction_under_way() -> None:
    played = play("balance", *CROWDED, stop_after=1)
    assert played.run.surprise == "interrupted"
    assert [move.actual == move.foretold for move in played.run.done] == [True]


def test_nodes_that_were_closed_in_vain_are_opened_again() -> None:
    raw = [
        node("a"),
        node("b"),
        owner("web", 2),
        owner("db", 1),
        pod("web-1", "a"),
        pod("web-2", "a"),
        pod("db-1", "b"),
        pod("own-1", "b", kind=""),
    ]
    played = play("empty-nodes", *raw, stop_after=1)
    assert played.run.opened_again == ("a",)
    assert not played.is_closed("a")


def test_a_node_that_was_closed_for_a_while_is_opened_by_an_interrupted_run() -> None:
    """All of its pods are gone, and only its opening is left of the plan."""
    raw = [
        node("a"),
        node("b"),
        node("c"),
        owner("web", 1),
        owner("mail", 1),
        pod("web-1", "a"),
        pod("mail-1", "b"),
        pod("db-1", "c", kind=""),
    ]
    played = play("defragment=cpu:4", *raw, stop_after=1)
    assert played.run.surprise == "interrupted"
    assert not any(map(played.is_closed, "abc"))


def test_an_empty_node_that_was_closed_for_the_plan_is_opened_again() -> None:
    raw = [
        node("a"),
        node("b"),
        node("unused"),
        owner("web", 2),
        pod("web-1", "a"),
        pod("web-2", "a"),
        pod("db-1", "b", kind=""),
    ]
    whole = play("empty-nodes", *raw)
    assert whole.is_closed("a")
    assert whole.is_closed("unused")
    assert whole.run.opened_again == ()
    played = play("empty-nodes", *raw, stop_after=1)
    assert set(played.run.opened_again) == {"a", "unused"}
    assert not any(map(played.is_closed, ("a", "b", "unused")))


def test_nodes_that_became_empty_stay_closed() -> None:
    raw = [node("a"), node("b"), owner("web", 1), pod("web-1", "a"), pod("db-1", "b", kind="")]
    played = play("empty-nodes", *raw)
    assert played.run.surprise == ""
    assert played.run.opened_again == ()
    assert played.is_closed("a")


def test_figures_are_those_of_nodes_before_they_were_closed() -> None:
    """Closed nodes do not count for what fits, and this run closes one for a while."""
    raw = [
        node("a"),
        node("b"),
        node("c"),
        owner("web", 1),
        owner("mail", 1),
        pod("web-1", "a"),
        pod("mail-1", "b"),
        pod("db-1", "c", kind=""),
    ]
    played = play("defragment=cpu:4", *raw)
    assert played.run.surprise == ""
    assert len(played.run.done) == 2
    assert not any(map(played.is_closed, "abc"))


def test_a_budget_that_is_used_up_meanwhile_ends_the_run() -> None:
    def tighten(server: Server, number: int) -> None:
        raise ApiError("would violate the pod's disruption budget", code=429)

    played = play("balance", *CROWDED, act=tighten)
    assert played.server.evicted == []
    assert "was refused" in played.run.surprise


def test_a_refused_request_evicts_nothing() -> None:
    def forbid(server: Server, number: int) -> None:
        raise ApiError("pods/eviction is forbidden", code=403)

    with pytest.raises(ApiError, match="forbidden"):
        play("balance", *CROWDED, act=forbid)


def test_a_request_that_fails_later_ends_the_run_with_an_account() -> None:
    def fail(server: Server, number: int) -> None:
        if number == 2:
            raise ApiError("the server is gone", code=503)

    played = play("balance", *CROWDED, act=fail)
    assert played.run.surprise == "a request failed: the server is gone"
    assert len(played.run.done) == 1


# --- A cluster that changes while it is read ----------------------------------------------------


def annotate(server: Server, name: str, key: str, value: str) -> None:
    patch = {"metadata": {"annotations": {key: value}}}
    server.store.patch(PODS, "default", name, patch, "merge")


def test_a_pod_that_changes_after_it_was_read_is_judged_again() -> None:
    """The second read is the one before the first eviction."""

    def protect(server: Server, number: int) -> None:
        if number == 2:
            annotate(server, "web-0", "karpenter.sh/do-not-disrupt", "true")

    played = play("balance", *CROWDED, read=protect)
    assert played.server.evicted == []
    assert played.run.surprise == (
        "pod default/web-0 must stay now: it has the annotation karpenter.sh/do-not-disrupt"
    )
    assert played.texts == []


def test_a_pod_that_changes_without_harm_is_evicted_in_its_new_version() -> None:
    def touch(server: Server, number: int) -> None:
        if number == 2:
            annotate(server, "web-0", "example.com/touched", "once")

    played = play("balance", *CROWDED, read=touch)
    assert played.run.surprise == ""
    assert len(played.server.evicted) == 2


@pytest.mark.parametrize("when", ["read", "act"])
def test_a_pod_that_changes_at_every_read_is_not_evicted(when: str) -> None:
    """After the cluster was read, or only between the list of pods and the eviction."""
    counts = iter(range(100))

    def touch(server: Server, number: int) -> None:
        annotate(server, "web-0", "example.com/touched", str(next(counts)))

    played = play("balance", *CROWDED, **{when: touch})
    assert played.server.evicted == []
    assert played.run.surprise == "pod default/web-0 changes each time the cluster is read"


@pytest.mark.parametrize(("when", "number"), [("read", 2), ("act", 1)])
def test_a_pod_that_is_gone_when_it_is_evicted_ends_the_run(when: str, number: int) -> None:
    def delete(server: Server, count: int) -> None:
        if count == number:
            server.store.delete(PODS, "default", "web-0", grace_period_s=0)

    played = play("balance", *CROWDED, **{when: delete})
    assert played.server.evicted == []
    assert played.run.surprise.startswith("pod default/web-0 is gone")
    assert len(played.run.surprise.splitlines()) == 1


def test_another_pod_of_the_same_name_is_not_evicted() -> None:
    def replace(server: Server, number: int) -> None:
        server.store.delete(PODS, "default", "web-0", grace_period_s=0)
        server.store.load([{**pod("web-0", "a", cpu="500m"), "metadata": other}], admission=False)

    other = {**pod("web-0", "a")["metadata"], "uid": "another"}
    played = play("balance", *CROWDED, act=replace)
    assert played.server.evicted == []
    assert played.run.surprise.startswith("pod default/web-0 is gone: ")


def test_a_cluster_that_cannot_be_read_before_the_first_eviction_is_an_error() -> None:
    def fail(server: Server, number: int) -> None:
        if number == 2:
            raise InputError("cannot list pods of example: too old")

    with pytest.raises(InputError, match="cannot list pods"):
        play("balance", *CROWDED, read=fail)


@pytest.mark.parametrize("replans", [False, True])
def test_a_cluster_that_cannot_be_read_later_ends_the_run_with_an_account(replans: bool) -> None:
    def fail(server: Server, number: int) -> None:
        if number == 3:
            raise InputError("cannot list pods of example: too old")

    played = play("balance", *CROWDED, read=fail, replans=replans)
    assert len(played.run.done) == len(played.server.evicted) == 1
    assert played.run.surprise == "a request failed: cannot list pods of example: too old"


def test_a_cluster_that_cannot_be_read_for_another_plan_ends_the_run_with_an_account() -> None:
    """The second pod is gone at the third read, and the fourth fails."""

    def vanish(server: Server, number: int) -> None:
        if number == 4:
            raise InputError("cannot list pods of example: too old")

    def delete(server: Server, number: int) -> None:
        if number == 1:
            server.store.delete(PODS, "default", "web-1", grace_period_s=0)

    played = play("balance", *CROWDED, read=vanish, after=delete, replans=True)
    assert len(played.run.done) == len(played.server.evicted) == 1
    assert played.run.surprise == "a request failed: cannot list pods of example: too old"


def test_an_eviction_that_takes_too_long_is_in_the_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(carrying_out, "PATIENCE_S", -25.0)
    played = play("balance", *CROWDED)
    assert "is not ready in time" in played.run.surprise
    assert len(played.run.done) == len(played.server.evicted) == 1


def test_an_interrupted_run_does_not_plan_again() -> None:
    played = play(
        "balance",
        *CROWDED,
        stop_at="the next eviction may be in",
        replans=True,
        pacing=lambda clock: Pacing(clock, pause_s=600),
    )
    assert played.run.surprise == "interrupted"
    assert len(played.server.evicted) == 1
    assert not any(text.startswith("planned again") for text in played.texts)


def test_evictions_keep_their_pace() -> None:
    slow = play("balance", *CROWDED, pacing=lambda clock: Pacing(clock, pause_s=600))
    assert slow.took_s >= 600
    hourly = play("balance", *CROWDED, pacing=lambda clock: Pacing(clock, per_hour=1))
    assert hourly.took_s >= 3600


def test_evictions_keep_the_hours_of_the_day() -> None:
    def only(hours: str) -> Callable[[Clock], Pacing]:
        return lambda clock: Pacing(clock, hours=parse_hours(hours))

    # A run begins at midnight.
    assert play("balance", *CROWDED, pacing=only("22-6")).took_s < 600
    assert play("balance", *CROWDED, pacing=only("8:30-17")).took_s >= 8.5 * 3600


@pytest.mark.parametrize(
    ("hours", "time", "expected"),
    [
        ("8-17", 9, 0),
        ("8-17", 17, 15),
        ("8-17", 7, 1),
        ("22-6", 23, 0),
        ("22-6", 5, 0),
        ("22-6", 6, 16),
    ],
)
def test_hours_may_go_over_midnight(hours: str, time: int, expected: int) -> None:
    assert parse_hours(hours).wait_s(time * 3600) == expected * 3600


# --- Gangs --------------------------------------------------------------------------------------

GANG = [node("a", cpu="3"), node("b", cpu="8"), *gang("train", "a", "a", "a")]


def test_a_gang_is_evicted_together() -> None:
    played = play("balance", *GANG, setup=SETUP)
    assert played.run.surprise == ""
    assert [(move.pod, move.actual) for move in played.run.done] == [
        (f"default/train-{number}", "b") for number in (1, 2, 3)
    ]
    # Each was asked for first; all end in the same grace period.
    assert played.server.asked == played.server.evicted == ["train-1", "train-2", "train-3"]
    assert played.took_s < 60


def test_no_member_is_evicted_if_one_has_changed() -> None:
    def protect(server: Server, number: int) -> None:
        if number == 2:
            annotate(server, "train-3", "karpenter.sh/do-not-disrupt", "true")

    raw = [*GANG[:-1], {**GANG[-1], "spec": {**GANG[-1]["spec"], "restartPolicy": "Always"}}]
    played = play("balance", *raw, setup=SETUP, read=protect)
    assert played.server.evicted == []
    assert "its gang stays because of train-3" in played.run.surprise


def test_members_that_were_evicted_are_in_the_account_if_another_is_refused() -> None:
    def refuse(server: Server, number: int) -> None:
        if number == 3:
            raise ApiError("the server is gone", code=503)

    played = play("balance", *GANG, setup=SETUP, act=refuse)
    assert [(move.pod, move.actual) for move in played.run.done] == [
        ("default/train-1", ""),
        ("default/train-2", ""),
    ]
    assert played.run.surprise == "a request failed: the server is gone"


def test_a_gang_that_is_placed_otherwise_is_a_surprise() -> None:
    def close(server: Server, number: int) -> None:
        if number == 3:
            server.store.patch(NODES, "", "b", {"spec": {"unschedulable": True}}, "merge")
            server.store.load([node("c", cpu="8")], admission=False)

    played = play("balance", *GANG, setup=SETUP, after=close)
    assert "foretold was b" in played.run.surprise
    assert len(played.run.done) == 3


def test_a_gang_keeps_the_limit_of_an_hour_as_a_whole() -> None:
    few = play("balance", *GANG, setup=SETUP, pacing=lambda clock: Pacing(clock, per_hour=2))
    assert few.run.surprise == "a gang of 3 pods is more than may be evicted in an hour"
    assert few.server.evicted == []
    enough = play("balance", *GANG, setup=SETUP, pacing=lambda clock: Pacing(clock, per_hour=3))
    assert len(enough.server.evicted) == 3


class SetClock(SystemClock):
    time_s = 0.0

    def monotonic_s(self) -> float:
        return self.time_s


def test_several_evictions_wait_for_all_of_their_hour() -> None:
    clock = SetClock()
    pacing = Pacing(clock, per_hour=3)
    for time_s in (0.0, 600.0):
        clock.time_s = time_s
        pacing.evicted()
    assert pacing.wait_s(1) == 0
    assert pacing.wait_s(2) == 3000
    assert pacing.wait_s(3) == 3600
