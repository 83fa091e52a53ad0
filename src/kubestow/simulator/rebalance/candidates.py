"""Which pods may be evicted now, and why the others stay.

Reasons of rules and budgets are found once for each pod. Obstacles are what trials met: they are
counted, because they are what limits a plan that does not help.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kubestow.api.group import GroupKey
from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.board import Board, Evicted, without_likes
from kubestow.simulator.rebalance.budgets import Budgets
from kubestow.simulator.rebalance.gangs import Gangs, gang_key
from kubestow.simulator.rebalance.rules import MovableRules
from kubestow.simulator.rebalance.surging import Surges

# Pods that a pass over promising nodes collects; the most promising of them are tried.
COLLECTED: Final = 256


class MovablePods:
    def __init__(self, board: Board, rules: MovableRules, budgets: Budgets, surges: Surges) -> None:
        self._board = board
        self._gangs = Gangs(board.cluster, rules, budgets)
        self._rules = rules
        self._surges = surges
        # By UID of the pod.
        self._reasons: dict[str, str] = {}
        self.obstacles: dict[str, Evicted] = {}

    def reason(self, pod: PodInfo) -> str:
        """Why a pod stays; empty if it may be evicted."""
        if pod.uid in self._board.moved:
            return "it was moved"
        reason = self._reasons.get(pod.uid)
        if reason is None:
            reason = (
                self._rules.reason(pod.pod)
                or self._gangs.reason(pod.pod)
                or self._surges.reason(pod.pod)
            )
            self._reasons[pod.uid] = reason
        return reason

    def movable(self) -> Iterator[PodInfo]:
        """All pods that may be evicted, node by node."""
        for info in self._board.cluster.refresh().node_infos:
            for pod in list(info.pods):
                if not self.reason(pod):
                    yield pod

    def distinct(self, pods: Iterable[PodInfo], moves_left: int) -> list[PodInfo]:
        """One of pods whose evictions come to the same: of those that are alike, and of a gang;
        without gangs that have more members than moves are left."""
        board, found = self._board, list[PodInfo]()
        seen: set[GroupKey] = set()
        for pod in without_likes(pods):
            key = gang_key(board.cluster, pod.pod)
            if key is not None:
                if key in seen or board.move_count(pod) > moves_left:
                    continue
                seen.add(key)
            found.append(pod)
        return found

    def promising(self) -> list[PodInfo]:
        """Pods that may be evicted, the most promising first.

        Those of promising nodes; if these are few, of all others as well.
        """
        found: list[tuple[float, PodInfo]] = []
        for row in self._rows():
            if len(found) >= COLLECTED:
                break
            found += self._with_pressure(row)
        found.sort(key=lambda entry: (-entry[0], entry[1].key))
        return [pod for _, pod in found]

    def _rows(self) -> Iterator[int]:
        seen: set[int] = set()
        for row in self._board.goal.rows():
            seen.add(row)
            yield row
        yield from (row for row in range(len(self._board.cluster.snapshot)) if row not in seen)

    def _with_pressure(self, row: int) -> list[tuple[float, PodInfo]]:
        goal, pods = self._board.goal, self._board.cluster.snapshot.node_infos[row].pods
        return [(goal.pressure(pod, row), pod) for pod in pods if not self.reason(pod)]

    def met(self, found: Evicted) -> None:
        """Note the obstacle of a trial."""
        self.obstacles[found.pod.uid] = found
