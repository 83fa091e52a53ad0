"""The victims on one node (spec 08 A6), by its worked examples."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubestow.arrays import IntArray
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import PreFilterResult
from kubestow.framework.runner import run_pre_filter
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.default_preemption.candidates import Candidate
from kubestow.plugins.default_preemption.dry_run import NO_VICTIMS, TrialInputs
from kubestow.plugins.default_preemption.eligibility import DEFAULT_RULES, VictimRules
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.plugins.default_preemption.one_node import select_victims
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_node, make_pod
from tools.small_cluster import SmallCluster


def budget(
    allowed: int, *, name: str = "b", disrupted: Sequence[str] = (), **labels: str
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted)
        ),
    )


def select(
    pod: Pod,
    pods: Sequence[Pod],
    *,
    budgets: Sequence[PodDisruptionBudget] = (),
    waiting: Sequence[Pod] = (),
    plugins: Sequence[str] = ("NodeResourcesFit",),
    registry: Mapping[str, type] = REGISTRY,
    rules: VictimRules = DEFAULT_RULES,
) -> Candidate | Status:
    cluster = SmallCluster(
        [make_node("n1", cpu="4")], pods, plugins=plugins, waiting=waiting, registry=registry
    )
    info, state = PodInfo(pod), CycleState()
    run_pre_filter(cluster.profile, state, info, nodes_of(cluster.snapshot))
    inputs = TrialInputs(
        cluster.profile,
        state,
        info,
        cluster.snapshot,
        cluster.nominator,
        BudgetTable(budgets) if budgets else None,
        rules,
        cluster.clock.now_ns(),
        FilterTable(cluster.profile).of_attempt(state, info),
    )
    return select_victims(inputs, 0)


def names(found: Candidate | Status) -> list[str]:
    assert isinstance(found, Candidate), found
    return [victim.name for victim in found.victims]


A = make_pod("a", node="n1", priority=10, cpu="2", labels={"app": "a"})
B = make_pod("b", node="n1", priority=5, cpu="1", labels={"app": "b"})
C = make_pod("c", node="n1", priority=1, cpu="1", labels={"app": "c"})
PREEMPTOR = make_pod("p", priority=100, cpu="2")


@pytest.mark.parametrize(
    ("budgets", "expected", "violations"),
    [
        pytest.param([], ["b", "c"], 0, id="A11.2-least-important-go"),
        pytest.param([budget(0, app="b")], ["a"], 0, id="A11.3-budget-costs-a-more-important-pod"),
        pytest.param([budget(1, app="b")], ["b", "c"], 0, id="budget-with-room"),
        pytest.param([budget(0, app="a")], ["b", "c"], 0, id="budget-on-the-one-that-stays"),
        pytest.param(
            [budget(0, app=app, name=app) for app in "abc"], ["b", "c"], 2, id="all-violate"
        ),
        pytest.param(
            [budget(0, app="b", disrupted=["b"])], ["b", "c"], 0, id="A11.4-already-disrupted"
        ),
    ],
)
def test_victims(budgets: list[PodDisruptionBudget], expected: list[str], violations: int) -> None:
    found = select(PREEMPTOR, [C, A, B], budgets=budgets)
    assert names(found) == expected
    assert isinstance(found, Candidate)
    assert found.violation_count == violations


def test_budget_is_charged_in_order_of_importance() -> None:
    # A11.4: the budget has room for X, so Y is the one that violates it.
    pods = [
        make_pod("y", node="n1", priority=8, cpu="2", labels={"app": "x"}),
        make_pod("x", node="n1", priority=9, cpu="2", labels={"app": "x"}),
    ]
    found = select(make_pod(priority=100, cpu="4"), pods, budgets=[budget(1, app="x")])
    assert names(found) == ["x", "y"]
    assert isinstance(found, Candidate)
    assert found.violation_count == 1


def test_victims_of_both_groups_are_sorted_together() -> None:
    pods = [
        make_pod("low", node="n1", priority=1, cpu="2", labels={"app": "x"}),
        make_pod("high", node="n1", priority=2, cpu="2"),
    ]
    found = select(make_pod(priority=100, cpu="4"), pods, budgets=[budget(0, app="x")])
    assert names(found) == ["high", "low"]


def test_no_pod_of_lower_priority() -> None:
    pods = [make_pod("v", node="n1", priority=100, cpu="4")]
    assert select(PREEMPTOR, pods) == NO_VICTIMS
    assert NO_VICTIMS.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_pods_that_may_not_be_evicted_stay() -> None:
    rules = DEFAULT_RULES._replace(may_evict=lambda node, victim, preemptor: victim.name != "c")
    assert names(select(PREEMPTOR, [A, B, C], rules=rules)) == ["a"]


def test_other_order_of_importance() -> None:
    rules = DEFAULT_RULES._replace(importance_key=lambda pod, now_ns: (pod.priority,))
    assert names(select(PREEMPTOR, [A, B, C], rules=rules)) == ["a"]


def test_what_stays_too_small_keeps_the_filter_status() -> None:
    stays = make_pod("s", node="n1", priority=200, cpu="3")
    found = select(PREEMPTOR, [stays, C])
    assert found == Status(Code.UNSCHEDULABLE, "Insufficient cpu", plugin="NodeResourcesFit")


def test_fitting_without_victims_is_an_error() -> None:
    found = select(PREEMPTOR, [C])
    assert isinstance(found, Status)
    assert found.code == Code.ERROR
    assert found.message == 'expected at least one victim pod on node "n1"'


@pytest.mark.parametrize(
    ("nominated", "expected"),
    [
        pytest.param(
            make_pod("q", priority=100, cpu="1", nominated_node="n1"), ["a", "c"], id="equal"
        ),
        pytest.param(
            make_pod("q", priority=99, cpu="1", nominated_node="n1"), ["b", "c"], id="less"
        ),
    ],
)
def test_pods_nominated_to_the_node_count_unless_less_important(
    nominated: Pod, expected: list[str]
) -> None:
    assert names(select(PREEMPTOR, [A, B, C], waiting=[nominated])) == expected


class Brittle:
    """Has a state that follows pods, and fails to."""

    name: ClassVar[str] = "Brittle"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> Status | None:
        return Status.from_error(PluginError(f"cannot add {added.name}"))

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int
    ) -> Status | None:
        return Status.from_error(PluginError("worn out")) if removed.name == "worn" else None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return None

    def filter_status(self, state: CycleState, code: int) -> Status:
        raise AssertionError(code)


@pytest.mark.parametrize(
    ("victim", "expected"),
    [
        pytest.param("worn", 'running RemovePod on PreFilter plugin "Brittle": worn out', id="off"),
        pytest.param("v", 'running AddPod on PreFilter plugin "Brittle": cannot add v', id="back"),
    ],
)
def test_a_plugin_that_cannot_follow_fails_the_node(victim: str, expected: str) -> None:
    found = select(
        PREEMPTOR,
        [make_pod(victim, node="n1", cpu="3")],
        plugins=("NodeResourcesFit", "Brittle"),
        registry={**REGISTRY, "Brittle": Brittle},
    )
    assert isinstance(found, Status)
    assert (found.code, found.message) == (Code.ERROR, expected)
