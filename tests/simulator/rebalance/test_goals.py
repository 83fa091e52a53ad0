"""Figures that follow moves equal those of the same cluster counted from scratch."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.errors import InputError
from kubestow.explain.pod import explain_pod
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, read_goal
from kubestow.simulator.rebalance.ground import Ground, ground_of
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from tools.rebalance.clusters import GOALS, RandomCluster


def planner(seed: int, goal: str) -> tuple[Planner, Ground]:
    clock = SystemClock()
    ground = ground_of(RandomCluster(seed).documents, PlacingSetup(), clock)
    return Planner(ground, read_goal(goal), RebalanceOptions(), Stopping(clock, 60)), ground


@given(seed=st.integers(0, 10_000), goal=st.sampled_from(GOALS))
def test_a_figure_follows_moves_and_their_undoing(seed: int, goal: str) -> None:
    made, ground = planner(seed, goal)
    board, rng = made.board, np.random.default_rng(seed)
    before = board.goal.figure()
    mark = board.mark()
    placed = _placements(ground)
    for _ in range(4):
        pods = list(made.candidates.movable())
        if pods:
            board.evict(pods[int(rng.integers(len(pods)))])
        fresh = read_goal(goal)
        fresh.start(ground)
        assert board.goal.figure() == pytest.approx(fresh.figure(), abs=1e-9)
    board.undo(mark)
    assert board.goal.figure() == before
    assert _placements(ground) == placed


def _placements(ground: Ground) -> set[tuple[str, str]]:
    infos = ground.cluster.refresh().node_infos
    return {(pod.key, info.name) for info in infos for pod in info.pods}


@given(seed=st.integers(0, 10_000))
def test_balance_is_the_deviation_of_shares(seed: int) -> None:
    made, ground = planner(seed, "balance")
    infos = [
        i for i in ground.cluster.refresh().node_infos if i.node and not i.node.spec.unschedulable
    ]
    cpu = [info.requested.milli_cpu / info.allocatable.milli_cpu for info in infos]
    memory = [info.requested.memory / info.allocatable.memory for info in infos]
    expected = (float(np.std(cpu)) + float(np.std(memory))) * 50 if infos else 0.0
    assert made.board.goal.figure() == pytest.approx(expected, abs=1e-3)


@given(seed=st.integers(0, 10_000))
def test_nodes_in_use_are_counted(seed: int) -> None:
    made, ground = planner(seed, "empty-nodes")
    expected = sum(
        any((owner := controller_of(pod.pod)) and owner.kind != "DaemonSet" for pod in info.pods)
        for info in ground.cluster.refresh().node_infos
    )
    assert made.board.goal.figure() == expected


@given(seed=st.integers(0, 10_000))
def test_what_fits_is_counted_by_what_is_left(seed: int) -> None:
    made, ground = planner(seed, "defragment=cpu:2")
    infos = [
        i for i in ground.cluster.refresh().node_infos if i.node and not i.node.spec.unschedulable
    ]
    left = [info.allocatable.milli_cpu - info.requested.milli_cpu for info in infos]
    assert made.board.goal.figure() == sum(max(0, amount) // 2000 for amount in left)


@given(seed=st.integers(0, 10_000))
def test_skews_are_counted_domain_by_domain(seed: int) -> None:
    made, ground = planner(seed, "spread")
    assert made.board.goal.figure() == _slow_spread(ground)


def _slow_spread(ground: Ground) -> int:
    """Of the constraints that the random clusters have: one for each workload, or the defaults."""
    infos = [info for info in ground.cluster.refresh().node_infos if info.node is not None]
    pods = [(pod.pod, info.node) for info in infos for pod in info.pods]
    total = 0
    for app in sorted({pod.metadata.labels["app"] for pod, _ in pods}):
        members = [(pod, node) for pod, node in pods if pod.metadata.labels["app"] == app]
        for key, skew in _constraints(members[0][0], ground):
            counts: Counter[str] = Counter()
            for info in infos:
                assert info.node is not None
                if _may_count(members[0][0], info.node.metadata.labels["disk"]):
                    counts[info.node.metadata.labels[key]] += 0
            for _, node in members:
                assert node is not None
                if node.metadata.labels[key] in counts and _may_count(
                    members[0][0], node.metadata.labels["disk"]
                ):
                    counts[node.metadata.labels[key]] += 1
            lowest = min(counts.values(), default=0)
            total += sum(max(0, count - lowest - skew) for count in counts.values())
    return total


def _constraints(pod: Pod, ground: Ground) -> list[tuple[str, int]]:
    own = pod.spec.topology_spread_constraints
    if own:
        return [(each.topology_key, each.max_skew) for each in own]
    owner = controller_of(pod)
    if owner is None or owner.kind == "DaemonSet":
        return []
    return [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)]


def _may_count(pod: Pod, disk: str) -> bool:
    affinity = pod.spec.affinity
    return affinity is None or affinity.node_affinity is None or disk == "ssd"


@given(seed=st.integers(0, 10_000))
def test_violations_are_what_filters_reject(seed: int) -> None:
    made, ground = planner(seed, "violations")
    expected = 0
    for pod in list(ground.cluster.objects.pods):
        owner = controller_of(pod)
        if owner is not None and owner.kind == "DaemonSet":
            continue
        node = pod.spec.node_name
        explanation = explain_pod(ground.cluster, pod, node=node)
        (found,) = [each for each in explanation.nodes if each.name == node]
        rejecting = {
            answer.plugin: answer.reasons
            for answer in found.filters or ()
            if answer.verdict == "Rejected"
        }
        own = [
            plugin
            for plugin, reasons in rejecting.items()
            if plugin
            in ("NodeAffinity", "TaintToleration", "InterPodAffinity", "PodTopologySpread")
            and "existing pods" not in " ".join(reasons)
        ]
        expected += bool(own)
    assert made.board.goal.figure() == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not NAME or WEIGHT"),
        ("spreads", 'there is no goal "spreads"; goals are spread, '),
        ("spreads", '; did you mean "spread"?'),
        ("best", 'there is no goal "best"; goals are spread'),
        ("spread=1", 'there is no goal "spread=1"'),
        ("0 * spread", 'the weight is "0"'),
        ("x * spread", 'the weight is "x"'),
        ("spread +", "is not NAME or WEIGHT"),
        ("spread balance", "is not NAME or WEIGHT"),
        ("defragment", "needs a resource"),
        ("defragment=cpu:0", 'the amount of cpu is "0"'),
        ("defragment=cpu:x", 'the amount of cpu is "x"'),
        ("defragment=,", "has no name"),
    ],
)
def test_a_wrong_goal_is_named(text: str, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        read_goal(text)
    assert problem in str(raised.value)


def test_a_weighted_goal_keeps_its_parts() -> None:
    assert read_goal("2*spread+balance").text == "2 * spread + 1 * balance"
    assert read_goal("defragment=cpu:500m,memory:1Gi").text == "defragment=cpu:500m,memory:1Gi"
