"""What a scenario says about the use of its pods, checked and ready to be computed."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.simulator.usage.curves import Curve
from kubestow.simulator.usage.pressure import THRESHOLD_BYTES
from kubestow.simulator.usage.series import UsageSeries

EVERY_S: Final = 30.0
HOT_SHARE: Final = 0.8
# As of metrics-server: how often it measures, and how old a measurement is when it can be read.
METRICS_EVERY_S: Final = 60.0
METRICS_DELAY_S: Final = 30.0

# Whether pods of an owner, as results name it, have an entry's curves.
IsMeant = Callable[[MemoryCluster, StoredObject, str], bool]


class Level(NamedTuple):
    """An amount, and a share of what a pod requests; mostly one of them is 0."""

    amount: int = 0
    share: float = 0.0

    def of(self, requested: int) -> float:
        return self.amount + self.share * requested


AS_REQUESTED: Final = Level(share=1.0)


class ResourceCurve(NamedTuple):
    """Use of one resource, between two levels."""

    low: Level = AS_REQUESTED
    high: Level = AS_REQUESTED
    curve: Curve = Curve()


class WorkloadCurves(NamedTuple):
    """The use of some pods.

    spread   the standard deviation, between pods, of the logarithm of use
    noise    by which share the CPU use of a pod differs at most from minute to minute
    """

    is_meant: IsMeant
    cpu: ResourceCurve = ResourceCurve()
    memory: ResourceCurve = ResourceCurve()
    spread: float = 0.0
    noise: float = 0.0


def _every_pod(store: MemoryCluster, pod: StoredObject, owner: str) -> bool:
    return True


# Of pods that no entry selects.
USE_AS_REQUESTED: Final = WorkloadCurves(_every_pod)


class UsagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """`entries`: the first one that selects a pod holds for it. `series` come before entries."""

    entries: Sequence[WorkloadCurves] = ()
    series: UsageSeries | None = None
    # Use is computed this often, and holds until the next time.
    every_s: float = EVERY_S
    # A node is hot from this share of what is allocatable on.
    hot_share: float = HOT_SHARE
    # Free memory below which a kubelet evicts: bytes, or a share of the node's capacity.
    threshold: Level = Level(amount=THRESHOLD_BYTES)
    metrics_every_s: float = METRICS_EVERY_S
    metrics_delay_s: float = METRICS_DELAY_S

    def entry_of(self, store: MemoryCluster, pod: StoredObject, owner: str) -> WorkloadCurves:
        for entry in self.entries:
            if entry.is_meant(store, pod, owner):
                return entry
        return USE_AS_REQUESTED
