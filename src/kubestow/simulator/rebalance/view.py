"""A plan as a picture needs it: how full each node is, and what each step moves.

Amounts are whole numbers in the unit of their resource. Where there are many nodes, those of the
plan are shown, and the fullest of the others.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import CPU, MEMORY, amount_of
from kubestow.cache.node_info import NodeInfo
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.rebalance.goals.defragment import Defragment
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.goals.weighted import Weighted
from kubestow.simulator.rebalance.plan import PlanStep, RebalancePlan
from kubestow.simulator.rebalance.planning import Planner

# Unless the plan has more.
SHOWN_NODES: Final = 60


class ViewedNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node before the plan; amounts in the order of `PlanView.resources`."""

    name: str
    allocatable: tuple[int, ...]
    requested: tuple[int, ...]
    pods: int
    is_closed: bool


class ViewedMove(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that leaves a node, or waited before (`source` is then -1), and gets one.

    source, target   numbers of nodes in `PlanView.nodes`
    """

    pod: str
    source: int
    target: int
    requested: tuple[int, ...]


class ViewedStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`node` is the one that is closed or opened, else -1."""

    text: str
    action: str
    node: int
    moves: tuple[ViewedMove, ...]
    figure: float


class PlanView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The nodes of the picture, the fullest first. `left_out` nodes are not shown."""

    goal: str
    unit: str
    figure_before: float
    resources: tuple[str, ...]
    nodes: tuple[ViewedNode, ...]
    steps: tuple[ViewedStep, ...]
    left_out: int


def view_of(planner: Planner, plan: RebalancePlan) -> PlanView:
    """The picture of a plan that this planner made."""
    cluster = planner.board.cluster
    resources = _resources(planner.board.goal)
    infos = cluster.refresh().node_infos
    shown = _shown(infos, plan, resources)
    numbers = {info.name: number for number, info in enumerate(shown)}
    return PlanView(
        goal=plan.goal,
        unit=plan.unit,
        figure_before=plan.figure_before,
        resources=tuple(resources),
        nodes=tuple(_node(info, resources) for info in shown),
        steps=tuple(_step(cluster, step, numbers, resources) for step in plan.steps),
        left_out=len(infos) - len(shown),
    )


def _resources(goal: Goal) -> list[str]:
    """The resources that are shown, those that the goal is about first."""
    goals = [part.goal for part in goal.parts] if isinstance(goal, Weighted) else [goal]
    named = [name for each in goals if isinstance(each, Defragment) for name in each.resources]
    return list(dict.fromkeys((*named, CPU, MEMORY)))


def _shown(
    infos: Sequence[NodeInfo], plan: RebalancePlan, resources: Sequence[str]
) -> list[NodeInfo]:
    def load(info: NodeInfo) -> tuple[float, str]:
        node = _node(info, resources)
        pairs = zip(node.requested, node.allocatable, strict=True)
        shares = [requested / has for requested, has in pairs if has]
        return -max(shares, default=0.0), info.name

    used = {name for step in plan.steps for name in _names(step)}
    by_load = sorted(infos, key=load)
    others = [info.name for info in by_load if info.name not in used]
    chosen = used | set(others[: max(SHOWN_NODES - len(used), 0)])
    return [info for info in by_load if info.name in chosen]


def _names(step: PlanStep) -> Iterator[str]:
    yield step.node
    if step.to_node:
        yield step.to_node
    yield from (placed.node for placed in step.also_placed)


def _node(info: NodeInfo, resources: Sequence[str]) -> ViewedNode:
    return ViewedNode(
        name=info.name,
        allocatable=tuple(amount_of(name, info.allocatable) for name in resources),
        requested=tuple(amount_of(name, info.requested) for name in resources),
        pods=len(info.pods),
        is_closed=info.node is not None and info.node.spec.unschedulable,
    )


def _step(
    cluster: StillCluster, step: PlanStep, numbers: dict[str, int], resources: Sequence[str]
) -> ViewedStep:
    moves: list[ViewedMove] = []
    node, text = numbers[step.node], f"{step.action} {step.node}"
    if step.pod is not None:
        text = f"evict {step.pod.key} from {step.node}; its replacement goes to {step.to_node}"
        if step.scaled is not None:
            text = (
                f"bring up a replacement on {step.to_node}, then end {step.pod.key} on {step.node}"
            )
        text += f", with its gang {step.gang}" if step.gang else ""
        moves.append(
            ViewedMove(
                pod=step.pod.key,
                source=node,
                target=numbers[step.to_node],
                requested=_requested(cluster, step.pod.key, resources),
            )
        )
    for placed in step.also_placed:
        text += f"; then {placed.pod} is placed on {placed.node}"
        moves.append(
            ViewedMove(
                pod=placed.pod,
                source=-1,
                target=numbers[placed.node],
                requested=_requested(cluster, placed.pod, resources),
            )
        )
    return ViewedStep(
        text=text,
        action=step.action,
        node=-1 if step.pod is not None else node,
        moves=tuple(moves),
        figure=step.figure_after,
    )


def _requested(cluster: StillCluster, key: str, resources: Sequence[str]) -> tuple[int, ...]:
    """What a pod of the cluster takes of its node."""
    namespace, _, name = key.partition("/")
    pod = cluster.objects.pods.get(namespace, name)
    assert pod is not None, key
    requested = PodInfo(pod).accounted.requested
    return tuple(amount_of(resource, requested) for resource in resources)
