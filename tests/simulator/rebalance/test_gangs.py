"""A gang moves whole or not at all."""

import subprocess
from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import (
    Raw,
    budget,
    documents,
    moves,
    node,
    owner,
    planned,
    pod,
)

from kubestow.config.feature_gates import parse_gates
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, RebalancePlan, make_plan, read_goal
from kubestow.simulator.rebalance.board import GANG_MISFIT, GANG_RETURNS
from kubestow.simulator.rebalance.gangs import INCOMPLETE, LATE, SHORT, UNREAD
from kubestow.simulator.rebalance.script import script_of

GATES = parse_gates(
    [
        f"{name}=true"
        for name in ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
    ]
)
SETUP = PlacingSetup(gates=GATES)


def group(name: str, min_count: int, topology: str = "") -> Raw:
    spec: Raw = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"group-{name}"},
        "spec": spec,
    }


def gang(name: str, *nodes: str, cpu: str = "1", **spec: Any) -> list[Raw]:
    """A group with a member on each node given, and its controller."""
    member = {"schedulingGroup": {"podGroupName": name}, **spec}
    made = owner(name, len(nodes), cpu=cpu)
    made["spec"]["template"]["spec"] |= member
    pods = [pod(f"{name}-{number}", on, cpu=cpu, **member) for number, on in enumerate(nodes, 1)]
    return [group(name, len(nodes)), made, *pods]


def gang_plan(goal: str, *raw: Raw, **options: Any) -> RebalancePlan:
    return make_plan(documents(*raw), read_goal(goal), RebalanceOptions(**options), SETUP)


def limits(plan: RebalancePlan) -> list[str]:
    return [kept.reason for kept in (*plan.limits, *plan.kept)]


CROWDED = [node("a", cpu="3"), node("b", cpu="8"), *gang("train", "a", "a", "a")]


@pytest.mark.parametrize("trials", [pytest.param(0, id="climbing"), pytest.param(1000, id="all")])
def test_a_gang_is_evicted_as_one(trials: int) -> None:
    plan = gang_plan("balance", *CROWDED, exhaustive_trials=trials)
    assert moves(plan) == [(f"train-{number}", "a", "b") for number in (1, 2, 3)]
    assert plan.moves == 3
    assert {step.gang for step in plan.steps} == {"default/train"}
    (unit,) = plan.units
    assert len({(each.starts_at_s, each.ends_at_s, each.figure_after) for each in unit}) == 1
    assert plan.figure_after < plan.figure_before


def test_no_part_of_a_gang_moves_when_it_does_not_fit_whole() -> None:
    """Two of three members fit on the other node beside the three that are ending."""
    plan = gang_plan("balance", node("a", cpu="3"), node("b", cpu="2"), *gang("train", *"aaa"))
    assert plan.steps == ()
    assert limits(plan) == [GANG_MISFIT]


def test_a_member_may_come_back_if_another_moves() -> None:
    plan = gang_plan("spread + balance", node("a", cpu="6"), node("b", cpu="2"), *gang("t", *"aaa"))
    assert sorted(to for _, _, to in moves(plan)) == ["a", "a", "b"]


def test_a_gang_that_comes_back_whole_is_not_evicted() -> None:
    ssd = {"nodeSelector": {"disk": "ssd"}}
    plan = gang_plan(
        "balance", node("a", cpu="8", labels={"disk": "ssd"}), node("b"), *gang("t", *"aa", **ssd)
    )
    assert plan.steps == ()
    assert limits(plan) == [GANG_RETURNS]


def test_the_script_evicts_a_gang_with_one_command() -> None:
    script = script_of(gang_plan("balance", *CROWDED))
    words = " ".join(f"train-{number} train-{number} a b" for number in (1, 2, 3))
    assert script.replace(" \\\n ", "").splitlines()[-1] == f"evict_gang default 330 {words}"
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


def test_each_member_counts_as_a_move() -> None:
    assert gang_plan("balance", *CROWDED, max_moves=2).steps == ()
    assert gang_plan("balance", *CROWDED, max_moves=2, exhaustive_trials=0).steps == ()
    assert gang_plan("balance", *CROWDED, max_moves=3).moves == 3


def test_other_pods_move_if_a_gang_has_too_many_members() -> None:
    raw = [node("a"), *CROWDED[1:], owner("web", 1), pod("web-1", "a")]
    assert moves(gang_plan("balance", *raw, max_moves=1)) == [("web-1", "a", "b")]


def test_a_budget_must_allow_the_whole_gang() -> None:
    allowed = gang_plan("balance", *CROWDED, budget("train", maxUnavailable=3))
    assert allowed.moves == 3
    refused = gang_plan("balance", *CROWDED, budget("train", maxUnavailable=2))
    assert refused.steps == ()
    assert limits(refused) == [
        "its disruption budget default/train does not allow to disrupt its whole gang: 3 healthy, "
        "1 needed"
    ]


def test_one_member_that_must_stay_keeps_the_gang() -> None:
    raw = [*CROWDED]
    kept = {**raw[-1], "metadata": {**raw[-1]["metadata"]}}
    kept["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    plan = gang_plan("balance", *raw[:-1], kept)
    assert plan.steps == ()
    text = "it has the annotation karpenter.sh/do-not-disrupt"
    assert set(limits(plan)) == {text, f"its gang stays because of train-3: {text}"}


def test_a_gang_of_which_a_member_waits_stays() -> None:
    raw = [*CROWDED]
    raw[3]["spec"]["replicas"] = 4
    waiting = pod("train-4", "", schedulingGroup={"podGroupName": "train"}, nodeSelector={"x": "y"})
    waiting["status"] = {}
    plan = gang_plan("balance", *raw, waiting)
    raw[3]["spec"]["replicas"] = 3
    assert plan.steps == ()
    assert limits(plan) == [INCOMPLETE]


def test_a_gang_that_is_replaced_pod_by_pod_stays() -> None:
    plan = gang_plan(
        "balance", node("a"), node("b"), *gang("t", "a", "a", terminationGracePeriodSeconds=0)
    )
    assert plan.steps == ()
    assert limits(plan) == [LATE]


def test_a_gang_that_ends_at_once_stays() -> None:
    members = gang("t", "a", "a", terminationGracePeriodSeconds=5)
    assert limits(gang_plan("balance", node("a"), node("b"), *members)) == [SHORT]


def test_members_stay_where_the_scheduler_does_not_read_gangs() -> None:
    assert limits(planned("balance", *CROWDED)) == [UNREAD]


def test_a_node_with_a_gang_becomes_empty() -> None:
    raw = [
        node("a"),
        node("b"),
        node("c", cpu="8"),
        *gang("t", "a", "a", "b"),
        pod("db-1", "c", kind=""),
    ]
    for trials in (0, 1000):
        plan = gang_plan("empty-nodes", *raw, exhaustive_trials=trials)
        assert plan.figure_after == 1
        assert plan.moves == 3
        assert plan.freed_nodes == ("a", "b")


def test_a_gang_stays_in_one_domain() -> None:
    """All members go to one zone, or none moves."""
    zone = "topology.kubernetes.io/zone"
    raw = [node(name, labels={zone: name[0]}) for name in ("x1", "x2", "y1")]
    members = gang("t", "x1", "x1", "x1")
    members[0] = group("t", 3, topology=zone)
    plan = gang_plan("balance", *raw, *members)
    assert {to[0] for _, _, to in moves(plan)} <= {"x"}
