"""Reuse between pods of one shape changes no decision."""

import gc
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.api.meta import ApiObject, LabelSelector, ObjectMeta, OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import ReplicaSet, ReplicaSetSpec, Service, ServiceSpec
from kubestow.cache.cache import Cache
from kubestow.cache.numbering import numbered_max
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.equivalence import records
from kubestow.engine.equivalence.evaluation import ReusingEvaluation
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.preparation import build_frame, build_record
from kubestow.engine.equivalence.record import Record
from kubestow.engine.equivalence.records import Records
from kubestow.engine.profiles import build_profiles
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.metrics import PRE_FILTER, PRE_SCORE
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.profile import FilterStep, ScoreStep
from kubestow.framework.reuse import ASKED, NO_REUSE, NOTHING_KNOWN, PodReads, Reads, Reuse, Rule
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_handle, make_node, make_node_affinity, make_pod, make_term


class NoNominations:
    def nominated_nodes(self) -> Sequence[str]:
        return ()

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        return ()

    def add(self, pod: Pod, *, override: str | None = None) -> None: ...

    def delete(self, pod: Pod) -> None: ...


class Side:
    """A scheduler's deciding half on its own snapshot of a shared cache."""

    def __init__(
        self,
        *,
        reuses_answers: bool,
        extra: Sequence[type] = (),
        objects: ClusterObjects | None = None,
    ) -> None:
        self.snapshot = Snapshot()

        def handle(name: str) -> Any:
            handle = make_handle(snapshot=self.snapshot, objects=objects)
            handle.nominator = NoNominations()
            handle.activate = lambda pods: None
            return handle

        enabled = tuple(PluginRef(plugin.name) for plugin in extra)
        config = ProfileConfig(plugins=Plugins(multi_point=PluginSet(enabled=enabled)))
        registry = {**REGISTRY, **{plugin.name: plugin for plugin in extra}}
        self.profile = build_profiles([config], registry, handle)["default-scheduler"]
        self.decider = Decider(self.snapshot, NoNominations(), reuses_answers=reuses_answers)

    def decide(self, cache: Cache, pod: PodInfo) -> Decision:
        self.snapshot.refresh(cache)
        return self.decider.decide(self.profile, pod)


ZONE = "topology.kubernetes.io/zone"
WEB_ZONES = PodAffinityTerm(
    topology_key=ZONE, label_selector=LabelSelector(match_labels={"app": "web"})
)


def apart(*, required: bool) -> Affinity:
    """Anti-affinity to the zones of web pods."""
    weighted = WeightedPodAffinityTerm(weight=7, pod_affinity_term=WEB_ZONES)
    return Affinity(
        pod_anti_affinity=PodAffinity(required=(WEB_ZONES,))
        if required
        else PodAffinity(preferred=(weighted,))
    )


def spread(when: str) -> list[TopologySpreadConstraint]:
    return [
        TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable=when,
            label_selector=LabelSelector(match_labels={"app": "web"}),
        )
    ]


def named(names: str) -> Affinity:
    """Only to nodes of these names, as every pod of a DaemonSet."""
    term = make_term(fields=[f"metadata.name In {names}"])
    return Affinity(node_affinity=make_node_affinity(term))


POD_KINDS: list[dict[str, Any]] = [
    {"cpu": "500m", "memory": "256Mi"},
    {"cpu": "2", "memory": "1Gi"},
    {"cpu": "100m", "host_ports": [80]},
    {"cpu": "100m", "node_selector": {"disk": "ssd"}},
    {"cpu": "100m", "labels": {"app": "web"}},
    {"memory": "3Gi", "labels": {"app": "web"}, "priority": 5},
    {"cpu": "9"},
    {},
    {"cpu": "100m", "affinity": apart(required=True)},
    {"cpu": "100m", "affinity": apart(required=False)},
    {"cpu": "100m", "labels": {"app": "web"}, "spread": spread("DoNotSchedule")},
    {"cpu": "100m", "labels": {"app": "web"}, "spread": spread("ScheduleAnyway")},
    {"cpu": "500m", "affinity": named("node-1")},
    {"cpu": "500m", "affinity": named("node-5"), "host_ports": [80]},
    {"cpu": "500m", "affinity": named("node-0,node-2")},
    {"requests": {"example.com/a": 1}},
    {"cpu": "100m", "requests": {"example.com/b": 1}},
]


def new_pod(kind: int, number: int) -> PodInfo:
    return PodInfo(make_pod(f"pod-{number}", **POD_KINDS[kind]))


def unlike_pod(kind: int, number: int) -> PodInfo:
    """A pod with labels, an owner and an amount of its own."""
    given = POD_KINDS[kind]
    labels = {"pod": f"pod-{number}", "half": str(number % 2), **given.get("labels", {})}
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=f"set-{number % 4}", controller=True
    )
    amount = {"memory": f"{number + 1}Mi"} if number % 3 else {}
    return PodInfo(
        make_pod(f"pod-{number}", **{**given, **amount, "labels": labels, "owner": owner})
    )


# What may come and go beside the pods: what selects some of them, and what serves some.
SELECTING: list[ApiObject] = [
    *(
        Service(
            metadata=ObjectMeta(name=f"service-{number}", namespace="default"),
            spec=ServiceSpec(selector=selector),
        )
        for number, selector in enumerate(
            ({"app": "web"}, {"half": "1"}, {}, None, {"pod": "pod-5", "half": "1"})
        )
    ),
    *(
        ReplicaSet(
            metadata=ObjectMeta(name=f"set-{number}", namespace="default"),
            spec=ReplicaSetSpec(selector=LabelSelector(match_labels=labels)),
        )
        for number, labels in enumerate(({"half": "0"}, {"app": "web"}))
    ),
]
# Devices serve a resource that nodes publish as well.
SERVING_A = DeviceClass(
    metadata=ObjectMeta(name="serves-a"),
    spec=DeviceClassSpec(extended_resource_name="example.com/a"),
)
CHANGING: list[ApiObject] = [*SELECTING, SERVING_A]


def new_node(number: int, variant: int) -> Node:
    return make_node(
        f"node-{number}",
        cpu=str(2 + variant % 3),
        memory=f"{2 + variant}Gi",
        labels={"disk": "ssd"} if variant % 2 else {},
        zone=f"zone-{variant % 3}",
        unschedulable=variant == 5,
        allocatable={"example.com/a": variant % 2, "example.com/b": variant % 4},
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, len(POD_KINDS) - 1)),
        st.tuples(st.just("pods"), st.integers(0, len(POD_KINDS) - 1)),
        st.tuples(st.just("node"), st.integers(0, 5)),
        st.tuples(st.just("update"), st.integers(0, 5)),
        st.tuples(st.just("gone"), st.integers(0, 30)),
        st.tuples(st.just("unlike"), st.integers(0, len(POD_KINDS) - 1)),
        st.tuples(st.just("changing"), st.integers(0, len(CHANGING) - 1)),
    ),
    min_size=5,
    max_size=25,
)


@settings(deadline=None)
@given(steps=steps)
def test_decisions_equal_those_of_asking_every_plugin(steps: list[tuple[str, int]]) -> None:
    cache, objects = Cache(), ClusterObjects()
    shared = Side(reuses_answers=True, objects=objects)
    plain = Side(reuses_answers=False, objects=objects)
    nodes: dict[int, Node] = {}
    for number in range(6):
        nodes[number] = new_node(number, number)
        cache.add_node(nodes[number])
    placed: list[PodInfo] = []
    number = 0

    def try_one(kind: int, make: Callable[[int, int], PodInfo] = new_pod) -> None:
        nonlocal number
        number += 1
        pod = make(kind, number)
        ours, theirs = shared.decide(cache, pod), plain.decide(cache, pod)
        assert describe(ours) == describe(theirs)
        assert shared.decider.next_start_index == plain.decider.next_start_index
        if ours.node_name:
            assumed = pod.assigned_to(ours.node_name)
            cache.assume_pod(assumed)
            placed.append(assumed)

    for action, value in steps:
        match action:
            case "pod":
                try_one(value)
            case "pods":
                for _ in range(4):
                    try_one(value)
            case "unlike":
                for _ in range(4):
                    try_one(value, unlike_pod)
            case "changing":
                chosen = CHANGING[value].metadata
                store = objects.store(type(CHANGING[value]))
                if store.get(chosen.namespace, chosen.name) is None:
                    objects.put(CHANGING[value])
                else:
                    store.remove(chosen.namespace, chosen.name)
            case "node":
                nodes[len(nodes)] = new_node(len(nodes), value)
                cache.add_node(nodes[len(nodes) - 1])
            case "update":
                target = value % len(nodes)
                updated = new_node(target, (value + 1) % 6)
                cache.update_node(nodes[target], updated)
                nodes[target] = updated
            case _:
                if placed:
                    cache.remove_pod(placed.pop(value % len(placed)).pod)


def describe(decision: Decision) -> tuple[Any, ...]:
    scores = decision.scores
    return (
        decision.node_name,
        decision.message,
        decision.feasible.tolist(),
        decision.evaluated_count,
        decision.nodes_to_find,
        sorted(decision.diagnosis.unschedulable_plugins),
        None if scores is None else scores.total.tolist(),
        None if scores is None else [(p.plugin, p.raw.tolist()) for p in scores.by_plugin],
        # The metrics count by these which plugins were asked.
        sorted(decision.state.skip_filter),
        None if scores is None else sorted(decision.state.skip_score),
    )


@pytest.mark.parametrize("make", [new_pod, unlike_pod])
def test_pods_of_one_frame_ask_no_plugin_about_all_nodes_again(
    make: Callable[[int, int], PodInfo],
) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(200):
        cache.add_node(make_node(f"node-{number}", cpu="64", memory="64Gi", pods=1000))
    fit = side.profile.plugins["NodeResourcesFit"]
    asked: list[int] = []
    plain_filter = fit.filter  # type: ignore[attr-defined]

    def counting(state: Any, pod: PodInfo, nodes: Any) -> Any:
        asked.append(len(nodes))
        return plain_filter(state, pod, nodes)

    fit.filter = counting  # type: ignore[attr-defined]
    for number in range(50):
        pod = make(1, number)
        cache.assume_pod(pod.assigned_to(side.decide(cache, pod).node_name))
    # The first two pods ask about the nodes they need, then the record about all; after that it is
    # one row at a time, by its row form. Where amounts differ, each asks about what it needs.
    assert sum(asked) <= (2 if make is new_pod else 50) * 101 + 3 * 200


def test_pods_that_each_name_a_node_ask_about_that_node() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(200):
        cache.add_node(make_node(f"node-{number}"))
    plugin: Any = side.profile.plugins["NodeUnschedulable"]
    asked: list[int] = []
    plain_filter = plugin.filter

    def counting(state: Any, pod: PodInfo, nodes: Any) -> Any:
        asked.append(len(nodes))
        return plain_filter(state, pod, nodes)

    plugin.filter = counting
    for number in range(20):
        pod = PodInfo(make_pod(f"pod-{number}", affinity=named(f"node-{number}")))
        assert side.decide(cache, pod).node_name == f"node-{number}"
    assert asked == [1] * 20


@given(seed=st.integers(0, 2**32 - 1))
def test_row_forms_equal_the_array_forms(seed: int) -> None:
    """The form for one row gives the same as the array form."""
    rng = np.random.default_rng(seed)
    cache, side = Cache(), Side(reuses_answers=False)
    for number in range(5):
        cache.add_node(new_node(number, int(rng.integers(0, 6))))
    for number in range(12):
        pod = new_pod(int(rng.integers(0, len(POD_KINDS))), number)
        cache.assume_pod(pod.assigned_to(f"node-{rng.integers(0, 5)}"))
    pod = new_pod(int(rng.integers(0, len(POD_KINDS))), 100)
    decision = side.decide(cache, pod)
    state, nodes = decision.state, nodes_of(side.snapshot)
    for step in side.profile.filter_steps:
        if step.row_form is not None and step.name not in state.skip_filter:
            codes = step.plugin.filter(state, pod, nodes)
            rows = [*map(step.row_form(state), side.snapshot.node_infos)]
            assert (codes.tolist() if codes is not None else [0] * 5) == rows
    for name, plugin in side.profile.pre_score_steps:
        status = plugin.pre_score(state, pod, nodes)
        if status is not None:
            state.skip_score |= {name}
    for step in side.profile.score_steps:
        if step.row_form is not None and step.name not in state.skip_score:
            scores = np.broadcast_to(step.plugin.score(state, pod, nodes), 5)
            rows = [*map(step.row_form(state), side.snapshot.node_infos)]
            assert scores.tolist() == rows


def test_kept_raw_scores_are_copies() -> None:
    """A record writes to them, and a plugin may return an array of the snapshot."""
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", taints=[f"slow=a{number}:PreferNoSchedule"]))
    pod = new_pod(0, 1)
    side.decide(cache, pod)
    frame = build_frame(ReusePlan(side.profile), pod, side.snapshot)
    assert frame is not None
    assert frame.rejected_count == 0
    assert [kept.step.name for kept in frame.varying] == ["TaintToleration"]
    for kept in frame.varying:
        scores = kept.step.plugin.score(frame.state, pod, nodes_of(side.snapshot))
        assert isinstance(scores, np.ndarray)
        assert kept._raw is not None
        assert not np.shares_memory(kept._raw, scores)


def test_rejected_nodes_are_counted_as_they_change() -> None:
    cache, side, pod = Cache(), Side(reuses_answers=True), new_pod(1, 0)
    for number in range(8):
        cache.add_node(make_node(f"node-{number}", cpu="4"))
    side.snapshot.refresh(cache)
    frame = build_frame(ReusePlan(side.profile), pod, side.snapshot)
    assert frame is not None
    record = build_record(frame, pod)
    assert record is not None
    blocker = PodInfo(make_pod("blocker", node="node-3", cpu="3"))
    for change, rejected in ((cache.add_pod, 1), (lambda pod: cache.remove_pod(pod.pod), 0)):
        change(blocker)
        side.snapshot.refresh(cache)
        record.catch_up()
        assert record.rejected_count == rejected


def test_each_plugin_that_prepares_a_record_is_timed() -> None:
    cache, side, pod = Cache(), Side(reuses_answers=True), new_pod(11, 1)
    cache.add_node(new_node(1, 1))
    side.snapshot.refresh(cache)
    seconds, slow = count(), list[tuple[str, str]]()
    timer = AttemptTimer(
        lambda: float(next(seconds)),
        budget_s=0,
        count_slow=lambda plugin, point: slow.append((plugin, point)),
    )
    timer.start(pod)
    plan = ReusePlan(side.profile)
    frame = build_frame(plan, pod, side.snapshot, timer)
    assert frame is not None
    assert build_record(frame, pod, timer) is not None
    reused, profile = plan.reused(pod), side.profile
    filters = [(name, PRE_FILTER) for name, _ in profile.pre_filter_steps if name in reused]
    scores = [(name, PRE_SCORE) for name, _ in profile.pre_score_steps if name in reused]
    prepared = [each for each in slow if each[1] in (PRE_FILTER, PRE_SCORE)]
    assert sorted(prepared) == sorted(filters + scores)
    assert len(filters) > 1 < len(scores)


class FilterThenScore:
    """Scores what its filter found in the same attempt, as VolumeBinding does."""

    name = "FilterThenScore"

    def filter(self, state: Any, pod: PodInfo, nodes: Any) -> None:
        state.write(self.name, 40)

    def filter_status(self, state: Any, code: int) -> Status:
        raise AssertionError("every node passes")

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        return state.get(self.name) or 0


def test_parts_of_scores_include_what_the_filters_found() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile, plugin = side.profile, cast(Any, FilterThenScore())
    profile.plugins = {**profile.plugins, plugin.name: plugin}
    profile.filter_steps.append(FilterStep(len(profile.filter), plugin.name, plugin, NO_REUSE))
    profile.score_steps.append(ScoreStep(plugin.name, plugin, None, 1, NO_REUSE))
    for number in range(3):
        decision = side.decide(cache, new_pod(0, number))
        assert decision.scores is not None
        raw = {part.plugin: part.raw.tolist() for part in decision.scores.by_plugin}
        assert set(raw[plugin.name]) == {40}


class Faulty:
    """Its scores are reused, and everything but scoring all nodes fails."""

    name = "Faulty"

    def __init__(self, where: str) -> None:
        self._where = where
        self.reuse = Reuse(score=Reads.PODS, basis=self._basis)

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        return 7

    def row_score(self, state: Any) -> Any:
        if self._where == "making":
            raise ValueError("no row form today")

        def score(info: Any) -> int:
            if self._where == "scoring":
                raise ValueError("no score today")
            return 101

        return score

    def _basis(self, pod: PodInfo) -> str:
        if self._where == "excepting":
            raise ValueError("no answer today")
        return ""


@pytest.mark.parametrize("where", ["making", "scoring", "range", "excepting"])
def test_a_plugin_that_fails_at_reuse_is_asked_plainly(where: str) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile = side.profile
    faulty: Any = Faulty(where)
    profile.plugins = {**profile.plugins, Faulty.name: faulty}
    profile.score_steps.append(
        ScoreStep(Faulty.name, faulty, None, 1, faulty.reuse, faulty.row_score)
    )
    for number in range(4):
        pod = new_pod(0, number)
        decision = side.decide(cache, pod)
        assert decision.scores is not None
        parts = {part.plugin: part.raw.tolist() for part in decision.scores.by_plugin}
        assert set(parts[Faulty.name]) == {7}
        total = sum(part.normalized * part.weight for part in decision.scores.by_plugin)
        assert decision.scores.total.tolist() == np.asarray(total).tolist()
        cache.assume_pod(pod.assigned_to(decision.node_name))


class Passing(Rule):
    def passes_all(self) -> bool:
        return True


class KnownToPass:
    """A filter that is asked for each pod, and may say that it is known to pass every node."""

    name = "KnownToPass"

    def __init__(self, answer: bool | Exception) -> None:
        self._answer = answer
        self.asked_count = 0
        self.reuse = Reuse(filter=Reads.PODS, basis=lambda pod: ASKED)

    def filter(self, state: Any, pod: PodInfo, nodes: Any) -> None:
        self.asked_count += 1

    def filter_status(self, state: Any, code: int) -> Status:
        raise AssertionError(code)

    def filter_rule(self, state: Any, pod: PodInfo) -> Rule:
        if isinstance(self._answer, Exception):
            raise self._answer
        return Passing() if self._answer else NOTHING_KNOWN


@pytest.mark.parametrize(
    ("answer", "is_asked"),
    [
        pytest.param(True, False, id="passes"),
        pytest.param(False, True, id="unknown"),
        pytest.param(ValueError("no answer today"), True, id="fails"),
    ],
)
def test_a_filter_known_to_pass_every_node_is_not_asked(
    answer: bool | Exception, is_asked: bool
) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile, plugin = side.profile, cast(Any, KnownToPass(answer))
    profile.plugins = {**profile.plugins, plugin.name: plugin}
    index = len(profile.filter)
    profile.filter_steps.append(
        FilterStep(index, plugin.name, plugin, plugin.reuse, plugin.filter_rule)
    )
    side.decide(cache, new_pod(0, 0))
    side.decide(cache, new_pod(0, 1))
    before = plugin.asked_count
    assert side.decide(cache, new_pod(0, 2)).is_scheduled
    assert (plugin.asked_count > before) is is_asked


class ScoresZero:
    """A score that is asked for each pod, unless it is known to be 0 everywhere."""

    name = "ScoresZero"

    def __init__(self, is_zero: bool) -> None:
        self.asked_count = 0
        self.reuse = Reuse(score=Reads.PODS, basis=lambda pod: ASKED)
        self.final_scores = (lambda *_: 0) if is_zero else None

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        self.asked_count += 1
        return 0


@pytest.mark.parametrize("is_zero", [True, False])
def test_a_score_known_to_be_zero_is_not_asked(is_zero: bool) -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(new_node(number, number))
    profile, plugin = side.profile, cast(Any, ScoresZero(is_zero))
    profile.plugins = {**profile.plugins, plugin.name: plugin}
    profile.score_steps.append(
        ScoreStep(plugin.name, plugin, None, 1, plugin.reuse, plugin.final_scores)
    )
    side.decide(cache, new_pod(0, 0))
    side.decide(cache, new_pod(0, 1))
    before = plugin.asked_count
    assert side.decide(cache, new_pod(0, 2)).is_scheduled
    assert (plugin.asked_count > before) is not is_zero


class CountsCalls(NodeFilter, NodeScore):
    """A user's plugin that records the nodes it is called for."""

    name = "CountsCalls"
    asked: ClassVar[list[str]] = []

    def filter_node(self, pod: Pod, node: Node) -> bool | str:
        self.asked.append(node.metadata.name)
        return not node.metadata.labels.get("disk") or "node has a disk"

    def score_node(self, pod: Pod, node: Node) -> int:
        self.asked.append(node.metadata.name)
        return int(node.metadata.name.rpartition("-")[2])


class ReusedCalls(CountsCalls):
    reuse = Reuse(filter=Reads.NODE, score=Reads.NODE)
    per_node = True


def calls_per_pod(plugin: type[CountsCalls]) -> list[int]:
    """How often the plugin is asked for each of four equal pods."""
    cache, side = Cache(), Side(reuses_answers=True, extra=[plugin])
    plain = Side(reuses_answers=False, extra=[plugin])
    for number in range(6):
        # Variants 1, 3 and 5 have a disk; the last is cordoned as well.
        cache.add_node(new_node(number, number))
    counts: list[int] = []
    for number in range(4):
        pod = new_pod(0, number)
        plugin.asked.clear()
        decision = side.decide(cache, pod)
        counts.append(len(plugin.asked))
        assert describe(decision) == describe(plain.decide(cache, pod))
        cache.assume_pod(pod.assigned_to(decision.node_name))
    return counts


def test_a_plugin_for_one_node_is_asked_in_every_cycle_about_remaining_nodes() -> None:
    # Five nodes are not cordoned, three of them pass and are scored.
    assert calls_per_pod(CountsCalls) == [5 + 3] * 4


def test_a_plugin_for_one_node_can_opt_in_to_reuse() -> None:
    # In a small cluster all nodes are asked about for the first pod, once.
    assert calls_per_pod(ReusedCalls) == [6 + 6, 0, 0, 0]


def test_without_row_forms_decisions_are_the_same() -> None:
    """`row_forms` change the speed only."""
    cache, with_forms, without = Cache(), Side(reuses_answers=True), Side(reuses_answers=True)
    profile = without.profile
    profile.filter_steps = [step._replace(row_form=None) for step in profile.filter_steps]
    profile.score_steps = [step._replace(row_form=None) for step in profile.score_steps]
    for number in range(6):
        cache.add_node(new_node(number, number))
    for number in range(40):
        pod = new_pod(number % len(POD_KINDS), number)
        decision = with_forms.decide(cache, pod)
        assert describe(decision) == describe(without.decide(cache, pod))
        if decision.node_name:
            cache.assume_pod(pod.assigned_to(decision.node_name))


class NamesTheLoad(NodeFilter):
    """Rejects nodes with a reason of their own, another one for each load."""

    name = "NamesTheLoad"
    reuse = Reuse(filter=Reads.NODE)
    per_node = True

    def filter_node(self, pod: Pod, node: Node) -> bool | str:
        load = node.metadata.labels.get("load")
        return load is None or f"load is {load}"


def test_reasons_that_are_no_longer_given_are_dropped() -> None:
    cache, side = Cache(), Side(reuses_answers=True, extra=[NamesTheLoad])
    for number in range(6):
        cache.add_node(new_node(number, 0))
    before, most = new_node(0, 0), 0
    for load in range(numbered_max(6) + 5):
        node = make_node("node-0", zone="zone-0", labels={"load": str(load)})
        cache.update_node(before, node)
        before = node
        decision = side.decide(cache, new_pod(0, load))
        (codes,) = (value for value in decision.state.values() if isinstance(value, StatusCodes))
        most = max(most, len(codes))
        assert decision.diagnosis.statuses()["node-0"].message == f"load is {load}"
    assert len(codes) < most == numbered_max(6) + 1


def test_records_of_small_clusters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BYTES_MAX", 160_000)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number in range(50):
        pod = PodInfo(make_pod(f"p{number}", node_selector={"job": str(number)}, cpu=number))
        for _ in range(4):
            kept.evaluation(side.profile, pod)
            kept.looked_at(1)
    assert 4 <= len(kept._records) <= 10
    assert 4 <= len(kept._frames) <= 10


def test_places_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PLACES_MAX", 5)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number in range(20):
        pod = PodInfo(make_pod(f"p{number}", node_selector={"job": str(number)}, cpu=number))
        kept.evaluation(side.profile, pod)
    assert len(kept._places) == len(kept._kept) == 5


def test_pods_of_one_outline_have_one_place() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number in range(1, 20):
        kept.evaluation(side.profile, PodInfo(make_pod(f"p{number}", cpu=number)))
    assert len(kept._places) == 1
    assert len(kept._records) == 19


def test_what_no_pod_has_used_for_long_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "UNUSED_ATTEMPTS_MAX", 20)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    steady = PodInfo(make_pod("steady", cpu=1))
    for number in range(100):
        other = make_pod(f"p{number}", node_selector={"job": str(number)}, cpu=number)
        for pod in (steady, PodInfo(other)):
            for _ in range(2):
                kept.evaluation(side.profile, pod)
                kept.looked_at(1)
    assert 5 <= len(kept._frames) <= 7
    basis = kept._plans[side.profile.name].frame_of(steady)
    assert any(basis == found for _, found in cast(Any, kept._frames))


def test_applications_that_rules_about_nodes_do_not_distinguish_share_a_frame() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(make_node("a", images={"known:latest": 1 << 30}))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number, image in enumerate(("x", "y", "z", "known", "known")):
        pod = PodInfo(make_pod(f"p{number}", image=f"{image}:latest", cpu=number))
        kept.evaluation(side.profile, pod)
        kept.looked_at(1)
    assert len(kept._frames) == 2


def test_a_node_that_gets_an_image_distinguishes_pods_that_name_it() -> None:
    cache, reusing, plain = Cache(), Side(reuses_answers=True), Side(reuses_answers=False)
    for name in "ab":
        cache.add_node(make_node(name))
    for number in range(6):
        if number == 3:
            cache.update_node(make_node("b"), make_node("b", images={"x:latest": 1 << 30}))
        pod = PodInfo(make_pod(f"p{number}", image="x" if number % 2 else "y"))
        decisions = [side.decide(cache, pod) for side in (reusing, plain)]
        totals = [one.scores.total.tolist() for one in decisions if one.scores is not None]
        assert totals[0] == totals[1]


def records_of_twenty_nodes() -> tuple[Side, Records]:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(20):
        cache.add_node(new_node(number, number))
    side.snapshot.refresh(cache)
    return side, Records(side.snapshot)


@pytest.mark.parametrize(("pods", "is_bought"), [(3, False), (4, True)])
def test_a_record_is_bought_once_asking_has_cost_as_much(pods: int, is_bought: bool) -> None:
    side, kept = records_of_twenty_nodes()
    pod = PodInfo(make_pod("p", cpu=1))
    for _ in range(pods):
        kept.evaluation(side.profile, pod)
        # So few that three attempts pay for it.
        paid = records.building(20, by_numbers=True) // 3 + 1
        kept.looked_at(paid - records.asking(0, fits=True, by_numbers=True))
    assert bool(next(reversed(kept._records.values())).kept) == is_bought


@pytest.mark.parametrize(
    ("looked_at", "changes", "has_record"),
    [
        pytest.param(20, 8, [True], id="few-changes"),
        pytest.param(20, 300, [False], id="asking-costs-less"),
        pytest.param(2_000, 300, [True], id="asking-costs-more"),
        # The first attempts after many changes ask; once they have cost as much as following the
        # changes, the record is followed again.
        pytest.param(20, [300, 1, 1], [False, False, True], id="worth-it-after-a-while"),
        pytest.param(20, [300] * 9, [False] * 9, id="never-worth-it"),
    ],
)
def test_a_record_is_followed_where_it_costs_less_than_asking(
    looked_at: int, changes: int | list[int], has_record: list[bool]
) -> None:
    side, kept = records_of_twenty_nodes()
    pod = PodInfo(make_pod("p", cpu=1))

    def evaluate() -> Record | None:
        evaluation = kept.evaluation(side.profile, pod)
        assert isinstance(evaluation, ReusingEvaluation)
        kept.looked_at(looked_at)
        return evaluation._record

    while evaluate() is None:
        pass
    found: list[bool] = []
    for number in [changes] if isinstance(changes, int) else changes:
        for _ in range(number):
            side.snapshot.log.note_pods(0)
        found.append(evaluate() is not None)
    assert found == has_record


def test_pods_too_large_to_keep_anything_of_are_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_LARGE_BYTES", 10)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    for number in range(3):
        assert side.decide(cache, PodInfo(make_pod(f"p{number}"))).node_name
    assert side.decider._records is not None
    assert not side.decider._records._frames


@pytest.mark.parametrize(
    ("kinds", "record_count"),
    [
        pytest.param([{"image": "a"}, {"image": "b"}, {"node_selector": {}}], 1, id="frames"),
        pytest.param([{"host_ports": [80]}, {"host_ports": [81]}], 2, id="that-read-pods"),
        pytest.param([{"memory": "1Gi"}, {"memory": "2Gi"}], 2, id="requests"),
    ],
)
def test_pods_that_request_the_same_share_a_record(
    kinds: list[dict[str, Any]], record_count: int
) -> None:
    cache, reusing, plain = Cache(), Side(reuses_answers=True), Side(reuses_answers=False)
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu=str(number + 1), memory="4Gi"))
    for number in range(8 * len(kinds)):
        pod = PodInfo(make_pod(f"p-{number}", cpu="300m", **kinds[number % len(kinds)]))
        decision = reusing.decide(cache, pod)
        assert describe(decision) == describe(plain.decide(cache, pod))
        if decision.node_name:
            cache.assume_pod(pod.assigned_to(decision.node_name))
    assert len(kept_records(reusing)) == record_count


def test_pods_that_request_different_resources_share_a_frame() -> None:
    cache, objects = Cache(), ClusterObjects()
    reusing = Side(reuses_answers=True, objects=objects)
    plain = Side(reuses_answers=False, objects=objects)
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", allocatable={"example.com/b": 100}))

    def try_each(names: str) -> None:
        for name in names:
            pod = PodInfo(make_pod(requests={f"example.com/{name}": 1}))
            decision = reusing.decide(cache, pod)
            assert describe(decision) == describe(plain.decide(cache, pod))

    def is_fit_reused() -> list[bool]:
        assert reusing.decider._records is not None
        frames = reusing.decider._records._frames.values()
        return ["NodeResourcesFit" in frame.reused for frame in frames]

    try_each("ababcdebaa")
    assert is_fit_reused() == [True]
    # One of them is now served by devices, and its answers are not reused any more.
    objects.put(SERVING_A)
    try_each("aabbaabb")
    assert sorted(is_fit_reused()) == [False, True]
    objects.store(DeviceClass).remove("", SERVING_A.metadata.name)
    try_each("aabbaabb")


def kept_records(side: Side) -> list[Record]:
    assert side.decider._records is not None
    kept = [account.kept for account in side.decider._records._records.values()]
    return [record for record in kept if record is not None]


def test_codes_too_large_for_a_narrow_array_are_kept() -> None:
    """Each scalar resource has a bit of its own in the code."""
    cache, reusing, plain = Cache(), Side(reuses_answers=True), Side(reuses_answers=False)
    scalars = {f"example.com/r{number}": "1" for number in range(12)}
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu="8", allocatable=scalars))
    for number in range(12):
        pod = PodInfo(make_pod(f"p-{number}", cpu="100m", requests=scalars))
        decision = reusing.decide(cache, pod)
        assert describe(decision) == describe(plain.decide(cache, pod))
        if decision.node_name:
            cache.assume_pod(pod.assigned_to(decision.node_name))
    (record,) = kept_records(reusing)
    assert record.codes.dtype == np.int32
    assert not record.is_spoilt


def test_dropped_records_are_freed_at_once() -> None:
    """Records live long: the garbage collector would look at them after many hours."""
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    pod = PodInfo(make_pod("p", cpu="1"))
    frame = build_frame(ReusePlan(side.profile), pod, side.snapshot)
    assert frame is not None
    record = build_record(frame, pod)
    kept = weakref.ref(frame), weakref.ref(record)
    gc.disable()
    try:
        del frame, record
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()


class PrefersLabelled:
    """100 for every node while no node has the label; then only for nodes that have it."""

    name = "PrefersLabelled"
    args_type = None
    reuse = Reuse(score=Reads.NODE)

    def __init__(self, args: object, handle: object) -> None:
        pass

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> Any:
        return (nodes.label_ids("preferred") != 0).astype(np.int64)

    def normalize(self, state: Any, pod: PodInfo, scores: Any) -> Any:
        return 100 * scores if scores.any() else np.full(len(scores), 100)


class FailsOnce:
    """Fails at the first call about a single node after it was told to."""

    name = "FailsOnce"
    args_type = None
    reuse = Reuse(score=Reads.PODS)
    fails: ClassVar[bool] = False

    def __init__(self, args: object, handle: object) -> None:
        pass

    def score(self, state: Any, pod: PodInfo, nodes: Any) -> int:
        if FailsOnce.fails and len(nodes) == 1:
            FailsOnce.fails = False
            raise ValueError("fails once")
        return 1


def test_a_record_that_failed_to_catch_up_is_not_used_again() -> None:
    cache = Cache()
    extra = [PrefersLabelled, FailsOnce]
    reusing, plain = Side(reuses_answers=True, extra=extra), Side(reuses_answers=False, extra=extra)
    nodes = [make_node(f"node-{number}", cpu="64", pods=1000) for number in range(6)]
    for node in nodes:
        cache.add_node(node)
    for number in range(3):
        assert describe(reusing.decide(cache, new_pod(0, number))) == describe(
            plain.decide(cache, new_pod(0, number))
        )
    labelled = make_node("node-2", cpu="64", pods=1000, labels={"preferred": "yes"})
    cache.update_node(nodes[2], labelled)
    FailsOnce.fails = True
    reusing.decide(cache, new_pod(0, 3))
    assert not FailsOnce.fails
    plain.decide(cache, new_pod(0, 3))
    pod = new_pod(0, 4)
    assert describe(reusing.decide(cache, pod)) == describe(plain.decide(cache, pod))


class Quick:
    """Passes all nodes, and scores them by their position: plainly, or in one call."""

    name = "Quick"
    args_type = None

    def __init__(self, args: object, handle: object) -> None:
        self.calls: list[str] = []
        self.fails = False
        self.skips = False
        self.reuse = Reuse(filter=Reads.PODS, score=Reads.PODS, pod=PodReads.CLUSTER)

    def pre_filter(self, state: Any, pod: PodInfo, nodes: Nodes) -> None:
        self.calls.append("pre_filter")

    def filter(self, state: Any, pod: PodInfo, nodes: Nodes) -> None:
        self.calls.append("filter")

    def filter_status(self, state: Any, code: int) -> Status:
        raise AssertionError("it rejects no node")

    def pre_score(self, state: Any, pod: PodInfo, nodes: Nodes) -> Status | None:
        self.calls.append("pre_score")
        return Status(Code.SKIP) if self.skips else None

    def score(self, state: Any, pod: PodInfo, nodes: Nodes) -> Any:
        self.calls.append("score")
        return np.arange(len(nodes)) + 5

    def normalize(self, state: Any, pod: PodInfo, scores: Any) -> Any:
        self.calls.append("normalize")
        return scores - 5

    def filter_rule(self, state: Any, pod: PodInfo) -> Rule:
        self.calls.append("passes")
        return Passing()

    def final_scores(self, state: Any, pod: PodInfo, nodes: Nodes) -> Any:
        self.calls.append("final_scores")
        if self.fails:
            raise ValueError("not today")
        return None if self.skips else np.arange(len(nodes))


@pytest.mark.parametrize("fails", [False, True])
def test_a_plugin_is_asked_in_fewer_calls_where_it_declares_them(fails: bool) -> None:
    cache = Cache()
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu="64", pods=1000))
    reusing = Side(reuses_answers=True, extra=[Quick])
    plain = Side(reuses_answers=False, extra=[Quick])
    for number in range(3):
        pod = new_pod(0, number)
        assert describe(reusing.decide(cache, pod)) == describe(plain.decide(cache, pod))
    quick: Any = reusing.profile.plugins[Quick.name]
    quick.calls.clear()
    quick.fails = fails
    decision = reusing.decide(cache, new_pod(0, 3))
    calls = list(quick.calls)
    assert describe(decision) == describe(plain.decide(cache, new_pod(0, 3)))
    asked_plainly = ["pre_filter", "filter", "pre_score", "score", "normalize"]
    assert calls == ["pre_filter", "passes", "final_scores", *(asked_plainly if fails else [])]


def test_a_plugin_that_gives_no_final_scores_counts_as_skipped() -> None:
    cache = Cache()
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu="64", pods=1000))
    sides = [Side(reuses_answers=reuses, extra=[Quick]) for reuses in (True, False)]
    for side in sides:
        quick: Any = side.profile.plugins[Quick.name]
        quick.skips = True
    for number in range(3):
        pod = new_pod(0, number)
        found, expected = (describe(side.decide(cache, pod)) for side in sides)
        assert found == expected
        assert Quick.name in found[-1]
