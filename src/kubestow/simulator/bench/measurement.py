"""What a measurement says, the median of several, and its comparison with kube-scheduler.

Field names are those of the JSON lines of `kubestow bench`.
"""

from collections.abc import Sequence
from statistics import median, median_low
from typing import Any, Final, TypeVar

import msgspec

from kubestow.simulator.bench.machine import disturbances
from kubestow.simulator.bench.upstream import UPSTREAM, Figure, scaled_us
from kubestow.simulator.bench.workloads import WORKLOADS, Variant, title_of

JSON_NAMES: Final = {
    "init_pods": "initPods",
    "measure_pods": "measurePods",
    "percentage_of_nodes_to_score": "percentageOfNodesToScore",
}


class PodTimes(msgspec.Struct, frozen=True, kw_only=True, rename=JSON_NAMES):
    """What all measurements have. Times are on the clock where nothing else is said."""

    workload: str
    variant: Variant = Variant.PLAIN
    nodes: int
    init_pods: int
    measure_pods: int
    percentage_of_nodes_to_score: int
    scheduled: int = 0
    pods_per_s: float
    us_per_pod: float
    # CPU time of the same section: unlike the time on the clock, others hardly change it.
    cpu_us_per_pod: float
    peak_memory_mib: float
    # How many runs these are the medians of, and the extremes of `us_per_pod` among them.
    runs: int = 1
    us_per_pod_min: float
    us_per_pod_max: float
    # The cores of the machine, and how many of them other processes used; None if not known.
    cores: int
    foreign_cores: float | None = None
    # How long the calibration work takes, sampled during or around the timed section, and how much
    # the samples varied: the upper quartile by the lower one.
    calibration_ms: float
    calibration_spread: float

    @property
    def title(self) -> str:
        return title_of(self.workload, self.variant)

    @property
    def wall_over_cpu(self) -> float:
        return self.us_per_pod / self.cpu_us_per_pod

    def disturbances(self) -> list[str]:
        """Why the figures say little about the code; empty if the machine was calm."""
        return disturbances(
            cores=self.cores,
            foreign_cores=self.foreign_cores,
            wall_over_cpu=self.wall_over_cpu,
            calibration_spread=self.calibration_spread,
        )


class Measurement(PodTimes, frozen=True, kw_only=True, rename=JSON_NAMES):
    """Deciding alone (`measure`)."""

    # Of the first measured pod, for which everything that later ones reuse is computed.
    first_us: float
    p50_us: float
    p99_us: float
    # Seconds from the loaded objects to a snapshot of them, before the first decision.
    load_s: float = 0.0
    # How many decisions were compared with those of a scheduler that has just started, and how many
    # differed.
    checked: int = 0
    differing: int = 0


class Comparison(Measurement, frozen=True, kw_only=True, rename=JSON_NAMES):
    """A measurement beside kube-scheduler's figure for the same workload.

    There is a figure for the workload's own size, at 0 and 100 percent. It is scaled to this
    machine, and None if that was disturbed: neither side of such a ratio would mean anything.
    """

    upstream_us_per_pod: float | None
    upstream_is_estimated: bool
    ratio: float | None


T = TypeVar("T", bound=PodTimes)


def median_of(runs: Sequence[T]) -> T:
    """Each figure is the median of the runs; counts of compared decisions are sums."""
    rows = [msgspec.structs.asdict(run) for run in runs]
    merged = {name: _merged(name, [row[name] for row in rows]) for name in rows[0]}
    return type(runs[0])(**merged)


def _merged(name: str, values: list[Any]) -> Any:
    match name:
        case "runs" | "checked" | "differing":
            return sum(values)
        case "us_per_pod_min":
            return min(values)
        case "us_per_pod_max":
            return max(values)
        case _ if isinstance(values[0], float):
            return median(values)
        case _ if isinstance(values[0], int):
            return median_low(values)
        case _:
            return values[0]


def compare(measurement: Measurement) -> Comparison:
    """The measurement beside upstream's figure, if there is one and the machine was calm."""
    figure = None if measurement.disturbances() else _figure_for(measurement)
    upstream_us = None if figure is None else scaled_us(figure, measurement.calibration_ms / 1000)
    return Comparison(
        **msgspec.structs.asdict(measurement),
        upstream_us_per_pod=None if upstream_us is None else round(upstream_us, 1),
        upstream_is_estimated=figure is not None and figure.is_estimated,
        ratio=None if upstream_us is None else round(upstream_us / measurement.us_per_pod, 1),
    )


def _figure_for(measurement: Measurement) -> Figure | None:
    own_size = next(one.nodes for one in WORKLOADS if one.name == measurement.workload)
    if measurement.nodes != own_size:
        return None
    baseline = UPSTREAM[measurement.workload]
    return {0: baseline.adaptive, 100: baseline.all_nodes}.get(
        measurement.percentage_of_nodes_to_score
    )
