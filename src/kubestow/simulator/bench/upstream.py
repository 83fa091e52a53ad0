"""The speed of kube-scheduler v1.36.4 on the same workloads, on a two-core machine (spec 10 §6.2).

Figures of different machines compare only after scaling by how long a fixed piece of array work
takes. The speed of a shared machine varies, so samples of that work are taken during the
measurement.
"""

from statistics import median
from typing import Final, NamedTuple

import numpy as np

from kubestow.clock import SystemClock

CALIBRATION_S: Final = 0.0121
_ROUNDS: Final = 2000
# The rounds of one sample, and the rounds before it that warm up the caches.
_ROUNDS_AT_ONCE: Final = 80
_ROUNDS_TO_WARM_UP: Final = 40


class Baseline(NamedTuple):
    """Pods a second with adaptive sampling of nodes, and with all nodes."""

    adaptive: float
    all_nodes: float


UPSTREAM: Final[dict[str, Baseline]] = {
    "SchedulingBasic": Baseline(487, 77),
    "SchedulingBasic/1000Nodes": Baseline(718, 440),
    "SchedulingBasic/15000Nodes": Baseline(355, 22),
    "SchedulingBasic/50000Nodes": Baseline(102, 10),
    "SchedulingPodAntiAffinity": Baseline(152, 62),
    "SchedulingPodMatchingAntiAffinity": Baseline(338, 84),
    "SchedulingPodAffinity": Baseline(79, 38),
    "SchedulingPreferredPodAffinity": Baseline(102, 52),
    "SchedulingPreferredPodAntiAffinity": Baseline(95, 44),
    "SchedulingNodeAffinity": Baseline(411, 64),
    "MixedSchedulingBasePod": Baseline(233, 78),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": Baseline(82, 50),
    "SchedulingPreferredAntiAffinityWithNSSelector": Baseline(116, 43),
    "SchedulingRequiredPodAffinityWithNSSelector": Baseline(86, 53),
    "SchedulingPreferredAffinityWithNSSelector": Baseline(97, 53),
    "TopologySpreading": Baseline(235, 60),
    "PreferredTopologySpreading": Baseline(272, 55),
    "DefaultTopologySpreading": Baseline(248, 70),
    "SchedulingWithNodeInclusionPolicy": Baseline(191, 63),
    "SchedulingDaemonset": Baseline(3931, 3393),
    "Unschedulable": Baseline(414, 89),
    "Unschedulable/20kInit": Baseline(488, 78),
    "SchedulingSecrets": Baseline(635, 88),
    "SchedulingInTreePVs": Baseline(200, 33),
    "SchedulingMigratedInTreePVs": Baseline(102, 12),
    "SchedulingCSIPVs": Baseline(121, 26),
    "SchedulingWithExtendedResource": Baseline(72, 76),
    "PreemptionBasic": Baseline(174, 224),
    "PreemptionBasic/5000Nodes": Baseline(53, 54),
    "PreemptionPVs": Baseline(180, 142),
    "PreemptionAsync": Baseline(361, 65),
    "SchedulingWithResourceClaimTemplate": Baseline(80, 35),
    "ManyShapes": Baseline(135, 52),
}


class Calibration:
    """The typical speed of the machine, from samples."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._left, self._right = np.random.default_rng(0).integers(0, 1000, (2, 3, 5000))
        self._samples_s: list[float] = []

    def sample(self) -> None:
        """Time a part of the calibration work; takes about a millisecond."""
        self._work(_ROUNDS_TO_WARM_UP)
        started_s = self._clock.monotonic_s()
        self._work(_ROUNDS_AT_ONCE)
        self._samples_s.append(self._clock.monotonic_s() - started_s)

    def _work(self, rounds: int) -> None:
        for _ in range(rounds):
            (self._left >= self._right).all(0)

    @property
    def seconds(self) -> float:
        """How long all of the work would take; needs at least one sample.

        The median: a sample is so short that one stall would distort a mean.
        """
        return median(self._samples_s) * _ROUNDS / _ROUNDS_AT_ONCE


def scaled(pods_per_s: float, calibration_s: float) -> float:
    """An upstream figure, scaled to this machine."""
    return pods_per_s * CALIBRATION_S / calibration_s
