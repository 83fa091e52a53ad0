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
from kubestow.plugins.load_aware.rows import ROW_BYTES, LoadRows, cells_of
from kubestow.usage.measurement import Amounts

# For how many different estimates scores are kept, the most recently used ones.
_ESTIMATES_KEPT: Final = 64
# From so many changed rows on, all together are faster than one by one.
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
        return self.kept(estimate).current()

    def kept(self, estimate: Amounts) -> "KeptScores":
        kept = self._last
        if kept.estimate is not estimate or kept.build != self._load.build:
            kept = self._last = self._find(estimate)
        if kept.has_mean:
            kept.follow()
        return kept

    def _find(self, estimate: Amounts) -> "KeptScores":
        kept = self._kept.get(estimate)
        if kept is None or kept.build != self._load.build:
            kept = self._kept[estimate] = KeptScores(estimate, self._weights, self._load)
            if len(self._kept) > _ESTIMATES_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(estimate)
        return kept


class KeptScores:
    """The scores of all rows for one estimate. After a placed pod, one of them is another.

    has_mean   whether some nodes are not usable, and get the mean of the others: only then has
               every change to be followed at once
    plain, with_codes   the answers of the plugin, without its verdicts and with them
    """

    __slots__ = (
        "_load",
        "_mean",
        "_others",
        "_read",
        "_scores",
        "_total",
        "_weights",
        "build",
        "estimate",
        "has_mean",
        "plain",
        "with_codes",
    )

    def __init__(self, estimate: Amounts, weights: tuple[int, int, int], load: LoadRows) -> None:
        self.estimate = estimate
        self.build = load.build
        self._weights = weights
        self._load = load
        self._others = np.flatnonzero(~load.usable)
        self.has_mean = len(self._others) > 0
        self._mean = -1
        self._scores = np.zeros(len(load.usable), np.int64)
        self._compute_all()
        self._set_mean()

    def current(self) -> IntArray:
        """int64[row]. Read-only, until pods are placed."""
        self.follow()
        return self._scores

    def follow(self) -> None:
        """Read the rows that pods changed."""
        changed, read = self._load.changed, self._read
        if len(changed) - read > _MANY_ROWS:
            self._compute_all()
        else:
            scores = self._scores.data
            for row in changed[read:]:
                score = self.score_of(row)
                self._total += score - scores[row]
                scores[row] = score
            self._read = len(changed)
        self._set_mean()

    def score_of(self, row: int) -> int:
        """The score of one row as it is now: plain numbers are fastest."""
        free_cpu, free_memory, _, _, cpu, memory, _, _ = cells_of(self._load.cells, row * ROW_BYTES)
        if not cpu:
            return self._mean  # The node is not usable.
        cpu_weight, memory_weight, total_weight = self._weights
        cpu_estimate, memory_estimate = self.estimate
        free = free_cpu - cpu_estimate
        score = free * MAX_NODE_SCORE // cpu * cpu_weight if free > 0 else 0
        free = free_memory - memory_estimate
        if free > 0:
            score += free * MAX_NODE_SCORE // memory * memory_weight
        return score // total_weight

    def _compute_all(self) -> None:
        load = self._load
        total = np.zeros(len(load.usable), np.int64)
        for place in range(len(RESOURCES)):
            free = np.maximum(load.headroom[place] - self.estimate[place], 0)
            # Usable nodes offer some of each.
            share = free * MAX_NODE_SCORE // np.maximum(load.allocatable[place], 1)
            total += share * self._weights[place]
        np.floor_divide(total, self._weights[-1], out=self._scores)
        self._scores[self._others] = 0
        self._total = int(self._scores.sum())
        self._scores[self._others] = self._mean
        self._read = len(load.changed)

    def _set_mean(self) -> None:
        """Where the mean is another one, so are answers on rows that no pod has changed."""
        mean = self._total // max(self._load.usable_count, 1)
        if mean != self._mean and (self.has_mean or self._mean < 0):
            self._mean = mean
            self._scores[self._others] = mean
            # Where changes are followed at once, the row was computed a moment ago.
            score_of = self._scores.item if self.has_mean else self.score_of
            self.plain = RowAnswers(None, self.current, score_of)
            self.with_codes = RowAnswers(self._load.codes, self.current, score_of)
