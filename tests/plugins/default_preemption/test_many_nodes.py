"""Trying many nodes at once gives what trying them one by one gives."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
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
from kubestow.framework.reuse import Reads, Reuse
from kubestow.framework.runner import run_pre_filter
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.plugins.default_preemption.dry_run import DryRun, Evaluator, TrialInputs
from kubestow.plugins.default_preemption.eligibility import DEFAULT_RULES
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.plugins.default_preemption.many_nodes import ManyNodes
from kubestow.plugins.default_preemption.one_node import OneNode
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_node, make_pod
from tools.small_cluster import SmallCluster

NOW_S = 1_700_000_000
PLUGINS = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
)


def inputs_of(cluster: SmallCluster, pod: Pod) -> TrialInputs:
    info, state = PodInfo(pod), CycleState()
    run_pre_filter(cluster.profile, state, info, nodes_of(cluster.snapshot))
    budgets = cluster.objects.pod_disruption_budgets
    return TrialInputs(
        cluster.profile,
        state,
        info,
        cluster.snapshot,
        cluster.nominator,
        BudgetTable(budgets) if len(budgets) else None,
        DEFAULT_RULES,
        cluster.clock.now_ns(),
        FilterTable(cluster.profile).of_attempt(state, info),
    )


def outcome(evaluator: Evaluator, inputs: TrialInputs, wanted: int | None) -> object:
    """Everything a dry run says, in a form to compare."""
    dry_run = DryRun(inputs.snapshot)
    dry_run.search(evaluator, np.arange(len(inputs.snapshot)), wanted)
    found = dry_run.candidates()
    return (
        [
            (candidate.row, [pod.key for pod in candidate.victims], candidate.violation_count)
            for candidate in (found[position] for position in range(len(found)))
        ],
        found.ranks.tolist(),
        found.best().tolist(),
        dry_run.statuses(),
        dry_run.error(),
        dry_run.message(),
    )


def assert_equal_outcomes(cluster: SmallCluster, pod: Pod) -> None:
    inputs = inputs_of(cluster, pod)
    for wanted in (None, 1, 2, 5):
        many = outcome(ManyNodes(inputs), inputs, wanted)
        assert many == outcome(OneNode(inputs), inputs, wanted)


# --- random clusters ---

START_TIMES = st.none() | st.sampled_from(
    # One in the past, one at this very moment, one in the future.
    [datetime.fromtimestamp(NOW_S + seconds, UTC) for seconds in (-100, -50, 0, 50)]
)
LABELS = st.sampled_from([{}, {"app": "a"}, {"app": "b"}])
ANTI_AFFINITY = Affinity(
    pod_anti_affinity=PodAffinity(
        required=(
            PodAffinityTerm(
                label_selector=LabelSelector(match_labels={"app": "a"}), topology_key="zone"
            ),
        )
    )
)
SPREAD = TopologySpreadConstraint(
    max_skew=1,
    topology_key="zone",
    when_unsatisfiable="DoNotSchedule",
    label_selector=LabelSelector(match_labels={"app": "a"}),
)


@st.composite
def pods(draw: st.DrawFn, name: str, *, priority: st.SearchStrategy[int], node: str = "") -> Pod:
    gpus = draw(st.sampled_from([0, 0, 1]))
    return make_pod(
        name,
        node=node,
        priority=draw(priority),
        cpu=draw(st.sampled_from([None, "1", "2", "3"])),
        memory=draw(st.sampled_from([None, "1Gi", "3Gi"])),
        requests={"example.com/gpu": gpus} if gpus else {},
        labels=draw(LABELS),
        host_ports=draw(st.sampled_from([(), (), (), (80,)])),
        start_time=draw(START_TIMES),
        deleted=draw(st.sampled_from([None, None, datetime(2023, 1, 1, tzinfo=UTC)])),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return make_node(
        name,
        cpu=draw(st.sampled_from(["2", "4"])),
        memory="4Gi",
        pods=draw(st.sampled_from([2, 4, 110])),
        allocatable=draw(st.sampled_from([{}, {"example.com/gpu": 2}])),
        labels={"zone": draw(st.sampled_from(["z1", "z2"]))},
        unschedulable=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def budgets(draw: st.DrawFn, name: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(
            selector=LabelSelector(match_labels={"app": draw(st.sampled_from("ab"))})
        ),
        status=PodDisruptionBudgetStatus(disruptions_allowed=draw(st.integers(0, 2))),
    )


@st.composite
def clusters(draw: st.DrawFn) -> SmallCluster:
    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    low = st.integers(-1, 3)
    running = [
        draw(pods(f"{name}-{number}", priority=low, node=name))
        for name in names
        for number in range(draw(st.integers(0, 5)))
    ]
    waiting = [
        make_pod(
            f"w{number}",
            priority=draw(st.integers(0, 4)),
            cpu="1",
            nominated_node=draw(st.sampled_from(names)),
        )
        for number in range(draw(st.integers(0, 2)))
    ]
    return SmallCluster(
        [draw(nodes(name)) for name in names],
        running,
        plugins=PLUGINS,
        waiting=waiting,
        objects=[draw(budgets(f"b{number}")) for number in range(draw(st.integers(0, 2)))],
        now_s=NOW_S,
    )


@given(clusters(), pods("p", priority=st.integers(0, 4)))
def test_many_nodes_equal_one_node_after_the_other(cluster: SmallCluster, pod: Pod) -> None:
    assert_equal_outcomes(cluster, pod)


@pytest.mark.parametrize("guarded", ["", "a", "ab", "abc"])
def test_pods_that_have_not_started_are_sorted_as_often(guarded: str) -> None:
    """Once more where some would violate a budget and some would not."""
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "a"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=0),
    )
    names = ["n1", "n2"]
    running = [
        make_pod(name + each, node=name, cpu="2", labels={"app": "a"} if each in guarded else None)
        for name in names
        for each in "abc"
    ]
    cluster = SmallCluster(
        [make_node(name, cpu="6") for name in names], running, plugins=PLUGINS, objects=[budget]
    )
    assert_equal_outcomes(cluster, make_pod("p", cpu="6", priority=1))


@given(clusters(), st.sampled_from(["1", "2"]), st.sampled_from(["affinity", "spread", "both"]))
def test_plugins_with_a_state_change_nothing(cluster: SmallCluster, cpu: str, kind: str) -> None:
    pod = make_pod(
        "p",
        priority=3,
        cpu=cpu,
        labels={"app": "a"},
        affinity=ANTI_AFFINITY if kind != "spread" else None,
        spread=[SPREAD] if kind != "affinity" else [],
    )
    assert_equal_outcomes(cluster, pod)


# --- clusters that change between two attempts ---


@given(clusters(), pods("p", priority=st.integers(1, 4)), st.data())
def test_what_is_kept_follows_the_cluster(
    cluster: SmallCluster, pod: Pod, data: st.DataObject
) -> None:
    assert_equal_outcomes(cluster, pod)
    for _ in range(2):
        running = [info for row in cluster.snapshot.node_infos for info in row.pods]
        if running:
            cluster.cache.remove_pod(data.draw(st.sampled_from(running)).pod)
        name = data.draw(st.sampled_from(cluster.snapshot.names))
        added = data.draw(pods("added", priority=st.integers(-1, 3), node=name))
        cluster.cache.add_pod(PodInfo(added))
        cluster.snapshot.refresh(cluster.cache)
        cluster.clock.advance_s(60)
        assert_equal_outcomes(cluster, pod)


# --- filters from outside ---


class FilterFromOutside:
    """Rejects nodes where a pod named "bad" runs, and asks for them in a way of its own."""

    name: ClassVar[str] = "Outside"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return np.array(
            [any(pod.name == "bad" for pod in info.pods) for info in nodes.infos()], np.int64
        )

    def filter_status(self, state: CycleState, code: int) -> Status:
        return Status.unschedulable("a bad pod")


class BySnapshot(FilterFromOutside):
    """Keeps its state per row of the snapshot, unless it is asked about a simulated node."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if isinstance(nodes, SimulatedNode):
            return super().filter(state, pod, nodes)
        infos = [nodes.snapshot.node_infos[row] for row in nodes.rows]
        return np.array([any(p.name == "bad" for p in info.pods) for info in infos], np.int64)


class Swallowing(FilterFromOutside):
    """Takes whatever goes wrong for a pass."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        try:
            return super().filter(state, pod, nodes)
        except Exception:
            return None


class Faulty(FilterFromOutside):
    """Fails for some nodes, but only when asked about them alone."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if "n1" in nodes.names:
            raise PluginError("broken")
        return None


class FaultyOnNodes(Faulty):
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE)


class TakenForNumbers(FilterFromOutside):
    """Reads pods though it declares that it does not."""

    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NUMBERS)


class WrongShape(FilterFromOutside):
    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return np.zeros(1, np.int64)


class WrongShapeOfNumbers(WrongShape):
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NUMBERS)


class _BadPods:
    """How many bad pods the whole cluster has."""

    def __init__(self, count: int) -> None:
        self.count = count

    def clone(self) -> "_BadPods":
        return _BadPods(self.count)


class WithState(FilterFromOutside):
    """Tolerates one bad pod in the whole cluster; its state follows pods, so it needs no view."""

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> None:
        bad = [other for info in nodes.infos() for other in info.pods if other.name == "bad"]
        state.write(self.name, _BadPods(len(bad)))

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> None:
        state.read(self.name).count += added.name == "bad"

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> None:
        state.read(self.name).count -= removed.name == "bad"

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return np.full(len(nodes), state.read(self.name).count > 1, np.int64)


def outside_cluster(plugin: type, pods_on: Mapping[str, Sequence[Pod]]) -> SmallCluster:
    return SmallCluster(
        [make_node(f"n{number}", cpu="4") for number in range(3)],
        [pod for pods in pods_on.values() for pod in pods],
        plugins=("Outside", "NodeResourcesFit"),
        registry={**REGISTRY, "Outside": plugin},
    )


@pytest.mark.parametrize(
    "plugin",
    [
        FilterFromOutside,
        BySnapshot,
        Swallowing,
        Faulty,
        FaultyOnNodes,
        TakenForNumbers,
        WrongShape,
        WrongShapeOfNumbers,
        WithState,
    ],
)
def test_filters_from_outside_are_asked_in_a_way_they_understand(plugin: type) -> None:
    pods_on = {
        name: [
            make_pod(f"{name}-a", node=name, cpu="2", priority=1),
            make_pod("bad", namespace=name, node=name, cpu="1", priority=priority),
        ]
        for name, priority in (("n0", 1), ("n1", 0))
    }
    pods_on["n2"] = [make_pod("n2-a", node="n2", cpu="3", priority=1)]
    cluster = outside_cluster(plugin, pods_on)
    assert_equal_outcomes(cluster, make_pod("p", priority=10, cpu="2"))


def test_node_by_node_only_as_many_as_are_needed() -> None:
    asked: list[str] = []

    class Counting(FilterFromOutside):
        def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
            nodes.infos()
            asked.extend(nodes.names)
            return None

    names = [f"n{number}" for number in range(20)]
    cluster = SmallCluster(
        [make_node(name, cpu="4") for name in names],
        [make_pod(f"v-{name}", node=name, cpu="3", priority=1) for name in names],
        plugins=("Outside", "NodeResourcesFit"),
        registry={**REGISTRY, "Outside": Counting},
    )
    inputs = inputs_of(cluster, make_pod("p", priority=10, cpu="4"))
    dry_run = DryRun(cluster.snapshot)
    dry_run.search(ManyNodes(inputs), np.arange(20), 2)
    assert dry_run.candidates().rows.tolist() == [0, 1]
    assert set(asked) == {"n0", "n1"}
