"""The picture of a plan: amounts of each step add up to what the plan leaves."""

import pytest
from tests.simulator.rebalance.rebalance_clusters import Raw, documents, node, owner, pod

from kubestow.api.files import Document
from kubestow.clock import SystemClock
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, RebalancePlan, read_goal
from kubestow.simulator.rebalance.ground import ground_of
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.view import SHOWN_NODES, PlanView, view_of
from tools.rebalance.clusters import GOALS, RandomCluster


def viewed(read: list[Document], goal: str) -> tuple[Planner, RebalancePlan, PlanView]:
    ground = ground_of(read, PlacingSetup())
    planner = Planner(
        ground, read_goal(goal), RebalanceOptions(max_moves=3), Stopping(SystemClock(), 60.0)
    )
    plan = planner.plan()
    return planner, plan, view_of(planner, plan)


@pytest.mark.parametrize("seed", range(24))
def test_amounts_after_all_steps_are_those_of_the_cluster(seed: int) -> None:
    goal = GOALS[seed % len(GOALS)]
    planner, plan, view = viewed(RandomCluster(seed).documents, goal)
    requested = {each.name: list(each.requested) for each in view.nodes}
    names = [each.name for each in view.nodes]
    for step in view.steps:
        for move in step.moves:
            for place, sign in ((move.source, -1), (move.target, 1)):
                if place >= 0:
                    for index, amount in enumerate(move.requested):
                        requested[names[place]][index] += sign * amount
    board = planner.board
    for step in plan.steps:
        if step.pod is None:
            (board.close if step.action == "cordon" else board.open)(step.node)
            continue
        found = board.cluster.objects.pods.get(step.pod.namespace, step.pod.name)
        assert found is not None
        board.evict(board.cluster.scheduler.cache.pod(found))
    for info in board.cluster.refresh().node_infos:
        cpu, memory = requested[info.name][-2:]
        assert (cpu, memory) == (info.requested.milli_cpu, info.requested.memory)
    assert [step.figure for step in view.steps] == [step.figure_after for step in plan.steps]


def crowd(count: int) -> list[Raw]:
    others = [node(f"n{number}") for number in range(count)]
    return [node("full"), *others, owner("web", 2), pod("web-1", "full"), pod("web-2", "full")]


def test_nodes_of_the_plan_are_shown_among_many() -> None:
    _, plan, view = viewed(documents(*crowd(SHOWN_NODES + 10)), "balance")
    assert plan.moves == 1
    assert len(view.nodes) == SHOWN_NODES
    assert view.left_out == 11
    (step,) = view.steps
    (move,) = step.moves
    assert view.nodes[move.source].name == "full" == view.nodes[0].name
    assert view.nodes[move.target].name == plan.steps[0].to_node


def test_the_resource_of_the_goal_comes_first() -> None:
    _, _, view = viewed(documents(*crowd(1)), "spread + 2 * defragment=example.com/gpu:4")
    assert view.resources == ("example.com/gpu", "cpu", "memory")
