"""All sequences of a few steps, for clusters in which they can be tried.

Two orders of the same moves lead to the same state if every replacement goes to the same node; such
a state is looked at once.
"""

from collections.abc import Sequence
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.actions import PlanAction, closing, do, eviction, move_count
from kubestow.simulator.rebalance.board import Board
from kubestow.simulator.rebalance.candidates import MovablePods
from kubestow.simulator.rebalance.goals.goal import TOLERANCE
from kubestow.simulator.rebalance.stopping import Stopping

DEEPEST: Final = 3

# Where moved pods went, and which nodes were closed.
_State = frozenset[tuple[str, str]]


def depth_for(option_count: int, trials_max: int) -> int:
    """How many steps ahead all sequences can be tried: 0 if not even one."""
    depth = 0
    while depth < DEEPEST and option_count ** (depth + 1) <= trials_max:
        depth += 1
    return depth


class Exhaustive:
    """The best sequence of at most `depth` evictions from the present state."""

    def __init__(self, board: Board, candidates: MovablePods, stopping: Stopping) -> None:
        self._board = board
        self._candidates = candidates
        self._stopping = stopping
        self._best: Sequence[PlanAction] = ()
        self._best_cost = 0.0
        self._moves_left = 0
        self._seen: dict[_State, int] = {}

    def options(self, moves_left: int) -> list[tuple[PlanAction, ...]]:
        """What can be done next: an eviction, or one from a node that is closed before."""
        pods = self._candidates.distinct(self._candidates.movable(), moves_left)
        plain = [(eviction(self._board, pod),) for pod in pods]
        if not self._board.goal.closes_nodes:
            return plain
        closed = [
            (closing(pod.pod.spec.node_name), eviction(self._board, pod))
            for pod in pods
            if not self._board.is_closed(pod.pod.spec.node_name)
        ]
        return [*plain, *closed]

    def best(self, depth: int, moves_left: int) -> Sequence[PlanAction]:
        """Empty if no sequence makes the figure better."""
        self._best, self._best_cost, self._seen = (), self._board.goal.cost(), {}
        self._moves_left = moves_left
        self._look((), depth, frozenset())
        return self._best

    def _look(self, done: tuple[PlanAction, ...], depth: int, state: _State) -> None:
        board = self._board
        for option in self.options(self._moves_left - move_count(done)):
            if self._stopping.is_due():
                return
            mark = board.mark()
            reached = self._do(option, state)
            if reached is not None and self._seen.get(reached, 0) < depth:
                self._seen[reached] = depth
                actions = (*done, *option)
                cost = board.goal.cost()
                if cost < self._best_cost - TOLERANCE:
                    self._best, self._best_cost = actions, cost
                if depth > 1:
                    self._look(actions, depth - 1, reached)
            board.undo(mark)

    def _do(self, option: tuple[PlanAction, ...], state: _State) -> _State | None:
        """The state after an option; None if there is an obstacle."""
        for action in option:
            found = do(self._board, action)
            if found is None:
                state |= {("closed", action.node)}
            elif found.obstacle:
                self._candidates.met(found)
                return None
            else:
                state |= {(each.pod.uid, each.node) for each in found.moves}
        return state


def count_options(board: Board, pods: Sequence[PodInfo]) -> int:
    return len(pods) * (2 if board.goal.closes_nodes else 1)
