"""A plan has the steps that make the figure better, and why there are no more."""

import pytest
from tests.simulator.rebalance.rebalance_clusters import (
    apart,
    budget,
    documents,
    moves,
    node,
    owner,
    planned,
    pod,
)

from kubestow.errors import InputError
from kubestow.simulator.rebalance import RebalanceOptions, make_plan, read_goal, search
from kubestow.simulator.rebalance.board import RETURNS
from kubestow.simulator.rebalance.clearing import Clearing
from kubestow.simulator.rebalance.planning import NOT_BETTER
from kubestow.simulator.rebalance.rules import NO_CONTROLLER

SKEWED = [node("a"), node("b"), owner("web", 2), pod("web-1", "a"), pod("web-2", "a")]


def test_crowded_pods_are_spread() -> None:
    spread = {"topologySpreadConstraints": apart("web")}
    pods = [pod(f"web-{number}", "a", cpu="500m", **spread) for number in range(4)]
    plan = planned("spread", node("a"), node("b"), node("c"), owner("web", 4), *pods)
    assert plan.figure_before == 3
    assert plan.figure_after == 0
    assert [(before, to) for _, before, to in moves(plan)] == [("a", "b"), ("a", "c")]


def test_each_step_has_the_figure_before_and_after() -> None:
    spread = {"topologySpreadConstraints": apart("web")}
    pods = [pod(f"web-{number}", "a", cpu="500m", **spread) for number in range(4)]
    plan = planned("spread", node("a"), node("b"), node("c"), owner("web", 4), *pods)
    figures = [(step.figure_before, step.figure_after) for step in plan.steps]
    assert figures == [(3, 2), (2, 0)]


def test_load_is_balanced() -> None:
    plan = planned("balance", *SKEWED)
    assert moves(plan) == [("web-1", "a", "b")]
    assert plan.figure_after == 0


def test_a_pod_that_comes_back_is_not_evicted() -> None:
    ssd = {"nodeSelector": {"disk": "ssd"}}
    plan = planned(
        "balance",
        node("a", labels={"disk": "ssd"}),
        node("b"),
        owner("web", 1),
        pod("web-1", "a", **ssd),
    )
    assert moves(plan) == []
    assert [(kept.pods, kept.reason) for kept in plan.limits] == [
        (1, "its replacement would come back to the same node")
    ]


def test_pods_that_are_alike_have_the_same_limit() -> None:
    """One of them is tried for all."""
    ssd = {"nodeSelector": {"disk": "ssd"}}
    pods = [pod(f"web-{number}", "a", **ssd) for number in range(3)]
    cluster = documents(node("a", labels={"disk": "ssd"}), node("b"), owner("web", 3), *pods)
    plan = make_plan(cluster, read_goal("balance"), RebalanceOptions())
    assert [(each.reason, each.pods) for each in plan.limits] == [(RETURNS, 3)]


def test_limits_are_those_after_the_last_step() -> None:
    """The place that a second pod would need is taken by the first."""
    pods = [pod(f"web-{number}", "a", cpu="3") for number in range(2)]
    cluster = documents(node("a", cpu="8"), node("b"), owner("web", 2), *pods)
    plan = make_plan(cluster, read_goal("balance"), RebalanceOptions())
    assert plan.moves == 1
    assert [(each.reason, each.examples) for each in plan.limits] == [(RETURNS, ("default/web-1",))]


def test_a_pod_that_can_be_moved_without_use_is_named() -> None:
    cluster = [node("a"), node("b"), owner("web", 3), *(pod(f"web-{n}", "a") for n in "123")]
    plan = planned("balance", *cluster)
    assert plan.moves == 1
    assert [(each.reason, each.pods) for each in plan.limits] == [(NOT_BETTER, 2)]
    # With more moves another one might help: nothing is said of it.
    cut = planned("balance", *cluster, max_moves=1)
    assert cut.limits == ()


def test_no_room_is_named() -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    plan = planned(
        "violations", tainted, node("b", cpu="1"), owner("web", 1), pod("web-1", "a", "3")
    )
    assert moves(plan) == []
    assert [kept.reason for kept in plan.limits] == [
        "it fits on no other node: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had "
        "untolerated taint(s)."
    ]


def test_a_node_is_closed_and_emptied() -> None:
    plan = planned(
        "empty-nodes",
        node("a"),
        node("b"),
        owner("web", 1),
        owner("db", 1),
        pod("web-1", "a"),
        pod("db-1", "b"),
    )
    assert plan.figure_before == 2
    assert plan.figure_after == 1
    assert [step.action for step in plan.steps][-1] == "evict"
    assert len(plan.freed_nodes) == 1


def test_the_more_expensive_node_becomes_empty() -> None:
    raw = [
        node("a"),
        node("b"),
        owner("web", 1),
        owner("db", 1),
        pod("web-1", "a"),
        pod("db-1", "b"),
    ]

    for expensive in ("a", "b"):
        goal = read_goal("empty-nodes", {expensive: 5.0})
        plan = make_plan(documents(*raw), goal, RebalanceOptions())
        assert plan.freed_nodes == (expensive,)
        assert plan.figure_before == 6


def test_empty_nodes_stay_empty() -> None:
    """The scheduler prefers the node with most room, which is the one that is empty."""
    plan = planned(
        "empty-nodes",
        node("a"),
        node("b"),
        node("empty"),
        owner("web", 1),
        owner("db", 1),
        pod("web-1", "a"),
        pod("db-1", "b"),
    )
    assert plan.figure_after == 1
    assert "empty" in {step.node for step in plan.steps if step.action == "cordon"}


def test_nodes_that_were_closed_before_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even in a plan that is too long to be tried without each step."""
    monkeypatch.setattr(search, "PRUNED_ACTIONS", 0)
    ssd = {"nodeSelector": {"disk": "ssd"}}
    plan = planned(
        "empty-nodes",
        node("a", labels={"disk": "ssd"}, unschedulable=True),
        node("b"),
        node("c"),
        owner("own", 1),
        owner("web", 1),
        pod("own-1", "a", **ssd),
        pod("web-1", "b"),
        pod("db-1", "c", kind=""),
        exhaustive_trials=0,
    )
    assert plan.figure_after == 2
    assert {(step.action, step.node) for step in plan.steps} == {("cordon", "b"), ("evict", "b")}


def test_parts_of_a_resource_are_joined() -> None:
    gpu = {"requests": {"example.com/gpu": "2"}}
    plan = planned(
        "defragment=example.com/gpu:4",
        node("a"),
        node("b"),
        owner("x", 1),
        owner("y", 1),
        pod("x-1", "a", **gpu),
        pod("y-1", "b", **gpu),
    )
    assert (plan.figure_before, plan.figure_after) == (0, 1)
    assert plan.moves == 1


def test_pods_against_their_rules_are_moved() -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    plan = planned("violations", tainted, node("b"), owner("web", 1), pod("web-1", "a"))
    assert (plan.figure_before, plan.figure_after) == (1, 0)
    assert moves(plan) == [("web-1", "a", "b")]


def test_a_closed_node_is_no_violation() -> None:
    closed = node(
        "a",
        unschedulable=True,
        taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    )
    plan = planned("violations", closed, node("b"), owner("web", 1), pod("web-1", "a"))
    assert plan.figure_before == 0


def test_goals_are_added_with_weights() -> None:
    plan = planned("2 * spread + 0.5 * balance", *SKEWED)
    assert plan.goal == "2 * spread + 0.5 * balance"
    assert plan.moves == 1


def test_a_first_move_frees_the_place_of_the_second() -> None:
    """web needs the ssd of b, which is full: db leaves first."""
    plan = planned(
        "violations",
        node("a", labels={"disk": "hdd"}),
        node("b", cpu="2", labels={"disk": "ssd"}),
        owner("web", 1),
        owner("db", 1),
        pod("web-1", "a", cpu="2", nodeSelector={"disk": "ssd"}),
        pod("db-1", "b", cpu="2"),
    )
    assert moves(plan) == [("db-1", "b", "a"), ("web-1", "a", "b")]


def test_a_budget_keeps_a_pod() -> None:
    plan = planned("balance", *SKEWED, budget("web", minAvailable=2))
    assert moves(plan) == []
    assert plan.kept[0].pods == 2
    assert plan.kept[0].reason == (
        "its disruption budget default/web allows no disruption: 2 healthy, 2 needed"
    )


def test_a_budget_that_allows_one_is_kept_by_steps_in_turn() -> None:
    pods = [pod(f"web-{number}", "a", cpu="500m") for number in range(4)]
    plan = planned(
        "balance",
        node("a"),
        node("b"),
        owner("web", 4),
        *pods,
        budget("web", maxUnavailable=1),
        start_s=7,
    )
    assert plan.moves == 2
    # The grace period of the pod is longer than the start of its replacement.
    assert [(step.starts_at_s, step.ends_at_s) for step in plan.steps] == [(0, 30), (30, 60)]


def test_a_pod_of_two_budgets_stays() -> None:
    second = budget("web", maxUnavailable=1)
    second["metadata"]["name"] = "second"
    plan = planned("balance", *SKEWED, budget("web", maxUnavailable=1), second)
    assert moves(plan) == []
    assert plan.kept[0].reason.startswith("several disruption budgets")


def test_pods_without_a_controller_stay() -> None:
    plan = planned(
        "balance", node("a"), node("b"), pod("x-1", "a", kind=""), pod("y-1", "a", kind="")
    )
    assert moves(plan) == []
    assert [(kept.pods, kept.reason) for kept in plan.kept] == [(2, NO_CONTROLLER)]


def test_a_replacement_that_evicts_others_finds_no_place() -> None:
    plan = planned(
        "balance",
        node("a"),
        node("b", cpu="2"),
        owner("web", 1),
        owner("low", 1),
        pod("web-1", "a", cpu="2500m", priority=100),
        pod("low-1", "b", cpu="2", kind=""),
    )
    assert moves(plan) == []


def test_a_pod_that_waits_gets_the_place_that_is_left() -> None:
    waiting = pod("late-1", "", cpu="4")
    del waiting["spec"]["nodeName"]
    waiting["status"] = {"phase": "Pending"}
    plan = planned(
        "violations",
        node("a", labels={"disk": "hdd"}),
        node("b", labels={"disk": "ssd"}),
        owner("web", 1),
        owner("late", 1),
        pod("web-1", "a", nodeSelector={"disk": "ssd"}),
        pod("db-1", "b", kind=""),
        waiting,
    )
    (step,) = plan.steps
    assert [(each.pod, each.node) for each in step.also_placed] == [("default/late-1", "a")]


def test_a_statefulset_pod_is_placed_once_it_is_gone() -> None:
    plan = planned(
        "balance",
        node("a"),
        node("b"),
        owner("db", 2, kind="StatefulSet"),
        pod("db-0", "a", kind="StatefulSet"),
        pod("db-1", "a", kind="StatefulSet"),
    )
    assert plan.moves == 1
    assert plan.steps[0].waits_for_end
    assert plan.steps[0].ends_at_s == 40


def test_a_pod_on_a_node_that_was_not_read_is_left_alone() -> None:
    """Nodes and pods are listed one after the other: a node may be gone, or come, in between."""
    plan = planned("balance", *SKEWED, owner("db", 1), pod("db-1", "gone", cpu="4"))
    assert moves(plan) == [("web-1", "a", "b")]


def test_moves_are_limited() -> None:
    pods = [pod(f"web-{number}", "a", cpu="500m") for number in range(6)]
    raw = [node("a"), node("b"), owner("web", 6), *pods]
    assert planned("balance", *raw).moves == 3
    assert planned("balance", *raw, max_moves=2).moves == 2


def test_small_gains_are_left_out() -> None:
    assert planned("balance", *SKEWED, min_gain=50).moves == 0


def test_a_stopped_search_has_what_it_found() -> None:
    plan = planned("balance", *SKEWED, time_limit_s=0)
    assert plan.moves == 0
    assert plan.stopped == "time limit"


def test_nothing_to_do_is_no_limit() -> None:
    plan = planned("violations", node("a"), owner("web", 1), pod("web-1", "a"))
    assert plan.limits == ()


def test_balance_of_used_resources() -> None:
    usage = [
        {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "PodMetrics",
            "metadata": {"name": name, "namespace": "default"},
            "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "1Gi"}}],
        }
        for name, cpu in (("web-1", "3"), ("web-2", "100m"))
    ]
    plan = planned("balance=used", *SKEWED, *usage)
    assert plan.figure_before > planned("balance", *SKEWED).figure_before
    assert plan.moves == 1


def test_used_resources_must_be_known() -> None:
    with pytest.raises(InputError, match="there are no PodMetrics"):
        planned("balance=used", *SKEWED)


def test_a_resource_must_be_there() -> None:
    with pytest.raises(InputError, match="no node has the resource"):
        planned("defragment=example.com/none", *SKEWED)


def test_the_same_input_gives_the_same_plan() -> None:
    first, second = planned("balance", *SKEWED), planned("balance", *SKEWED)
    assert first == second


def test_whole_nodes_are_not_tried_while_single_evictions_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a large cluster: a pod goes to a node that has more free than places for the shape."""

    def fail(*_: object) -> None:
        pytest.fail("whole nodes were tried")

    monkeypatch.setattr(Clearing, "best", fail)
    names = [f"n{number:02}" for number in range(30)]
    pods = [pod(f"web-{name}", name) for name in names]
    cluster = [*map(node, names), node("large", cpu="63"), owner("web", len(names)), *pods]
    plan = planned("defragment=cpu:4", *cluster, max_moves=1, exhaustive_trials=1)
    assert plan.figure_after == plan.figure_before + 1


def test_pods_that_go_with_their_node_are_no_violation() -> None:
    """Static pods of kubeadm tolerate NoExecute only, on a node with NoSchedule."""
    tainted = node("a", taints=[{"key": "control-plane", "effect": "NoSchedule"}])
    mirror = {"kubernetes.io/config.mirror": "x"}
    static = pod("etcd-a", "a", kind="Node", annotations=mirror)
    plan = planned("violations", tainted, node("b"), owner("web", 1), static, pod("web-1", "a"))
    assert plan.figure_before == 1
    assert moves(plan) == [("web-1", "a", "b")]
