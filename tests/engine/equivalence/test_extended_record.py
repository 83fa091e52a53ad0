"""What a plugin keeps for all rows is added to a record: no decision differs from asking it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.engine.equivalence.sides import NoNominations

from kubestow.api.meta import OwnerReference
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.load_aware_args import LoadAwareArgs, LoadEstimate, LoadThresholds
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import build_profiles
from kubestow.framework.runner import run_reserve, run_unreserve
from kubestow.plugins.load_aware import LoadAware
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import ManualClock, make_handle, make_node, make_pod
from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore

GIB = 1 << 30
SECOND = 10**9
NODES = 12
ARGS = LoadAwareArgs(
    thresholds=LoadThresholds(average={"cpu": 60, "memory": 70}),
    estimate=LoadEstimate(fade_seconds=60),
    max_age_seconds=100,
)


class Side:
    """A scheduler's deciding half with LoadAware, on its own snapshot of a shared cache."""

    def __init__(self, cluster: "World", *, reuses_answers: bool) -> None:
        self.snapshot = Snapshot()
        self._cache = cluster.cache

        def handle(name: str) -> Any:
            handle = make_handle(
                snapshot=self.snapshot, clock=cluster.clock, objects=cluster.objects
            )
            handle.nominator = NoNominations()
            handle.activate = lambda pods: None
            handle.usage = cluster.usage
            return handle

        config = ProfileConfig(
            plugins=Plugins(multi_point=PluginSet(enabled=(PluginRef(LoadAware.name, 3),))),
            plugin_config=(PluginConfig(name=LoadAware.name, args=ARGS),),
        )
        self.profile = build_profiles([config], REGISTRY, handle)["default-scheduler"]
        self.decider = Decider(self.snapshot, NoNominations(), reuses_answers=reuses_answers)

    def decide(self, pod: Pod) -> Decision:
        self.snapshot.refresh(self._cache)
        return self.decider.decide(self.profile, PodInfo(pod))

    def is_extended(self) -> bool:
        """Whether the last attempt had such a record."""
        records = self.decider._records
        assert records is not None
        place = records._last
        kept = None if place is None else place.kept
        return kept is not None and kept._extension is not None


class World:
    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.usage = UsageStore(history=2)
        self.cache = Cache()
        self.objects = ClusterObjects()
        self.nodes = [make_node(f"n{number}", cpu="8", memory="32Gi") for number in range(NODES)]
        for node in self.nodes:
            self.cache.add_node(node)
        self.placed: list[tuple[Pod, str, list[Decision]]] = []
        self.reusing = Side(self, reuses_answers=True)
        self.plain = Side(self, reuses_answers=False)
        self._count = 0

    def measure(self, first: int, count: int, share: int) -> None:
        self.clock.advance_s(1)
        self.usage.add(
            Measurement(
                self.clock.now_ns(),
                Amounts(80 * ((share + 7 * number) % 100), GIB * (share % 30)),
                node=f"n{number % NODES}",
            )
            for number in range(first, first + count)
        )

    def place(self, kind: int) -> None:
        self._count += 1
        pod = make(kind, self._count)
        decisions = [side.decide(pod) for side in (self.reusing, self.plain)]
        assert describe(decisions[0]) == describe(decisions[1])
        name = decisions[0].node_name
        if name:
            self.cache.assume_pod(PodInfo(pod).assigned_to(name))
            for side, decision in zip((self.reusing, self.plain), decisions, strict=True):
                run_reserve(side.profile, decision.state, PodInfo(pod).assigned_to(name), name)
            self.placed.append((pod, name, decisions))

    def remove(self, number: int) -> None:
        if self.placed:
            pod, name, decisions = self.placed.pop(number % len(self.placed))
            assigned = PodInfo(pod).assigned_to(name)
            for side, decision in zip((self.reusing, self.plain), decisions, strict=True):
                run_unreserve(side.profile, decision.state, assigned, name)
            self.cache.forget_pod(assigned.pod)

    def learn(self, number: int) -> None:
        """A pod is seen on a node that the cache has counted long before."""
        self._count += 1
        pod = make_pod(f"f{self._count}", cpu="1", memory="1Gi")
        self.objects.put(pod)
        spec = replace(pod.spec, node_name=f"n{number}")
        self.objects.put(replace(pod, spec=spec))

    def resize(self, number: int, cpu: int) -> None:
        node = make_node(f"n{number}", cpu=str(cpu), memory="32Gi")
        self.cache.update_node(self.nodes[number], node)
        self.nodes[number] = node


def make(kind: int, number: int) -> Pod:
    """Of two shapes; with an owner whose pods are measured; and one that is never kept out."""
    if kind == 3:
        daemons = OwnerReference(
            api_version="apps/v1", kind="DaemonSet", name="d", uid="d", controller=True
        )
        return make_pod(f"p{number}", cpu="500m", memory="1Gi", owner=daemons)
    if kind == 2:
        job = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid="j", controller=True)
        return make_pod(f"p{number}", cpu="500m", memory="1Gi", owner=job)
    return make_pod(f"p{number}", cpu=("500m", "2")[kind], memory="1Gi")


def describe(decision: Decision) -> tuple[Any, ...]:
    scores = decision.scores
    return (
        decision.node_name,
        decision.message,
        decision.feasible.tolist(),
        decision.evaluated_count,
        sorted(decision.diagnosis.unschedulable_plugins),
        None if scores is None else scores.total.tolist(),
        None if scores is None else [(p.plugin, p.raw.tolist()) for p in scores.by_plugin],
        None if scores is None else sorted(decision.state.skip_score),
    )


numbers = st.integers(0, NODES - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.integers(0, 3), st.integers(1, 8), st.just(0)),
        st.tuples(st.just("measure"), numbers, st.integers(1, NODES), st.integers(0, 99)),
        st.tuples(st.just("remove"), st.integers(0, 50), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 80), st.just(0), st.just(0)),
        st.tuples(st.just("learn"), numbers, st.just(0), st.just(0)),
        st.tuples(st.just("resize"), numbers, st.integers(2, 9), st.just(0)),
        st.tuples(st.just("sibling"), st.integers(1, 3000), st.just(0), st.just(0)),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(st.integers(1, NODES), st.integers(0, 99), steps)
def test_decisions_equal_those_of_asking_every_plugin(
    measured: int, share: int, changes: Any
) -> None:
    world = World()
    world.measure(0, measured, share)
    for what, first, second, third in changes:
        match what:
            case "place":
                for _ in range(second):
                    world.place(first)
            case "measure":
                world.measure(first, second, third)
            case "remove":
                world.remove(first)
            case "wait":
                world.clock.advance_s(first)
            case "learn":
                world.learn(first)
            case "resize":
                world.resize(first, second)
            case _:
                world.clock.advance_s(1)
                used = Amounts(first, GIB)
                now_ns = world.clock.now_ns()
                world.usage.add(
                    [
                        Measurement(
                            now_ns, used, namespace="default", pod="x", workload="default/Job/j"
                        )
                    ]
                )
    for _ in range(3):
        world.place(0)


@pytest.mark.parametrize("hot", [False, True])
def test_equal_pods_ask_the_plugin_no_more(hot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.measure(0, NODES, 99 if hot else 0)
    for _ in range(6):
        world.place(0)
    assert world.reusing.is_extended()
    plugin = world.reusing.profile.plugins[LoadAware.name]
    asked: list[str] = []
    for name in ("filter", "score", "pre_score"):
        monkeypatch.setattr(plugin, name, lambda *_, name=name: asked.append(name))
    for number in range(6):
        assert world.reusing.decide(make(0, 100 + number)).node_name
    assert asked == []


def test_pods_of_other_profiles_count_from_when_they_are_seen() -> None:
    world = World()
    world.measure(0, NODES, 10)
    for number in range(20):
        world.place(0)
        world.learn(number % NODES)


def test_nodes_without_a_measurement_follow_the_mean_of_the_others() -> None:
    world = World()
    world.measure(0, NODES // 2, 0)
    for _ in range(20):
        world.place(0)


@pytest.mark.parametrize("hot", [False, True])
def test_after_a_measurement_only_the_answers_are_added_again(hot: bool) -> None:
    world = World()
    world.measure(0, NODES, 99 if hot else 10)
    for _ in range(6):
        world.place(0)
    kept = world.reusing.decider._records._last.kept  # type: ignore[union-attr]
    extended = kept._extension  # type: ignore[union-attr]
    for share in (55, 10):
        world.measure(0, NODES, 99 if hot else share)
        for _ in range(3):
            world.place(0)
        kept = world.reusing.decider._records._last.kept  # type: ignore[union-attr]
        assert kept._extension is extended  # type: ignore[union-attr]


def test_a_record_that_failed_to_take_answers_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.measure(0, NODES, 10)
    for _ in range(6):
        world.place(0)
    kept = world.reusing.decider._records._last.kept  # type: ignore[union-attr]
    extended = kept._extension  # type: ignore[union-attr]
    world.measure(0, NODES, 55)

    def fail(nodes: Any) -> None:
        raise ValueError("disk full")

    monkeypatch.setattr(extended, "_verdicts", fail)
    world.place(0)
    assert extended.is_spoilt  # type: ignore[union-attr]
    for _ in range(4):
        world.place(0)
    kept = world.reusing.decider._records._last.kept  # type: ignore[union-attr]
    assert kept._extension is not extended  # type: ignore[union-attr]


def test_where_no_node_fitted_scores_are_made_again() -> None:
    """They are not kept up to date as long as every node is rejected."""
    world = World()
    world.measure(0, NODES, 0)
    for _ in range(4):
        world.place(0)
    for row in range(NODES):
        world.measure(row, 1, 99)
    for _ in range(3):
        world.place(0)
    world.remove(0)
    world.measure(0, NODES, 0)
    world.measure(0, NODES, 0)
    for _ in range(4):
        world.place(0)
