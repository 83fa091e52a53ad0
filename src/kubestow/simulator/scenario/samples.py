"""The state of the whole cluster at one time: sums over the columns of the snapshot."""

from typing import Protocol

import numpy as np

from kubestow.arrays import IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.queue import QueueStatistics
from kubestow.simulator.results import Sample
from kubestow.simulator.scenario.collector import Collector


class SampledCluster(Protocol):
    """A cluster with a scheduler of any version."""

    def refreshed(self) -> Snapshot: ...

    def queue_statistics(self) -> QueueStatistics: ...


def sample_of(cluster: SampledCluster, collector: Collector, time_s: float) -> Sample:
    """A row for now; `time_s` is what it says."""
    snapshot = cluster.refreshed()
    allocatable, requested = _amounts(snapshot)
    columns, queue = snapshot.columns, cluster.queue_statistics()
    free = {name: np.maximum(held - requested[name], 0) for name, held in allocatable.items()}
    free_pods = columns.allowed_pods - columns.pod_count
    return Sample(
        time_s=time_s,
        nodes=len(snapshot),
        running=int(columns.pod_count.sum()),
        # A pod in flight has left the queue and has no node yet.
        active=queue.active + queue.in_flight,
        backoff=queue.backoff + queue.error_backoff,
        unschedulable=queue.unschedulable,
        gated=queue.gated,
        arrived=collector.arrived,
        placed=collector.placed,
        ended=collector.ended,
        preempted=collector.preempted,
        evicted=collector.evicted,
        allocatable={name: int(held.sum()) for name, held in allocatable.items()},
        requested={name: int(requested[name].sum()) for name in allocatable},
        stranded=collector.shapes.stranded(free, free_pods),
        imbalance={name: _imbalance(held, requested[name]) for name, held in allocatable.items()},
    )


def _amounts(snapshot: Snapshot) -> tuple[dict[str, IntArray], dict[str, IntArray]]:
    """What nodes have and what is requested: resource → int64[node], if any node has some."""
    columns = snapshot.columns
    allocatable: dict[str, IntArray] = {}
    requested: dict[str, IntArray] = {}
    for column, name in enumerate(columns.resources.names):
        held = columns.allocatable[column]
        if held.any():
            allocatable[name], requested[name] = held, columns.requested[column]
    return allocatable, requested


def _imbalance(allocatable: IntArray, requested: IntArray) -> float:
    """The standard deviation of the used share, over the nodes that have the resource."""
    has_some = allocatable > 0
    shares = requested[has_some] / allocatable[has_some]
    return round(float(shares.std()), 6)
