"""Which pods may be evicted from a node, and in which order they are reprieved."""

import weakref
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubestow.cache.node_info import NodeInfo
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption.evictable import (
    NOT_STARTED,
    Evictable,
    PodsOfNode,
    lower_scalar_sums,
    lower_sums,
)
from kubestow.testing import make_node, make_pod, make_snapshot

NOW_S = 1_700_000_000
NOW_NS = NOW_S * 10**9


def started(name: str, priority: int, seconds_ago: int | None) -> Pod:
    start = None if seconds_ago is None else datetime.fromtimestamp(NOW_S - seconds_ago, UTC)
    return make_pod(name, priority=priority, start_time=start, labels={"app": name})


def node_with(pods: Sequence[Pod]) -> PodsOfNode:
    info = NodeInfo("n1")
    for pod in pods:
        info.add_pod(PodInfo(pod))
    return PodsOfNode(info)


def names(evictable: Evictable) -> list[str]:
    return [pod.name for pod in evictable.pods]


PODS = [
    started("late", 1, 10),
    started("high", 9, 500),
    started("unstarted", 1, None),
    started("early", 1, 100),
    started("low", 0, 900),
]


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(10, ["high", "early", "late", "unstarted", "low"], id="all"),
        pytest.param(9, ["early", "late", "unstarted", "low"], id="equal-stays"),
        pytest.param(1, ["low"], id="some"),
        pytest.param(0, [], id="none"),
    ],
)
def test_pods_below_a_priority_by_importance(priority: int, expected: list[str]) -> None:
    assert names(node_with(PODS).below(priority, None, NOW_NS)) == expected


def test_answers_do_not_depend_on_earlier_questions() -> None:
    node = node_with(PODS)
    for priority in (9, 1, 9, 10):
        fresh = node_with(PODS).below(priority, None, NOW_NS)
        assert names(node.below(priority, None, NOW_NS)) == names(fresh)


def test_an_unstarted_pod_comes_before_one_that_starts_in_the_future() -> None:
    node = node_with([started("future", 1, -100), started("unstarted", 1, None)])
    assert names(node.below(5, None, NOW_NS)) == ["unstarted", "future"]
    later_ns = NOW_NS + 200 * 10**9
    assert names(node.below(5, None, later_ns)) == ["future", "unstarted"]
    # Equal times leave the order of the node.
    assert names(node.below(5, None, NOW_NS + 100 * 10**9)) == ["future", "unstarted"]


def test_pods_that_violate_a_budget_are_spared_first() -> None:
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "low"})),
    )
    budgets = BudgetTable([budget])
    found = node_with(PODS).below(9, budgets, NOW_NS)
    assert names(found) == ["low", "early", "late", "unstarted"]
    assert found.violating_count == 1
    assert [values[3] for values in found.values] == [0, 1, 1, 1]
    assert found.values[3][4] == NOT_STARTED


def test_sums_of_lower_pods() -> None:
    snapshot = make_snapshot(
        [make_node("n1"), make_node("n2")],
        [
            make_pod("a", node="n1", priority=1, cpu="1", memory="1Ki", requests={"x/gpu": 2}),
            make_pod("b", node="n1", priority=5, cpu="2"),
            make_pod("c", node="n1", priority=2, requests={"ephemeral-storage": 7, "x/gpu": 1}),
        ],
    )
    assert lower_sums(nodes_of(snapshot), 5).tolist() == [[2, 0], [1000, 0], [1024, 0], [7, 0]]
    assert lower_scalar_sums(nodes_of(snapshot), 5, "x/gpu").tolist() == [3, 0]


def test_an_answer_does_not_keep_the_budgets_it_is_based_on() -> None:
    node = node_with(PODS)
    budgets = BudgetTable([])
    assert names(node.below(1, budgets, NOW_NS)) == ["low"]
    kept = weakref.ref(budgets)
    del budgets
    assert kept() is None
