"""DefaultPreemption as the framework calls it (spec 08 A3, A11)."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
import pytest

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.plugin_args import DefaultPreemptionArgs
from kubestow.config.profile import PluginConfig
from kubestow.engine.decision import Decision, Nomination
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import ASSIGNED_POD_DELETE, Hint
from kubestow.framework.extender import MetaVictims, Victims
from kubestow.framework.handle import Handle
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes
from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.plugins.default_preemption.eligibility import DEFAULT_RULES, VictimRules
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_handle, make_node, make_pod, run_hint
from tools.small_cluster import SmallCluster

PLUGINS = ("TaintToleration", "NodeResourcesFit", "DefaultPreemption")
DELETED = datetime(2024, 1, 1, tzinfo=UTC)

Clusters = list[SmallCluster]


@pytest.fixture(autouse=True)
def clusters() -> Iterator[Clusters]:
    """The clusters a test made; what they would have run is dropped at the end."""
    made: Clusters = []
    yield made
    for cluster in made:
        cluster.drop_work()


@pytest.fixture
def make_cluster(clusters: Clusters) -> type:
    class Made(SmallCluster):
        def __init__(
            self,
            nodes: Sequence[Node],
            pods: Sequence[Pod] = (),
            *,
            plugins: Sequence[str] = PLUGINS,
            registry: Mapping[str, type] = REGISTRY,
            waiting: Sequence[Pod] = (),
            plugin_config: Sequence[PluginConfig] = (),
        ) -> None:
            super().__init__(
                nodes,
                pods,
                plugins=plugins,
                registry=registry,
                waiting=waiting,
                plugin_config=plugin_config,
            )
            clusters.append(self)

    return Made


def small(name: str, **kwargs: object) -> Node:
    return make_node(name, cpu="4")


def plugin_of(cluster: SmallCluster) -> DefaultPreemption:
    plugin = cluster.profile.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    return plugin


def nominated(decision: Decision) -> str | None:
    return None if decision.nomination is None else decision.nomination.node_name


# --- messages and results ---


def test_a_node_is_nominated_and_the_message_does_not_mention_it(make_cluster: type) -> None:
    cluster = make_cluster([small("n1")], [make_pod("v", node="n1", cpu="3", priority=1)])
    decision = cluster.decide(make_pod("p", cpu="2", priority=10))
    assert decision.nomination == Nomination("n1")
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decision.post_filter is not None
    assert [victim.name for victim in decision.post_filter.victims] == ["v"]
    assert len(cluster.pending_work) == 1


@pytest.mark.parametrize(
    ("nodes", "pods", "text"),
    [
        pytest.param(
            [small("n1"), small("n2"), small("n3")],
            [make_pod(f"v{n}", node=f"n{n}", cpu="3", priority=10) for n in (1, 2, 3)],
            "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: "
            "3 No preemption victims found for incoming pod.",
            id="A11.6-no-lower-pods",
        ),
        pytest.param(
            [small("n1"), *(make_node(f"t{n}", taints=["a:NoSchedule"]) for n in (1, 2))],
            [
                make_pod("stays", node="n1", cpu="3", priority=10),
                make_pod("v", node="n1", cpu="1", priority=1),
            ],
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). "
            "preemption: 0/3 nodes are available: 1 Insufficient cpu, "
            "2 Preemption is not helpful for scheduling.",
            id="A11.7-victims-do-not-help",
        ),
        pytest.param(
            [make_node(f"t{n}", taints=["a:NoSchedule"]) for n in (1, 2, 3)],
            [make_pod("v", node="t1", priority=1)],
            "0/3 nodes are available: 3 node(s) had untolerated taint(s). "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            id="A11.9-all-unresolvable",
        ),
    ],
)
def test_no_candidate_clears_the_nomination(
    make_cluster: type, nodes: list[Node], pods: list[Pod], text: str
) -> None:
    decision = make_cluster(nodes, pods).decide(make_pod("p", cpu="2", priority=10))
    assert decision.message == text
    assert nominated(decision) == ""


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        pytest.param(
            make_pod("p", cpu="2", priority=10, preemption_policy="Never"),
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="never",
        ),
        pytest.param(
            make_pod("p", cpu="2", priority=10, nominated_node="n1"),
            "preemption: not eligible due to a terminating pod on the nominated node.",
            id="A11.8-victim-still-leaving",
        ),
    ],
)
def test_an_ineligible_pod_keeps_its_nomination(make_cluster: type, pod: Pod, text: str) -> None:
    target = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    victim = make_pod("v", node="n1", cpu="3", priority=1, deleted=DELETED, conditions=[target])
    decision = make_cluster([small("n1")], [victim]).decide(pod)
    assert decision.message == f"0/1 nodes are available: 1 Insufficient cpu. {text}"
    assert decision.nomination is None


def test_a_pod_that_is_gone_fails(make_cluster: type) -> None:
    cluster = make_cluster([small("n1")])
    pod = PodInfo(make_pod("gone"))
    diagnosis = Diagnosis(cluster.snapshot.names)
    result, status = plugin_of(cluster).post_filter(CycleState(), pod, diagnosis)
    assert result is None
    assert status == Status(Code.ERROR, 'preemption: pod "gone" not found')


def test_the_newest_version_of_the_pod_counts(make_cluster: type) -> None:
    cluster = make_cluster([small("n1")], [make_pod("v", node="n1", cpu="3", priority=1)])
    pod = make_pod("p", uid="u", cpu="2", priority=10)
    decision = cluster.decide(pod)
    cluster.objects.pods.put(
        make_pod("p", uid="u", cpu="2", priority=10, preemption_policy="Never")
    )
    _, status = plugin_of(cluster).post_filter(decision.state, decision.pod, decision.diagnosis)
    assert status.message == "preemption: not eligible due to preemptionPolicy=Never."


def test_an_empty_cluster_fails(make_cluster: type) -> None:
    cluster = make_cluster([])
    pod = cluster.wait(make_pod("p"))
    _, status = plugin_of(cluster).post_filter(CycleState(), pod, Diagnosis(()))
    assert status == Status(Code.ERROR, "preemption: no nodes available")


class Faulty:
    """Rejects all nodes as they are, and fails where pods are missing."""

    name: ClassVar[str] = "Faulty"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return np.array([1 if info.pods else -1 for info in nodes.infos()], np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        if code > 0:
            return Status.unschedulable("taken")
        return Status.from_error(PluginError("boom"))


def test_errors_without_any_candidate_fail_the_step(make_cluster: type) -> None:
    cluster = make_cluster(
        [small("n1"), small("n2")],
        [make_pod(f"v{n}", node=f"n{n}", priority=1) for n in (1, 2)],
        plugins=("Faulty", "DefaultPreemption"),
        registry={**REGISTRY, "Faulty": Faulty},
    )
    decision = cluster.decide(make_pod("p", priority=10))
    text = 'preemption: running "Faulty" filter plugin: boom'
    assert decision.message == f"0/2 nodes are available: 2 taken. {text}"
    assert decision.nomination is None
    assert decision.post_filter_status is not None
    assert decision.post_filter_status.code == Code.ERROR


# --- which nodes, which victims ---


def test_enough_candidates_end_the_search(make_cluster: type) -> None:
    names = [f"n{number}" for number in range(6)]
    # The later the node, the less its victim matters.
    pods = [
        make_pod(f"v-{name}", node=name, cpu="3", priority=9 - number)
        for number, name in enumerate(names)
    ]
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 2}
    cluster = make_cluster(
        [small(name) for name in names],
        pods,
        plugin_config=[PluginConfig(name="DefaultPreemption", args=args)],
    )
    decision = cluster.decide(make_pod("p", cpu="2", priority=10))
    assert nominated(decision) == "n1"
    cluster.handle.rng = np.random.default_rng(12)  # Draws 3 of 0 to 5.
    assert nominated(cluster.decide(make_pod("q", cpu="2", priority=10))) == "n4"
    cluster.handle.rng = None
    found = plugin_of(cluster).evaluate_all(decision.state, decision.pod, decision.diagnosis)
    assert found.candidates_by_row().rows.tolist() == list(range(6))


@pytest.mark.parametrize("priority", [10, 11])
@pytest.mark.parametrize("tainted", [(), ("n1",), ("n1", "n2", "n3")])
def test_nodes_without_less_important_pods_need_not_be_tried(
    make_cluster: type,
    monkeypatch: pytest.MonkeyPatch,
    priority: int,
    tainted: Sequence[str],
) -> None:
    """The same answer, and the same random numbers for the pods after it."""
    nodes = [
        make_node(name, cpu="4", taints=["k:NoSchedule"] * (name in tainted))
        for name in ("n1", "n2", "n3")
    ]
    pods = [make_pod(f"v{n}", node=f"n{n}", cpu="3", priority=priority) for n in (1, 2, 3)]
    outcomes: list[object] = []
    for is_tried in (True, False):
        if is_tried:
            monkeypatch.setattr(DefaultPreemption, "_is_lowest", lambda plugin, pod: False)
        else:
            monkeypatch.undo()
            monkeypatch.setattr(DefaultPreemption, "_search", None)
        cluster = make_cluster(nodes, pods)
        cluster.handle.rng = rng = np.random.default_rng(12)
        decision = cluster.decide(make_pod("p", cpu="2", priority=10))
        outcomes.append((decision.message, decision.nomination, rng.integers(1_000_000)))
    assert outcomes[0] == outcomes[1]


def test_evaluating_all_nodes_evicts_no_pod(make_cluster: type) -> None:
    cluster = make_cluster(
        [small("n1"), small("n2")], [make_pod("v", node="n1", cpu="3", priority=1)]
    )
    cluster.cache.add_pod(PodInfo(make_pod("w", node="n2", cpu="3", priority=10)))
    decision = cluster.decide(make_pod("p", cpu="2", priority=10))
    cluster.drop_work()
    found = plugin_of(cluster).evaluate_all(decision.state, decision.pod, decision.diagnosis)
    candidates = found.candidates_by_row()
    assert [pod.name for pod in candidates[0].victims] == ["v"]
    assert {name: status.message for name, status in found.statuses().items()} == {
        "n2": "No preemption victims found for incoming pod"
    }
    assert len(cluster.pending_work) == 0


class SparesNamed(DefaultPreemption):
    name: ClassVar[str] = "SparesNamed"
    rules: ClassVar[VictimRules] = DEFAULT_RULES._replace(
        may_evict=lambda node, victim, preemptor: victim.name != "protected"
    )


@pytest.mark.parametrize("node_count", [pytest.param(1, id="few"), pytest.param(20, id="many")])
def test_a_plugin_built_on_this_one_has_its_own_rules(make_cluster: type, node_count: int) -> None:
    names = [f"n{number}" for number in range(node_count)]
    cluster = make_cluster(
        [small(name) for name in names],
        [make_pod("protected", namespace=name, node=name, cpu="3", priority=1) for name in names],
        plugins=("NodeResourcesFit", "SparesNamed"),
        registry={**REGISTRY, "SparesNamed": SparesNamed},
    )
    decision = cluster.decide(make_pod("p", cpu="2", priority=10))
    assert f"{node_count} No preemption victims found for incoming pod" in decision.message


class Extender:
    name = "http://ext"
    is_ignorable = False
    has_preempt_verb = True

    def __init__(self, answer: Mapping[str, MetaVictims]) -> None:
        self._answer = answer

    def is_interested(self, pod: Pod) -> bool:
        return True

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
        return self._answer


@pytest.mark.parametrize(
    ("answer", "node_name", "text"),
    [
        pytest.param({"n2": MetaVictims(["v2"], 0)}, "n2", "", id="other-node"),
        pytest.param({}, None, "preemption: no candidate node for preemption", id="none-left"),
        pytest.param(
            {"n1": MetaVictims([], 0)},
            None,
            'preemption: expected at least one victim pod on node "n1"',
            id="failure",
        ),
    ],
)
def test_extenders_filter_the_candidates(
    make_cluster: type, answer: Mapping[str, MetaVictims], node_name: str | None, text: str
) -> None:
    cluster = make_cluster(
        [small("n1"), small("n2")],
        [make_pod(f"v{n}", uid=f"v{n}", node=f"n{n}", cpu="3", priority=n) for n in (1, 2)],
    )
    cluster.handle.extenders = (Extender(answer),)
    decision = cluster.decide(make_pod("p", cpu="2", priority=10))
    assert nominated(decision) == node_name
    assert decision.message == f"0/2 nodes are available: 2 Insufficient cpu. {text}".strip()


def test_budgets_are_read_again_when_they_change(make_cluster: type) -> None:
    from kubestow.api.meta import LabelSelector, ObjectMeta
    from kubestow.api.workload import PodDisruptionBudget, PodDisruptionBudgetSpec

    cluster = make_cluster(
        [small("n1"), small("n2")],
        [
            make_pod(f"v{n}", node=f"n{n}", cpu="3", priority=1, labels={"app": f"a{n}"})
            for n in (1, 2)
        ],
    )
    assert nominated(cluster.decide(make_pod("p", cpu="2", priority=10))) == "n1"
    cluster.objects.put(
        PodDisruptionBudget(
            metadata=ObjectMeta(name="b", namespace="default"),
            spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "a1"})),
        )
    )
    assert nominated(cluster.decide(make_pod("q", cpu="2", priority=10))) == "n2"


# --- the queue ---


def test_a_preemptor_waits_until_its_victims_are_on_their_way(make_cluster: type) -> None:
    cluster = make_cluster([small("n1")], [make_pod("v", node="n1", cpu="3", priority=1)])
    plugin = plugin_of(cluster)
    pod = make_pod("p", cpu="2", priority=10)
    assert plugin.pre_enqueue(pod) is None
    cluster.decide(pod)
    assert plugin.pre_enqueue(pod) == Status.unresolvable(
        "waiting for the preemption for this pod to be finished"
    )
    assert plugin.pre_enqueue(make_pod("other")) is None
    cluster.objects.pods.remove("default", "v")
    asyncio.run(cluster.run_work())
    assert plugin.pre_enqueue(pod) is None


def test_deleted_pods_are_registered_but_queue_no_pod() -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(), make_handle())
    victim = make_pod("v", node="n1")
    assert run_hint(plugin, ASSIGNED_POD_DELETE, make_pod("p"), victim, None) is Hint.SKIP


def test_without_the_gate_nothing_is_held_back() -> None:
    gates = FeatureGates({"SchedulerAsyncPreemption": False})
    plugin = DefaultPreemption(DefaultPreemptionArgs(), make_handle(feature_gates=gates))
    assert plugin.events() == ()
    assert plugin.pre_enqueue(make_pod("p")) is None


def test_arguments_of_another_type_are_refused() -> None:
    with pytest.raises(ConfigError, match="DefaultPreemptionArgs"):
        DefaultPreemption({}, make_handle())
