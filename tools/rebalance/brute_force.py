"""The best figure that any sequence of a few moves reaches.

Every movable pod is tried at every step, also those that are alike, and nothing is remembered.
Where nodes are to become empty, every set of nodes may be closed before the first move.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from kubestow.api.files import Document
from kubestow.clock import SystemClock
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, read_goal
from kubestow.simulator.rebalance.ground import ground_of
from kubestow.simulator.rebalance.planning import Planner
from kubestow.simulator.rebalance.stopping import Stopping

DEPTH: Final = 3


def best_figure(
    documents: Sequence[Document], goal: str, options: RebalanceOptions, depth: int = DEPTH
) -> float:
    """The figure of the best sequence of at most `depth` evictions."""
    clock = SystemClock()
    ground = ground_of(documents, PlacingSetup(), clock)
    planner = Planner(ground, read_goal(goal), options, Stopping(clock, 1e9))
    return _Force(planner).best(depth)


class _Force:
    def __init__(self, planner: Planner) -> None:
        self._board = planner.board
        self._candidates = planner.candidates

    def best(self, depth: int) -> float:
        goal = self._board.goal
        best = goal.cost()
        for closed in self._closings():
            mark = self._board.mark()
            for name in closed:
                self._board.close(name)
            best = min(best, self._look(depth))
            self._board.undo(mark)
        return -best if goal.is_more_better else best

    def _closings(self) -> list[tuple[str, ...]]:
        """All sets of open nodes; the empty one where nodes are not closed."""
        names = [
            name for name in self._board.cluster.refresh().names if not self._board.is_closed(name)
        ]
        if not self._board.goal.closes_nodes:
            return [()]
        return [chosen for count in range(len(names) + 1) for chosen in combinations(names, count)]

    def _look(self, depth: int) -> float:
        best = self._board.goal.cost()
        if not depth:
            return best
        for pod in list(self._candidates.movable()):
            mark = self._board.mark()
            if not self._board.evict(pod).obstacle:
                best = min(best, self._look(depth - 1))
            self._board.undo(mark)
        return best
