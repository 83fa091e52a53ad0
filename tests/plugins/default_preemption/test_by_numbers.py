"""The trial by numbers gives the results of the trial on a simulated node."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.runner import run_pre_filter
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.default_preemption.by_numbers import ByNumbers
from kubestow.plugins.default_preemption.candidates import Candidate
from kubestow.plugins.default_preemption.dry_run import TrialInputs
from kubestow.plugins.default_preemption.eligibility import DEFAULT_RULES
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.plugins.default_preemption.one_node import select_victims
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_node, make_pod
from tools.small_cluster import SmallCluster

NOW_S = 1_700_000_000
GPU = "example.com/gpu"
NODE = make_node("n1", cpu="4", memory="4Gi", pods=5, allocatable={GPU: 2})


def inputs_for(
    pod: Pod,
    pods: Sequence[Pod],
    *,
    allowed: int | None = None,
    plugins: Sequence[str] = ("NodeResourcesFit",),
) -> TrialInputs:
    cluster = SmallCluster([NODE], pods, plugins=plugins, now_s=NOW_S)
    info, state = PodInfo(pod), CycleState()
    run_pre_filter(cluster.profile, state, info, nodes_of(cluster.snapshot))
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "a"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed or 0),
    )
    return TrialInputs(
        cluster.profile,
        state,
        info,
        cluster.snapshot,
        cluster.nominator,
        None if allowed is None else BudgetTable([budget]),
        DEFAULT_RULES,
        cluster.clock.now_ns(),
        FilterTable(cluster.profile).of_attempt(state, info),
    )


def by_numbers(inputs: TrialInputs, statuses: StatusCodes) -> Candidate | Status:
    trial = ByNumbers.of(inputs, statuses)
    assert trial is not None
    found = trial.try_node(0, inputs.snapshot.node_infos[0], inputs.now_ns)
    return statuses.status_of(found) if isinstance(found, int) else found


AMOUNTS = st.sampled_from([None, "1", "2"])


@st.composite
def running(draw: st.DrawFn, name: str) -> Pod:
    start_s = draw(st.none() | st.integers(NOW_S - 2, NOW_S + 2))
    return make_pod(
        name,
        node="n1",
        priority=draw(st.integers(-1, 3)),
        cpu=draw(AMOUNTS),
        memory=draw(st.sampled_from([None, "1Gi"])),
        requests=draw(st.sampled_from([None, {GPU: 1}, {"ephemeral-storage": "1Gi"}])),
        labels=draw(st.sampled_from([{}, {"app": "a"}])),
        start_time=None if start_s is None else datetime.fromtimestamp(start_s, UTC),
    )


@given(st.data(), st.none() | st.integers(0, 2))
def test_results_equal_those_on_a_simulated_node(data: st.DataObject, allowed: int | None) -> None:
    count = data.draw(st.integers(0, 6))
    pods = [data.draw(running(f"p{number}")) for number in range(count)]
    pod = make_pod(
        priority=2, cpu=data.draw(AMOUNTS), requests=data.draw(st.sampled_from([None, {GPU: 2}]))
    )
    inputs = inputs_for(pod, pods, allowed=allowed)
    expected = select_victims(inputs, 0)
    found = by_numbers(inputs, StatusCodes())
    if isinstance(found, Candidate) and not found.victims:
        # The search reports this as an error.
        assert isinstance(expected, Status)
        assert "expected at least one victim" in expected.message
    else:
        assert found == expected


def test_victims_are_in_order_of_importance() -> None:
    pods = [
        make_pod("guarded", node="n1", cpu="2", priority=0, labels={"app": "a"}),
        make_pod("higher", node="n1", cpu="2", priority=1),
    ]
    found = by_numbers(inputs_for(make_pod(cpu="4", priority=2), pods, allowed=0), StatusCodes())
    assert isinstance(found, Candidate)
    assert [pod.name for pod in found.victims] == ["higher", "guarded"]
    assert found.violation_count == 1


@pytest.mark.parametrize(
    ("guarded", "victims"),
    [
        pytest.param("", "cba", id="none-guarded"),
        pytest.param("abc", "cba", id="all-guarded"),
        # By importance c, b, a; by budget b, a, c; and that is sorted again.
        pytest.param("ab", "cab", id="some-guarded"),
    ],
)
def test_each_sort_reverses_pods_that_have_not_started(guarded: str, victims: str) -> None:
    pods = [
        make_pod(name, node="n1", cpu="2", labels={"app": "a"} if name in guarded else None)
        for name in "abc"
    ]
    inputs = inputs_for(make_pod(cpu="4", priority=2), pods, allowed=0)
    for found in (by_numbers(inputs, StatusCodes()), select_victims(inputs, 0)):
        assert isinstance(found, Candidate)
        assert "".join(pod.name for pod in found.victims) == victims


@pytest.mark.parametrize(
    ("plugins", "is_possible"),
    [
        pytest.param(["NodeResourcesFit"], True, id="numbers"),
        pytest.param(["NodeResourcesFit", "NodeUnschedulable"], False, id="node"),
        pytest.param(["NodeResourcesFit", "NodePorts"], False, id="pods"),
    ],
)
def test_all_filters_must_read_numbers(plugins: list[str], is_possible: bool) -> None:
    inputs = inputs_for(make_pod(cpu="1", host_ports=[80]), [], plugins=plugins)
    assert (ByNumbers.of(inputs, StatusCodes()) is not None) == is_possible


def test_reasons_are_numbered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    filter_status = NodeResourcesFit.filter_status

    def noted(plugin: NodeResourcesFit, state: CycleState, code: int) -> Status:
        decoded.append(code)
        return filter_status(plugin, state, code)

    monkeypatch.setattr(NodeResourcesFit, "filter_status", noted)
    inputs = inputs_for(make_pod(cpu="9", priority=2), [make_pod("low", node="n1", cpu="1")])
    trial = ByNumbers.of(inputs, StatusCodes())
    assert trial is not None
    for _ in range(2):
        assert trial.try_node(0, inputs.snapshot.node_infos[0], inputs.now_ns)
    assert len(decoded) == 1
