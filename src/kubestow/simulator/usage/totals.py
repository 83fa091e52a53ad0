"""Sums of use over the time of a run, in memory that does not grow with it.

A step of the computation holds until the next one. Percentiles are those of a histogram with a
thousand classes up to 100 %: exact to a tenth of a percent.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.arrays import BoolArray, FloatArray, IdArray, IntArray
from kubestow.simulator.usage.results import (
    NodeUsageRow,
    OwnerUsageRow,
    ResourceUsage,
    RunUsage,
    SampleUsage,
)

RESOURCES: Final = ("cpu", "memory")
CPU: Final = 0
CLASSES: Final = 1000
# Memory may be above what is allocatable for a short time; what is far above counts as this.
_CLASSES_MAX: Final = 2 * CLASSES


class UsageStep(NamedTuple):
    """Use from a time on.

    used, available   int64[resource, node]
    is_there          bool[node]
    demanded, lost    float64[pod], thousandths of a core
    owners            int32[pod], the number of each pod's owner
    """

    time_s: float
    used: IntArray
    available: IntArray
    is_there: BoolArray
    demanded: FloatArray
    lost: FloatArray
    owners: IdArray

    def shares(self) -> FloatArray:
        """float64[resource, node] of nodes that are there; 0 where there is nothing to use."""
        available = self.available[:, self.is_there]
        used = self.used[:, self.is_there]
        return np.divide(used, available, where=available > 0, out=np.zeros(used.shape))


class UsageTotals:
    def __init__(self, hot_share: float) -> None:
        self._hot_share = hot_share
        self._classes = np.zeros((len(RESOURCES), _CLASSES_MAX + 1))
        self._share_s = np.zeros((len(RESOURCES), 0))
        self._hot_s = np.zeros((len(RESOURCES), 0))
        self._max_share = np.zeros((len(RESOURCES), 0))
        self._there_s = np.zeros(0)
        self._demanded_s = np.zeros(0)
        self._lost_s = np.zeros(0)
        self._node_lost_s = np.zeros(0)
        self._evicted: dict[int, int] = {}

    def add(self, step: UsageStep, nodes: IntArray, holds_s: float) -> None:
        """Count a step for the time for which it held; `nodes` are those of its pods."""
        self._grow(len(step.is_there), int(step.owners.max(initial=-1)) + 1)
        shares, there = step.shares(), np.flatnonzero(step.is_there)
        # A share such as 0.579 is a little less as a float, and would be in the class below.
        classes = np.minimum(np.floor(shares * CLASSES + 1e-9), _CLASSES_MAX).astype(np.intp)
        for resource in range(len(RESOURCES)):
            counts = np.bincount(classes[resource], minlength=_CLASSES_MAX + 1)
            self._classes[resource] += counts * holds_s
        self._there_s[there] += holds_s
        self._share_s[:, there] += shares * holds_s
        self._hot_s[:, there] += (shares >= self._hot_share) * holds_s
        self._max_share[:, there] = np.maximum(self._max_share[:, there], shares)
        seconds = holds_s / 1000
        owner_count = len(self._lost_s)
        self._demanded_s += np.bincount(step.owners, step.demanded, owner_count) * seconds
        self._lost_s += np.bincount(step.owners, step.lost, owner_count) * seconds
        self._node_lost_s += np.bincount(nodes, step.lost, len(self._node_lost_s)) * seconds

    def evicted(self, owner: int) -> None:
        self._evicted[owner] = self._evicted.get(owner, 0) + 1

    def _grow(self, node_count: int, owner_count: int) -> None:
        more = node_count - len(self._there_s)
        if more > 0:
            self._there_s = np.pad(self._there_s, (0, more))
            self._node_lost_s = np.pad(self._node_lost_s, (0, more))
            widths = ((0, 0), (0, more))
            self._share_s = np.pad(self._share_s, widths)
            self._hot_s = np.pad(self._hot_s, widths)
            self._max_share = np.pad(self._max_share, widths)
        if (more := owner_count - len(self._lost_s)) > 0:
            self._demanded_s = np.pad(self._demanded_s, (0, more))
            self._lost_s = np.pad(self._lost_s, (0, more))

    # --- results ---

    def sample(self, step: UsageStep | None, held_s: float) -> SampleUsage:
        """The use at a step that has held for a time, and what was lost until then."""
        lost_s = math.fsum(self._lost_s)
        if step is None:
            return SampleUsage(
                used={},
                hot_nodes={},
                p95_share={},
                max_share={},
                lost_cpu_s=0.0,
                memory_evictions=0,
            )
        shares = step.shares()
        lost_s += float(step.lost.sum()) * held_s / 1000
        return SampleUsage(
            used=_named(step.used[:, step.is_there].sum(axis=1)),
            hot_nodes=_named((shares >= self._hot_share).sum(axis=1)),
            p95_share=_shares([_percentile(np.sort(row), 95) for row in shares]),
            max_share=_shares([float(row.max(initial=0.0)) for row in shares]),
            lost_cpu_s=round(lost_s, 3),
            memory_evictions=sum(self._evicted.values()),
        )

    def result(
        self, every_s: float, node_names: Sequence[str], owner_names: Sequence[str]
    ) -> RunUsage:
        return RunUsage(
            every_s=every_s,
            hot_share=self._hot_share,
            resources=[self._resource(index, name) for index, name in enumerate(RESOURCES)],
            demanded_cpu_s=round(math.fsum(self._demanded_s), 3),
            lost_cpu_s=round(math.fsum(self._lost_s), 3),
            memory_evictions=sum(self._evicted.values()),
            nodes=[
                self._node(slot, node_names[slot])
                for slot in np.flatnonzero(self._there_s > 0).tolist()
            ],
            owners=[
                OwnerUsageRow(
                    owner=name,
                    demanded_cpu_s=round(float(self._demanded_s[number]), 3),
                    lost_cpu_s=round(float(self._lost_s[number]), 3),
                    memory_evictions=self._evicted.get(number, 0),
                )
                for number, name in enumerate(owner_names[: len(self._lost_s)])
            ],
        )

    def _resource(self, index: int, name: str) -> ResourceUsage:
        classes, there_s = self._classes[index], math.fsum(self._there_s)
        return ResourceUsage(
            resource=name,
            mean_share=_rounded(math.fsum(self._share_s[index]) / there_s if there_s else 0.0),
            p50_share=_class_at(classes, 50),
            p95_share=_class_at(classes, 95),
            p99_share=_class_at(classes, 99),
            max_share=_rounded(float(self._max_share[index].max(initial=0.0))),
            hot_node_minutes=round(math.fsum(self._hot_s[index]) / 60, 3),
        )

    def _node(self, slot: int, name: str) -> NodeUsageRow:
        return NodeUsageRow(
            name=name,
            mean_share=_shares((self._share_s[:, slot] / self._there_s[slot]).tolist()),
            max_share=_shares(self._max_share[:, slot].tolist()),
            hot_minutes={
                resource: round(float(seconds) / 60, 3)
                for resource, seconds in zip(RESOURCES, self._hot_s[:, slot], strict=True)
            },
            lost_cpu_s=round(float(self._node_lost_s[slot]), 3),
        )


def _class_at(classes: FloatArray, percent: int) -> float:
    """The lower end of the class that has a percentile; the upper one is a tenth of a percent
    more."""
    total = math.fsum(classes)
    if total == 0:
        return 0.0
    below = np.cumsum(classes)
    return int(np.searchsorted(below, total * percent / 100 * (1 - 1e-12))) / CLASSES


def _percentile(ordered: FloatArray, percent: int) -> float:
    """The smallest value that this many percent do not exceed, as in `reports.figures`."""
    count = len(ordered)
    return float(ordered[max(-(-percent * count // 100), 1) - 1]) if count else 0.0


def _named(amounts: IntArray) -> dict[str, int]:
    return dict(zip(RESOURCES, amounts.tolist(), strict=True))


def _shares(shares: Sequence[float]) -> dict[str, float]:
    return {name: _rounded(share) for name, share in zip(RESOURCES, shares, strict=True)}


def _rounded(share: float) -> float:
    return round(share, 6)
