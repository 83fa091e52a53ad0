"""One attempt of v1.9: predicates on all nodes, scores, turns among equals (spec 04 §19.1, 05
§16)."""

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.editions.shared.policy import Policy, PredicatePolicy, PriorityPolicy, provider_policy
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.engine.decide import DeciderV19, DecisionV19, Turns
from kubestow.editions.v1_9.plugins.pod import PodInfoV19
from kubestow.testing.builders import make_node, make_node_affinity, make_pod, make_term
from tools.bench_v1_9 import BenchV19

DEFAULT = provider_policy("DefaultProvider")


def decider(
    nodes: list[Node], policy: Policy = DEFAULT, pods: list[Pod] | None = None
) -> DeciderV19:
    bench = BenchV19(nodes, pods or [])
    bench.snapshot.refresh(bench.cache)
    return DeciderV19(bench.snapshot, bench.cluster, build_algorithm(policy))


def decide(nodes: list[Node], pod: Pod, policy: Policy = DEFAULT) -> DecisionV19:
    return decider(nodes, policy).decide(PodInfoV19(pod))


def test_the_best_take_turns_from_the_last_name() -> None:
    nodes = [make_node("a", cpu="200m"), make_node("b"), make_node("c")]
    engine = decider(nodes)
    chosen = [engine.decide(PodInfoV19(make_pod())).node_name for _ in range(4)]
    assert chosen == ["c", "b", "c", "b"]
    assert engine.last_node_index == 4


def test_turns_follow_names_when_nodes_come_and_go() -> None:
    bench = BenchV19([make_node(name) for name in ("b", "a", "c")])
    turns = Turns(bench.snapshot)

    def names(*rows: int) -> list[str]:
        return [bench.snapshot.names[row] for row in turns.in_turn(np.array(rows, np.intp))]

    bench.snapshot.refresh(bench.cache)
    assert names(0, 1, 2) == ["c", "b", "a"]
    assert names(0, 1) == ["b", "a"]
    bench.cache.add_node(make_node("bb"))
    bench.snapshot.refresh(bench.cache)
    assert names(0, 1, 2, 3) == ["c", "bb", "b", "a"]


def test_a_single_feasible_node_is_not_scored_and_uses_no_turn() -> None:
    engine = decider([make_node("a"), make_node("b", unschedulable=True)])
    engine.last_node_index = 4
    decision = engine.decide(PodInfoV19(make_pod()))
    assert decision.node_name == "a"
    assert decision.total is None
    assert engine.last_node_index == 4


def test_all_reasons_of_a_node_are_listed_and_counted() -> None:
    nodes = [
        make_node("a", cpu="1"),
        make_node("b", cpu="1"),
        make_node("c", cpu="1", labels={"disk": "hdd"}, unschedulable=True),
    ]
    engine = decider(nodes)
    decision = engine.decide(PodInfoV19(make_pod(cpu="2", node_selector={"disk": "ssd"})))
    assert decision.is_fit_error
    assert decision.error == (
        "0/3 nodes are available: 1 NodeUnschedulable, 3 Insufficient cpu, 3 MatchNodeSelector."
    )
    row = decision.node_names.index("c")
    assert decision.reasons(row) == ("NodeUnschedulable", "Insufficient cpu", "MatchNodeSelector")


def test_without_nodes_the_attempt_fails() -> None:
    decision = decide([], make_pod())
    assert decision.error == "no nodes available to schedule pods"
    assert not decision.is_fit_error


def test_an_error_on_one_node_fails_the_attempt() -> None:
    zone = "failure-domain.beta.kubernetes.io/zone"
    nodes = [make_node("a", labels={zone: "z"}), make_node("b", labels={zone: "z"}), make_node("c")]
    decision = decide(nodes, make_pod(pvcs=["c"]))
    assert decision.error == 'persistentvolumeclaim "c" not found (repeated 2 times)'
    assert not decision.is_fit_error
    assert decision.node_name == ""


@pytest.mark.parametrize(("count", "text"), [(2, "[m, m]"), (3, "[m, m, m]")])
def test_an_error_of_a_priority_comes_once_per_node(count: int, text: str) -> None:
    term = make_term("a Near b")
    pod = make_pod(node_affinity=make_node_affinity(preferred=[(1, term)]))
    decision = decide([make_node(f"n{number}") for number in range(count)], pod)
    message = '"Near" is not a valid node selector operator'
    assert decision.error == text.replace("m", message)


def test_without_priorities_every_node_scores_1() -> None:
    decision = decide([make_node("a"), make_node("b", cpu="1")], make_pod(), Policy())
    assert decision.total is not None
    assert decision.total.tolist() == [1, 1]


def test_an_empty_policy_checks_node_conditions() -> None:
    nodes = [make_node("a", unschedulable=True), make_node("b", taints=["t:NoSchedule"])]
    assert decide(nodes, make_pod(), Policy()).node_name == "b"


def test_two_predicates_with_one_reason_count_twice() -> None:
    policy = Policy(
        predicates=tuple(PredicatePolicy(name=name) for name in ("GeneralPredicates", "HostName"))
    )
    decision = decide([make_node("a")], make_pod(node="x"), policy)
    assert decision.error == "0/1 nodes are available: 2 HostName."


def test_totals_are_weighted_sums() -> None:
    policy = Policy(
        priorities=(
            PriorityPolicy(name="EqualPriority", weight=3),
            PriorityPolicy(name="LeastRequestedPriority", weight=2),
        )
    )
    decision = decide([make_node("a"), make_node("b")], make_pod(), policy)
    assert decision.total is not None
    assert decision.total.tolist() == [3 + 2 * 9] * 2
