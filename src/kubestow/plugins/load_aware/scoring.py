"""Scores by the use that is forecast for each node with the pod on it.

A strategy scores all rows; what nodes without a usable measurement get is one rule for all
strategies: the mean over the nodes that have one, rounded down. So none of them is preferred or
avoided for its load, and their order among each other is that of the other plugins.
"""

from collections import OrderedDict
from typing import Final, Protocol

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.load_aware_args import RESOURCES, LoadAwareArgs
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.reuse import RowAnswers
from kubestow.plugins.load_aware.rows import ROW_BYTES, FollowedScores, LoadRows, cells_of
from kubestow.usage.measurement import Amounts

# For how many different estimates scores are kept, the most recently used ones.
_ESTIMATES_KEPT: Final = 64
# Above this many changed rows, all together are faster than one by one.
_MANY_ROWS: Final = 16


class LoadStrategy(Protocol):
    def of(self, pod: PodInfo, estimate: Amounts) -> IntArray:
        """int64[row]: the scores of all rows. Read-only."""
        ...


def with_mean(scores: IntArray, load: LoadRows) -> IntArray:
    """Scores in 0..100 of a strategy that scores all rows, of any value where not usable."""
    mean = int(scores[load.usable].sum()) // max(load.usable_count, 1)
    return np.where(load.usable, scores, mean)


class LeastUsed:
    """The share of each resource that stays free, by weight; kept by estimate."""

    def __init__(self, args: LoadAwareArgs, load: LoadRows) -> None:
        given = {spec.name: spec.weight or 1 for spec in args.resources}
        weights = given.get(RESOURCES[0], 0), given.get(RESOURCES[1], 0)
        self._weights = (*weights, sum(given.values()))
        self._load = load
        self._kept: OrderedDict[Amounts, KeptScores] = OrderedDict()
        # Those of the last pod: the next one mostly has the same estimate.
        self._last = KeptScores(Amounts(0, 0), self._weights, load)

    def of(self, pod: PodInfo, estimate: Amounts) -> IntArray:
        return self.kept(estimate).scores

    def kept(self, estimate: Amounts) -> "KeptScores":
        """The scores for pods with this estimate, up to date."""
        kept = self._last
        if kept.estimate is not estimate or kept is not self._load.followed:
            kept = self._last = self._load.followed = self._find(estimate)
        if kept.has_mean:
            kept.follow_mean()
        return kept

    def _find(self, estimate: Amounts) -> "KeptScores":
        # The rows that change from now on are read by another one.
        self._last.read = len(self._load.changed)
        kept = self._kept.get(estimate)
        if kept is None or kept.build != self._load.build:
            kept = self._kept[estimate] = KeptScores(estimate, self._weights, self._load)
            if len(self._kept) > _ESTIMATES_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(estimate)
        kept.estimate = estimate  # It is compared by identity.
        kept.follow()
        return kept


class KeptScores(FollowedScores):
    """The scores of all rows for one estimate. After a placed pod, one of them is another.

    scores   int64[row]; nodes that are not usable get the mean of the others. Read-only for others
    read     how many changes of rows they have; all while they are the ones that are followed
    """

    __slots__ = (
        "_load",
        "_mean",
        "_others",
        "build",
        "read",
        "scores",
    )

    def __init__(self, estimate: Amounts, weights: tuple[int, int, int], load: LoadRows) -> None:
        self.estimate = estimate
        self.build = load.build
        self.formula = estimate[0], estimate[1], *weights
        self._load = load
        self._others = np.flatnonzero(~load.usable)
        self.has_mean = len(self._others) > 0
        self.scores = np.zeros(len(load.usable), np.int64)
        # As plain numbers.
        self.cells = self.scores.data
        self._mean = 0
        self._compute_all()
        self._set_mean()

    def follow(self) -> None:
        """Read the rows that changed since another one was followed."""
        load = self._load
        changed, read = load.changed, self.read
        if len(changed) - read > _MANY_ROWS:
            self._compute_all()
        else:
            for row in changed[read:]:
                free_cpu, free_memory, _, _, cpu, memory = cells_of(load.cells, row * ROW_BYTES)
                if cpu:  # The node is usable.
                    self.enter(row, free_cpu, free_memory, cpu, memory)

    def _compute_all(self) -> None:
        load = self._load
        total = np.zeros(len(load.usable), np.int64)
        for place in range(len(RESOURCES)):
            free = np.maximum(load.headroom[place] - self.estimate[place], 0)
            # Usable nodes offer some of each.
            share = free * MAX_NODE_SCORE // np.maximum(load.allocatable[place], 1)
            total += share * self.formula[2 + place]
        np.floor_divide(total, self.formula[-1], out=self.scores)
        self.scores[self._others] = 0
        self.total = int(self.scores.sum())
        self.scores[self._others] = self._mean
        self.read = len(load.changed)

    def follow_mean(self) -> None:
        """Where the mean is another one, so are answers on rows that no pod has changed."""
        if self.total // self._load.usable_count != self._mean:
            self._set_mean()

    def _set_mean(self) -> None:
        self._mean = self.total // max(self._load.usable_count, 1)
        self.scores[self._others] = self._mean
        self.plain = RowAnswers(None, self.scores)
        self.with_codes = RowAnswers(self._load.codes, self.scores)
