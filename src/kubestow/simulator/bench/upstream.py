"""The cost of a pod in kube-scheduler v1.36.4 on the same workloads (spec 10 §6).

Microseconds per pod on a two-core machine, of which kube-scheduler uses 1.4 to 1.9 cores. Most
workloads were measured on a calm machine, alternating with kubestow, medians of three. The others
were measured once on a busy machine of the same kind; there the workloads measured both times took
about 1.7 times as long, so those figures are divided by that and count as estimated.

A label or an amount of its own in each pod does not change kube-scheduler's cost, so variants of a
workload are compared with its plain figure.

Figures of different machines compare only after scaling by how long a fixed piece of array work
takes (`machine.Calibration`): `CALIBRATION_S` is how long it took there.
"""

from typing import Final, NamedTuple

CALIBRATION_S: Final = 0.0121
BUSY_FACTOR: Final = 1.7


class Figure(NamedTuple):
    us_per_pod: float
    is_estimated: bool = False


class Baseline(NamedTuple):
    """With adaptive sampling of nodes, and with all nodes; None where it was not measured."""

    adaptive: Figure | None = None
    all_nodes: Figure | None = None


def _calm(adaptive_us: float, all_nodes_us: float) -> Baseline:
    return Baseline(Figure(adaptive_us), Figure(all_nodes_us))


def _busy(adaptive_us: float, all_nodes_us: float) -> Baseline:
    return Baseline(
        Figure(adaptive_us / BUSY_FACTOR, is_estimated=True),
        Figure(all_nodes_us / BUSY_FACTOR, is_estimated=True),
    )


def _live(adaptive_us: float) -> Baseline:
    """From its metrics, beside an API server and kubestow in turn, on a calm machine."""
    return Baseline(Figure(adaptive_us))


UPSTREAM: Final[dict[str, Baseline]] = {
    "SchedulingBasic": _calm(1072, 6507),
    "SchedulingBasic/1000Nodes": _calm(864, 1754),
    "SchedulingBasic/15000Nodes": _busy(2817, 44455),
    "SchedulingBasic/50000Nodes": _busy(9796, 97215),
    "SchedulingPodAntiAffinity": _calm(3896, 10397),
    "SchedulingPodMatchingAntiAffinity": _busy(2961, 11947),
    "SchedulingPodAffinity": _busy(12674, 26057),
    "SchedulingPreferredPodAffinity": _calm(6146, 13125),
    "SchedulingPreferredPodAntiAffinity": _busy(10534, 23013),
    "SchedulingNodeAffinity": _busy(2433, 15566),
    "MixedSchedulingBasePod": _busy(4298, 12866),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": _busy(12124, 20143),
    "SchedulingPreferredAntiAffinityWithNSSelector": _busy(8603, 23046),
    "SchedulingRequiredPodAffinityWithNSSelector": _busy(11575, 18990),
    "SchedulingPreferredAffinityWithNSSelector": _busy(10296, 18771),
    "TopologySpreading": _calm(1903, 6969),
    "PreferredTopologySpreading": _busy(3670, 18321),
    "DefaultTopologySpreading": _busy(4036, 14355),
    "SchedulingWithNodeInclusionPolicy": _busy(5239, 15860),
    "SchedulingDaemonset": _calm(156, 155),
    "Unschedulable": _busy(2413, 11218),
    "Unschedulable/20kInit": _busy(2050, 12769),
    "SchedulingSecrets": _busy(1574, 11314),
    "SchedulingInTreePVs": _busy(4993, 30363),
    "SchedulingMigratedInTreePVs": _busy(9839, 81270),
    "SchedulingCSIPVs": _calm(3667, 25695),
    "SchedulingWithExtendedResource": _busy(13845, 13082),
    "PreemptionBasic": _calm(2878, 2814),
    "PreemptionBasic/5000Nodes": _calm(10670, 10431),
    "PreemptionPVs": _calm(3278, 3205),
    "PreemptionAsync": _busy(2767, 15418),
    "SchedulingWithResourceClaimTemplate": _busy(12440, 28309),
    "ManyShapes": _calm(3683, 11057),
    "ManyApps": _live(10276),
    "ManyApps/Single": Baseline(),
    "ManyApps/Plain": _live(3283),
    "ManyApps/PlainSingle": Baseline(),
}


def scaled_us(figure: Figure, calibration_s: float) -> float:
    """The cost of a pod, scaled to a machine on which the calibration takes so long."""
    return figure.us_per_pod * calibration_s / CALIBRATION_S
