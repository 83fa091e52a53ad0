"""Takes all pods off whole nodes: a node helps only once the last of them is gone.

A scheduler that prefers nodes with much room puts pods on those that are to be cleared next. So all
nodes that shall go are closed first, those that are empty already as well; a node that cannot be
cleared is opened again. Where nodes shall only be defragmented, a node is closed while it is
cleared, and opened then.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.simulator.capacity.amounts import free, requested, total
from kubestow.simulator.rebalance.actions import (
    PlanAction,
    closing,
    do,
    do_all,
    eviction,
    move_count,
    opening,
)
from kubestow.simulator.rebalance.board import Board
from kubestow.simulator.rebalance.candidates import MovablePods
from kubestow.simulator.rebalance.goals.goal import TOLERANCE
from kubestow.simulator.rebalance.stopping import Stopping

# Single nodes that are tried, one after the other, for the next to clear.
NODES_TRIED: Final = 24
# How often the set of nodes to close is corrected by what could be cleared.
ROUNDS: Final = 3


class Clearing:
    def __init__(self, board: Board, candidates: MovablePods, stopping: Stopping) -> None:
        self._board = board
        self._candidates = candidates
        self._stopping = stopping

    def best(self, moves_left: int) -> Sequence[PlanAction]:
        """Actions that make the figure better by clearing nodes; empty if none do.

        The state of the board is as before.
        """
        return self._many(moves_left) or self._one(moves_left)

    # --- Several nodes ------------------------------------------------------------------------

    def _many(self, moves_left: int) -> Sequence[PlanAction]:
        """Close as many nodes as could go by their resources, then clear one after the other."""
        chosen = self._fitting(self._clearable())
        best: Sequence[PlanAction] = ()
        best_cost = self._board.goal.cost()
        for _ in range(ROUNDS):
            if not chosen or self._stopping.is_due():
                break
            cleared: list[str] = []
            for closed in ([], self._unused()):
                actions, found, cost = self._cleared(chosen, closed, moves_left)
                if cost < best_cost - TOLERANCE:
                    best, best_cost = actions, cost
                cleared = max(cleared, found, key=len)
            if len(cleared) == len(chosen):
                break
            # The others are open from the start, so there is more room.
            chosen = cleared
        return best

    def _cleared(
        self, nodes: Sequence[str], also_closed: Sequence[str], moves_left: int
    ) -> tuple[Sequence[PlanAction], list[str], float]:
        """Clear these nodes as far as it goes: what was done, which nodes, and the cost then."""
        board = self._board
        mark = board.mark()
        # Nodes that were closed before the plan stay so.
        to_close = {name: None for name in (*also_closed, *nodes) if not board.is_closed(name)}
        actions: list[PlanAction] = [closing(name) for name in to_close]
        do_all(board, actions)
        cleared: list[str] = []
        for name in nodes:
            steps = [] if self._stopping.is_due() else self._clear(name, moves_left)
            if steps:
                actions += steps
                moves_left -= move_count(steps)
                cleared.append(name)
            elif name in to_close:
                board.open(name)
                actions.append(opening(name))
        cost = board.goal.cost()
        board.undo(mark)
        if not board.goal.closes_nodes:
            done = (*also_closed, *cleared)
            actions += [opening(name) for name in done if name in to_close]
        return _without_detours(actions), cleared, cost

    def _fitting(self, nodes: Sequence[str]) -> list[str]:
        """The first nodes, as many as the free resources of the others suffice for."""
        infos = {info.name: info for info in self._board.cluster.refresh().node_infos}
        unused = set(self._unused())
        is_target = {name: not self._board.is_closed(name) and name not in unused for name in infos}
        room: IntArray = total(free(info) for name, info in infos.items() if is_target[name])
        needed: IntArray = np.zeros(4, np.int64)
        for count, name in enumerate(nodes):
            room = room - (free(infos[name]) if is_target[name] else 0)
            needed = needed + total(map(requested, self._hindering(name)))
            if (needed > room).any():
                return list(nodes[:count])
        return list(nodes)

    # --- One node -----------------------------------------------------------------------------

    def _one(self, moves_left: int) -> Sequence[PlanAction]:
        """The first node whose clearing makes the figure better; the best of a few."""
        board = self._board
        best: Sequence[PlanAction] = ()
        best_rank = (board.goal.cost() - TOLERANCE, 0)
        for name in self._clearable()[:NODES_TRIED]:
            if self._stopping.is_due():
                break
            mark = board.mark()
            closed = [] if board.is_closed(name) else [closing(name)]
            do_all(board, closed)
            steps = self._clear(name, moves_left)
            actions = [*closed, *steps]
            if steps and closed and not board.goal.closes_nodes:
                board.open(name)
                actions.append(opening(name))
            rank = (board.goal.cost(), len(actions))
            if steps and rank < best_rank:
                best, best_rank = actions, rank
            board.undo(mark)
        return best

    def _clear(self, name: str, moves_left: int) -> list[PlanAction]:
        """Evict what hinders from one node; empty, and nothing done, if not all can go."""
        pods = self._hindering(name)
        if len(pods) > moves_left:
            return []
        mark = self._board.mark()
        actions: list[PlanAction] = []
        for pod in _largest_first(pods):
            if not self._board.is_there(pod):
                continue  # It went with its gang.
            actions.append(eviction(self._board, pod))
            found = do(self._board, actions[-1])
            assert found is not None, pod
            if found.obstacle:
                self._candidates.met(found)
            if found.obstacle or move_count(actions) > moves_left:
                self._board.undo(mark)
                return []
        return actions

    def _clearable(self) -> list[str]:
        """Nodes of which all pods that hinder may be evicted, the most promising first."""
        names = self._board.cluster.refresh().names
        found: list[str] = []
        for row in self._board.goal.rows():
            pods = self._hindering(names[row])
            if pods and not any(self._candidates.reason(pod) for pod in pods):
                found.append(names[row])
        return found

    def _hindering(self, name: str) -> list[PodInfo]:
        hinders = self._board.goal.hinders
        return [pod for pod in self._board.pods_on(name) if hinders(pod)]

    def _unused(self) -> list[str]:
        """Open nodes that no pod keeps in use."""
        return [
            name
            for name in self._board.cluster.refresh().names
            if not self._board.is_closed(name) and not self._hindering(name)
        ]


def _largest_first(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Large pods are placed while there is most room."""

    def size(pod: PodInfo) -> tuple[int, int, str]:
        request = pod.accounted.requested
        return -request.milli_cpu, -request.memory, pod.key

    return sorted(pods, key=size)


def _without_detours(actions: Sequence[PlanAction]) -> Sequence[PlanAction]:
    """The actions, or none if no pod is evicted."""
    return actions if move_count(actions) else ()
