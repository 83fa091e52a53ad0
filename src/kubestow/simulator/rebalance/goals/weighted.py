"""Several goals as one: the sum of their figures, each times a weight.

A figure of which more is better counts with the opposite sign, so less is better of the sum.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.ground import Ground


class WeightedGoal(NamedTuple):
    weight: float
    goal: Goal


class Weighted(Goal):
    unit = "weighted sum"

    def __init__(self, parts: Sequence[WeightedGoal], text: str) -> None:
        self.text = text
        self.parts = parts
        self.clears_nodes = any(part.goal.clears_nodes for part in parts)
        self.closes_nodes = any(part.goal.closes_nodes for part in parts)

    def start(self, ground: Ground) -> None:
        for part in self.parts:
            part.goal.start(ground)

    def take(self, pod: PodInfo, row: int) -> None:
        for part in self.parts:
            part.goal.take(pod, row)

    def put(self, pod: PodInfo, row: int) -> None:
        for part in self.parts:
            part.goal.put(pod, row)

    def figure(self) -> float:
        return sum(part.weight * part.goal.cost() for part in self.parts)

    def tendency(self) -> float:
        return sum(part.weight * part.goal.tendency() for part in self.parts)

    def hinders(self, pod: PodInfo) -> bool:
        return any(part.goal.hinders(pod) for part in self.parts)

    def pressure(self, pod: PodInfo, row: int) -> float:
        return sum(part.weight * max(part.goal.pressure(pod, row), 0.0) for part in self.parts)

    def rows(self) -> Iterator[int]:
        """The most promising nodes of each goal in turn."""
        seen: set[int] = set()
        for rows in zip_longest(*(part.goal.rows() for part in self.parts)):
            for row in rows:
                if row is not None and row not in seen:
                    seen.add(row)
                    yield row
