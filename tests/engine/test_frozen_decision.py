"""A frozen decision equals the live one of its cycle, and stays the same."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kubestow.api.meta import ApiObject, LabelSelector
from kubestow.api.node import Node
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.config.defaults import default_plugins
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import enabled_names
from kubestow.engine.decide import Decider
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import ScorePlugin
from kubestow.framework.profile import ScoreStep
from kubestow.framework.reuse import NO_REUSE
from kubestow.index.nodes import Nodes
from kubestow.testing import make_node, make_node_affinity, make_pod, make_term
from kubestow.testing.profiles import make_plugin
from kubestow.testing.storage import make_claim, make_storage_class, make_volume
from tools.small_cluster import SmallCluster

ZONE = "topology.kubernetes.io/zone"
GATES = FeatureGates({"StorageCapacityScoring": True})
WEB = LabelSelector(match_labels={"app": "web"})
WEB_ZONES = PodAffinityTerm(topology_key=ZONE, label_selector=WEB)
APART = PodAffinity(required=(WEB_ZONES,))
NEAR = PodAffinity(preferred=(WeightedPodAffinityTerm(weight=7, pod_affinity_term=WEB_ZONES),))
SPREAD = {"max_skew": 1, "topology_key": ZONE, "label_selector": WEB}

KINDS: list[dict[str, Any]] = [
    {"cpu": "500m", "memory": "256Mi"},
    {"cpu": "2", "memory": "1Gi", "priority": 10},
    {"cpu": "3", "priority": 20},
    {"cpu": "9"},
    {"cpu": "100m", "host_ports": [80], "priority": 5},
    {"cpu": "100m", "node_selector": {"disk": "ssd"}},
    {"cpu": "100m", "tolerations": [Toleration(operator="Exists")], "image": "big:1"},
    {"cpu": "1", "labels": {"app": "web"}, "affinity": Affinity(pod_anti_affinity=APART)},
    {"cpu": "1", "affinity": Affinity(pod_affinity=NEAR)},
    {
        "labels": {"app": "web"},
        "spread": [TopologySpreadConstraint(when_unsatisfiable="DoNotSchedule", **SPREAD)],
    },
    {
        "labels": {"app": "web"},
        "spread": [TopologySpreadConstraint(when_unsatisfiable="ScheduleAnyway", **SPREAD)],
    },
    {"node_affinity": make_node_affinity(make_term(fields=["metadata.name In n2"]))},
    {"node_affinity": make_node_affinity(preferred=[(5, make_term("disk Exists"))])},
    {"cpu": "100m", "pvcs": ["data"]},
    {"cpu": "100m", "pvcs": ["not-there"]},
]

TAINTS = ["slow:PreferNoSchedule", "dedicated:NoSchedule"]

STORAGE: list[ApiObject] = [
    make_storage_class(),
    make_claim("data", size="4Gi"),
    make_volume("small", size="5Gi", terms=[make_term(f"{ZONE} In zone-0")]),
    make_volume("large", size="20Gi", terms=[make_term(f"{ZONE} In zone-1,zone-2")]),
]


def new_node(number: int, variant: int) -> Node:
    return make_node(
        f"n{number}",
        cpu=str(2 + variant % 3),
        memory=f"{2 + variant}Gi",
        labels={"disk": "ssd"} if variant % 2 else {},
        zone=f"zone-{variant % 3}",
        taints=[*TAINTS[variant : variant + 1]],
        images={"big:1": 500_000_000} if variant % 2 else {},
        unschedulable=variant == 5,
    )


class Side:
    """One of two schedulers that see the same events."""

    def __init__(
        self, nodes: Iterable[Node], *, reuses_answers: bool, percentage: int = 100
    ) -> None:
        self.cluster = SmallCluster(
            nodes,
            plugins=enabled_names(default_plugins(DEFAULT_GATES)),
            objects=STORAGE,
            gates=GATES,
        )
        self.cluster.decider = Decider(
            self.cluster.snapshot,
            self.cluster.nominator,
            percentage_of_nodes_to_score=percentage,
            reuses_answers=reuses_answers,
        )

    def decide(self, pod: Pod) -> FrozenDecision:
        decision = self.cluster.decide(pod)
        self.cluster.drop_work()
        return decision.freeze()


class KeptDecisions(RuleBasedStateMachine):
    """Decisions of a scheduler that reuses what it found are frozen; in the end they say what a
    scheduler that asks every plugin each time decided at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = {number: new_node(number, number) for number in range(6)}
        self.sides = [Side(self.nodes.values(), reuses_answers=shares) for shares in (True, False)]
        self.caches = [side.cluster.cache for side in self.sides]
        self.pod_count = 0
        self.placed: dict[str, PodInfo] = {}
        self.nominated: list[tuple[Pod, FrozenDecision]] = []
        self.kept: list[tuple[FrozenDecision, bytes]] = []

    @rule(kind=st.sampled_from(KINDS), count=st.sampled_from([1, 4]))
    def try_new_pods(self, kind: dict[str, Any], count: int) -> None:
        for _ in range(count):
            self.pod_count += 1
            self._try(make_pod(f"pod-{self.pod_count}", **kind))

    @precondition(lambda self: self.nominated)
    @rule(choice=st.integers(0, 9), evict=st.booleans())
    def try_nominated_pod(self, choice: int, evict: bool) -> None:
        pod, decision = self.nominated.pop(choice % len(self.nominated))
        for victim in decision.victims if evict else ():
            self._remove(victim.uid)
        self._try(pod)

    @precondition(lambda self: self.placed)
    @rule(choice=st.integers(0, 99))
    def remove_pod(self, choice: int) -> None:
        self._remove(list(self.placed)[choice % len(self.placed)])

    @rule(number=st.integers(0, 7), variant=st.integers(0, 5))
    def add_or_update_node(self, number: int, variant: int) -> None:
        old, new = self.nodes.get(number), new_node(number, variant)
        self.nodes[number] = new
        for cache in self.caches:
            if old is None:
                cache.add_node(new)
            else:
                cache.update_node(old, new)

    @rule(number=st.integers(0, 7))
    def remove_node(self, number: int) -> None:
        node = self.nodes.pop(number, None)
        if node is not None:
            for cache in self.caches:
                cache.remove_node(node)

    def teardown(self) -> None:
        for decision, said in self.kept:
            assert msgspec.json.encode(decision.to_document()) == said

    def _try(self, pod: Pod) -> None:
        ours, plain = (side.decide(pod) for side in self.sides)
        check_whole(plain, self.sides[1].cluster.snapshot.names)
        assert plain.status is None or plain.status.code != "Error", plain.status
        # Nothing reads it before the end: it must be complete when frozen.
        said = msgspec.json.encode(plain.to_document())
        self.kept += [(ours, said), (plain, said)]
        if plain.node:
            self.placed[pod.metadata.uid] = assumed = PodInfo(pod).assigned_to(plain.node)
            for side in self.sides:
                side.cluster.cache.assume_pod(assumed)
                side.cluster.nominator.delete(pod)
        elif plain.nominated_node:
            status = msgspec.structs.replace(pod.status, nominated_node_name=plain.nominated_node)
            nominated = msgspec.structs.replace(pod, status=status)
            self.nominated.append((nominated, plain))
            for side in self.sides:
                side.cluster.wait(nominated)

    def _remove(self, uid: str) -> None:
        pod = self.placed.pop(uid, None)
        if pod is not None:
            for cache in self.caches:
                cache.remove_pod(pod.pod)


TestKeptDecisions = KeptDecisions.TestCase


def check_whole(decision: FrozenDecision, names: Sequence[str]) -> None:
    """Every node has one verdict, and the numbers add up."""
    rejected = [name for group in decision.rejected for name in group.nodes]
    assert sorted([*decision.feasible, *rejected, *decision.absent.nodes]) == sorted(names)
    assert decision.evaluated_count == len(decision.feasible) + len(rejected)
    assert (decision.total is None) == (not decision.scores)
    if decision.total is not None:
        weighted = [part.weighted for part in decision.scores]
        assert np.sum(weighted, axis=0).tolist() == decision.total.tolist()


def as_json(decision: FrozenDecision) -> Any:
    return msgspec.json.decode(msgspec.json.encode(decision.to_document()))


def test_a_document_of_a_pod_that_was_placed() -> None:
    nodes = [make_node("n1", cpu="4"), make_node("n2", cpu="1"), make_node("n3", cpu="8")]
    cluster = SmallCluster(nodes, plugins=["NodeResourcesFit"])
    decision = cluster.decide(make_pod("web", uid="u1", cpu="2")).freeze()
    assert as_json(decision) == {
        "pod": {"key": "default/web", "uid": "u1"},
        "profile": "default-scheduler",
        "node": "n3",
        "startIndex": 0,
        "nodesToFind": 3,
        "evaluatedCount": 3,
        "feasible": ["n1", "n3"],
        "rejected": [
            {
                "status": {
                    "code": "UnschedulableAndUnresolvable",
                    "plugin": "NodeResourcesFit",
                    "reasons": ["Insufficient cpu"],
                },
                "nodes": ["n2"],
            }
        ],
        "absent": {"status": {"code": "UnschedulableAndUnresolvable"}, "nodes": []},
        "total": [74, 87],
        "scores": [
            {
                "plugin": "NodeResourcesFit",
                "weight": 1,
                "raw": [74, 87],
                "normalized": [74, 87],
                "weighted": [74, 87],
            }
        ],
    }


def test_a_document_of_a_pod_that_preempts() -> None:
    victim = make_pod("low", uid="u0", node="n1", cpu="3", priority=1)
    plugins = ["NodeResourcesFit", "DefaultPreemption"]
    cluster = SmallCluster([make_node("n1", cpu="4")], [victim], plugins=plugins)
    decision = cluster.decide(make_pod("high", uid="u1", cpu="2", priority=9)).freeze()
    cluster.drop_work()
    assert decision.status is not None
    assert decision.status.message == "0/1 nodes are available: 1 Insufficient cpu."
    document = as_json(decision)
    assert document["status"]["code"] == "Unschedulable"
    assert document["postFilter"] == {"code": "Success", "plugin": "DefaultPreemption"}
    assert document["nominatedNode"] == "n1"
    assert document["victims"] == [{"key": "default/low", "uid": "u0"}]
    assert document["unschedulablePlugins"] == ["NodeResourcesFit"]
    assert "node" not in document


def test_nodes_that_pre_filter_left_out_have_no_verdict() -> None:
    only = make_node_affinity(make_term(fields=["metadata.name In n2"]))
    nodes = [make_node(name) for name in ("n1", "n2", "n3")]
    cluster = SmallCluster(nodes, plugins=["NodeAffinity"])
    decision = cluster.decide(make_pod(node_affinity=only)).freeze()
    assert (decision.restricted_to, decision.restricted_by) == (("n2",), ("NodeAffinity",))
    assert list(decision.feasible) == ["n2"]
    assert list(decision.absent.nodes) == ["n1", "n3"]
    assert decision.absent.status.message == "node(s) didn't satisfy plugin(s) [NodeAffinity]"


@pytest.mark.parametrize("reuses_answers", [True, False])
def test_nodes_behind_the_end_of_the_search_have_no_verdict(reuses_answers: bool) -> None:
    nodes = [make_node(f"n{number}", unschedulable=number == 1) for number in range(120)]
    side = Side(nodes, reuses_answers=reuses_answers, percentage=50)
    for start, end in ((0, 101), (101, 202)):  # The second search wraps round.
        decision = side.decide(make_pod())
        assert (decision.start_index, decision.nodes_to_find) == (start, 100)
        rows = [row % 120 for row in range(start, end) if row % 120 != 1]
        assert decision.feasible.rows.tolist() == rows
        assert [group.nodes.rows.tolist() for group in decision.rejected] == [[1]]
        assert len(decision.absent.nodes) == 19


def test_thousands_of_nodes_are_one_entry_per_verdict() -> None:
    nodes = [
        make_node(f"n{number}", cpu="1", unschedulable=number % 2 == 0) for number in range(5_000)
    ]
    decision = Side(nodes, reuses_answers=True).decide(make_pod(cpu="2"))
    assert [len(group.nodes) for group in decision.rejected] == [2_500, 2_500]
    assert [next(iter(group.nodes)) for group in decision.rejected] == ["n0", "n1"]


def test_what_is_kept_cannot_be_written_to() -> None:
    decision = Side([make_node("n1"), make_node("n2")], reuses_answers=True).decide(make_pod())
    part = decision.scores[0]
    assert decision.total is not None
    for array in (decision.total, part.raw, part.normalized, part.weighted, decision.feasible.rows):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(AttributeError):
        decision.node = "n9"  # type: ignore[misc]


def test_a_plugin_that_fails_when_asked_again_leaves_the_totals() -> None:
    answers = iter([5, 5])

    def score(state: CycleState, pod: PodInfo, nodes: Nodes) -> int:
        answer = next(answers, None)
        if answer is None:
            raise PluginError("not twice")
        return answer

    side = Side([make_node("n1"), make_node("n2")], reuses_answers=True)
    profile, plugin = side.cluster.profile, make_plugin("Once", score=score)
    profile.plugins = {**profile.plugins, "Once": plugin}
    profile.score_steps.append(ScoreStep("Once", cast(ScorePlugin, plugin), None, 1, NO_REUSE))
    side.cluster.decide(make_pod())  # Every plugin is asked about the first.
    decision = side.decide(make_pod("second"))
    assert decision.scores == ()
    assert decision.total is not None
    assert decision.node
