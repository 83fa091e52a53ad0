"""Looks for the steps of a plan. It can be stopped at any time: what was found so far is a plan.

In a small cluster all sequences of up to three evictions are tried, the best one is done, and so on
from there. In a larger one the most promising pods are tried one by one; if none helps alone,
pairs: a first move may free the place that the second one needs. Where nodes are to be cleared,
whole nodes are tried as well (`clearing`). In the end steps that were not needed are left out.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.actions import PlanAction, do_all, eviction, move_count, opening
from kubestow.simulator.rebalance.board import Board
from kubestow.simulator.rebalance.candidates import MovablePods
from kubestow.simulator.rebalance.clearing import Clearing
from kubestow.simulator.rebalance.exhaustive import Exhaustive, count_options, depth_for
from kubestow.simulator.rebalance.goals.goal import TOLERANCE
from kubestow.simulator.rebalance.options import RebalanceOptions
from kubestow.simulator.rebalance.stopping import Stopping

# Pods that are tried for one step; first moves of pairs, and second moves of each.
WIDTH: Final = 24
PAIR_FIRSTS: Final = 8
PAIR_SECONDS: Final = 12
# Plans of up to this many actions are tried again without each step that did not help by itself.
PRUNED_ACTIONS: Final = 60
# After an obstacle a pod is not tried again for this many steps.
RESTING_STEPS: Final = 8


class MoveSearch:
    def __init__(
        self,
        board: Board,
        candidates: MovablePods,
        options: RebalanceOptions,
        stopping: Stopping,
        on_step: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`on_step` is called with the number of evictions found so far."""
        self._board = board
        self._candidates = candidates
        self._options = options
        self._stopping = stopping
        self._on_step = on_step
        self._clearing = Clearing(board, candidates, stopping)
        self._exhaustive = Exhaustive(board, candidates, stopping)
        self._resting: dict[str, int] = {}
        self._round = 0

    def run(self) -> list[PlanAction]:
        """The actions of the best plan found; the board is as before."""
        board = self._board
        mark = board.mark()
        actions: list[PlanAction] = []
        while move_count(actions) < self._options.max_moves and not self._stopping.is_due():
            found = self._next(self._options.max_moves - move_count(actions))
            if not found:
                break
            done = do_all(board, found)
            assert done, found
            actions += found
            self._round += 1
            self._on_step(move_count(actions))
        board.undo(mark)
        return self._without_needless(actions)

    def _next(self, moves_left: int) -> Sequence[PlanAction]:
        """Actions that make the figure better, from the present state; empty if none were found."""
        before = self._board.goal.cost()
        small = self._look_ahead(moves_left)
        cleared = self._clearing.best(moves_left) if self._needs_clearing(small, before) else ()
        best = min((cleared, small), key=lambda actions: self._rank(actions, before))
        gain = before - self._cost_after(best)
        least = max(self._options.min_gain * move_count(best), TOLERANCE)
        return best if best and gain >= least else ()

    def _needs_clearing(self, small: Sequence[PlanAction], before: float) -> bool:
        """Whether whole nodes are tried as well.

        In a large cluster that takes hundreds of trials. Where nodes stay open, it is done when no
        few evictions help any more.
        """
        goal = self._board.goal
        if not goal.clears_nodes or goal.closes_nodes or self._is_small():
            return goal.clears_nodes
        return not small or self._cost_after(small) >= before - TOLERANCE

    def _rank(self, actions: Sequence[PlanAction], before: float) -> float:
        """Smaller is better: the gain of each eviction."""
        if not actions:
            return 0.0
        return (self._cost_after(actions) - before) / max(move_count(actions), 1)

    def _cost_after(self, actions: Sequence[PlanAction]) -> float:
        mark = self._board.mark()
        do_all(self._board, actions)
        cost = self._board.goal.cost()
        self._board.undo(mark)
        return cost

    def _look_ahead(self, moves_left: int) -> Sequence[PlanAction]:
        pods = (
            self._candidates.distinct(self._candidates.movable(), moves_left)
            if self._is_small()
            else ()
        )
        option_count = count_options(self._board, pods)
        depth = depth_for(option_count, self._options.exhaustive_trials) if pods else 0
        if depth > 1:
            return self._exhaustive.best(min(depth, moves_left), moves_left)
        return self._climb(moves_left)

    def _is_small(self) -> bool:
        return len(self._board.cluster.objects.pods) <= self._options.exhaustive_trials

    # --- Larger clusters ----------------------------------------------------------------------

    def _climb(self, moves_left: int) -> Sequence[PlanAction]:
        before = self._board.goal.cost()
        tried = self._tried(self._awake(moves_left), WIDTH)
        if not tried or tried[0].cost >= before - TOLERANCE:
            # Those that rest may help by now.
            self._resting.clear()
            tried = self._tried(self._awake(moves_left), 4 * WIDTH)
        if tried and tried[0].cost < before - TOLERANCE:
            return (eviction(self._board, tried[0].pod),)
        return self._pair(tried, before, moves_left) if moves_left > 1 else ()

    def _pair(
        self, firsts: "Sequence[_TriedMove]", before: float, moves_left: int
    ) -> Sequence[PlanAction]:
        board = self._board
        best: Sequence[PlanAction] = ()
        best_cost = before - TOLERANCE
        for first in firsts[:PAIR_FIRSTS]:
            if self._stopping.is_due():
                break
            mark, action = board.mark(), eviction(board, first.pod)
            board.evict(first.pod)
            for second in self._tried(self._awake(moves_left - action.moves), PAIR_SECONDS):
                if second.cost < best_cost:
                    best, best_cost = (action, eviction(board, second.pod)), second.cost
            board.undo(mark)
        return best

    def _awake(self, moves_left: int) -> list[PodInfo]:
        found = self._candidates.distinct(self._candidates.promising(), moves_left)
        return [pod for pod in found if self._resting.get(pod.uid, 0) <= self._round]

    def _tried(self, pods: Sequence[PodInfo], count: int) -> "list[_TriedMove]":
        """The first pods that can be moved, by what comes of it; the best first."""
        board = self._board
        found: list[_TriedMove] = []
        for pod in pods[:count]:
            if self._stopping.is_due():
                break
            mark = board.mark()
            evicted = board.evict(pod)
            if evicted.obstacle:
                self._candidates.met(evicted)
                self._resting[pod.uid] = self._round + RESTING_STEPS
                continue
            found.append(_TriedMove(board.goal.cost(), board.goal.tendency(), pod.key, pod))
            board.undo(mark)
        return sorted(found, key=lambda tried: tried[:3])

    # --- Afterwards ---------------------------------------------------------------------------

    def _without_needless(self, actions: list[PlanAction]) -> list[PlanAction]:
        """Leave out actions without which the plan reaches the same figure."""
        if len(actions) > PRUNED_ACTIONS:
            return actions
        cost = self._cost_after(actions)
        position = 0
        while position < len(actions):
            fewer = _without(actions, position)
            if fewer and self._does_as_well(fewer, cost):
                actions = fewer
            else:
                position += 1
        return actions

    def _does_as_well(self, actions: Sequence[PlanAction], cost: float) -> bool:
        mark = self._board.mark()
        is_possible = do_all(self._board, actions)
        is_as_good = is_possible and self._board.goal.cost() <= cost + TOLERANCE
        self._board.undo(mark)
        return is_as_good


def _without(actions: Sequence[PlanAction], position: int) -> list[PlanAction]:
    """The actions without one; a node that is not closed is not opened either.

    Empty for the opening of a node: a node that was closed for a while must be opened.
    """
    action, rest = actions[position], list(actions[position + 1 :])
    if action.kind == "uncordon":
        return []
    if action.kind == "cordon":
        again = next((one for one in rest if one == opening(action.node)), None)
        if again is not None:
            rest.remove(again)
    return [*actions[:position], *rest]


class _TriedMove(NamedTuple):
    """A pod, and the figure after it was moved."""

    cost: float
    tendency: float
    key: str
    pod: PodInfo
