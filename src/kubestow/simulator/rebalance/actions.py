"""The steps that a search puts together: evictions, and nodes that are closed or opened."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.board import Board, Evicted


class PlanAction(NamedTuple):
    """A pod to evict, with its gang if it has one, or a node to close or open."""

    kind: Literal["evict", "cordon", "uncordon"]
    node: str
    pod: PodInfo | None = None
    # How many pods are evicted: the whole gang of the pod.
    moves: int = 0


def eviction(board: Board, pod: PodInfo) -> PlanAction:
    return PlanAction("evict", pod.pod.spec.node_name, pod, board.move_count(pod))


def closing(node: str) -> PlanAction:
    return PlanAction("cordon", node)


def opening(node: str) -> PlanAction:
    return PlanAction("uncordon", node)


def do(board: Board, action: PlanAction) -> Evicted | None:
    """Do one action; for an eviction what it came to, which may be an obstacle."""
    if action.pod is not None:
        return board.evict(action.pod)
    if action.kind == "cordon":
        board.close(action.node)
    else:
        board.open(action.node)
    return None


def do_all(board: Board, actions: Iterable[PlanAction]) -> bool:
    """Do actions one after the other; False at the first obstacle."""
    for action in actions:
        found = do(board, action)
        if found is not None and found.obstacle:
            return False
    return True


def move_count(actions: Sequence[PlanAction]) -> int:
    """The number of evictions."""
    return sum(action.moves for action in actions)
