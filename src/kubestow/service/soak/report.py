"""What a soak has measured, and what it says about memory.

A bounded cache that still fills takes memory, too. So memory is judged in the second half of a run,
and only if that begins after enough pods for the large caches to be full.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
import numpy as np

from kubestow.service.soak.gauges import KeptSize
from kubestow.service.soak.spread import Percentiles

# Memory that grows by more than this for each 1,000 pods created does not settle: a label that is
# never forgotten takes a few hundred bytes.
GROWTH_MIB_MAX: Final = 0.25
# After this many pods, nearly all that has a limit is full: the last are the quantities by their
# text and the selectors. Before that, growth says nothing.
FILLING_PODS: Final = 50_000
# A container grows if the means of the last parts of a run increase, together by this share and at
# least by this many entries.
_PARTS: Final = 4
_GROWN_SHARE: Final = 0.2
_GROWN_ENTRIES: Final = 64
_BARS: Final = "▁▂▃▄▅▆▇█"
_SPARKLINE_WIDTH: Final = 40


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One moment, with what happened since the sample before it."""

    second: float
    created: int
    bound: int
    rss_mib: float
    # Waiting to be tried, now or after their backoff; waiting for an event.
    queued: int
    parked: int
    latency: Percentiles  # from the creation of a pod to its binding
    stalls: Percentiles  # of the scheduler's event loop
    control_stalls: Percentiles  # of the control loop, which holds the lease
    lease_lateness: Percentiles


class KeptSample(msgspec.Struct, frozen=True, kw_only=True):
    second: float
    containers: Mapping[str, KeptSize]


class SoakReport(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    over_http: bool
    nodes: int
    pods_per_s: float
    created: int
    bound: int
    evicted: int
    # Of the second half.
    growth_mib_per_1000_pods: float
    # Grew in the second half: containers with a limit that were not full, and containers without.
    filling: Sequence[str]
    growing: Sequence[str]
    latency: Percentiles
    stalls: Percentiles
    control_stalls: Percentiles
    lease_lateness: Percentiles
    queue_depth_max: int
    samples: Sequence[Sample]
    kept: Sequence[KeptSample]

    @property
    def is_growing(self) -> bool:
        """Whether something is kept without a limit."""
        too_much = self.growth_mib_per_1000_pods > GROWTH_MIB_MAX
        return self.is_judged and (too_much or bool(self.growing))

    @property
    def is_judged(self) -> bool:
        """Whether growth in the second half says anything."""
        return self.samples[len(self.samples) // 2].created >= FILLING_PODS


def growth(samples: Sequence[Sample]) -> float:
    """MiB for each 1,000 pods: the slope of a line through the second half."""
    half = samples[len(samples) // 2 :]
    created = np.array([sample.created for sample in half], float)
    memory = np.array([sample.rss_mib for sample in half])
    if len(half) < 2 or created[0] == created[-1]:
        return 0.0
    slope: Any = np.polyfit(created, memory, 1)[0]
    return round(float(slope) * 1000, 3)


def without_constants(kept: Sequence[KeptSample]) -> list[KeptSample]:
    """Only what has a limit, or had different sizes: a module's constants are containers, too."""
    seen: dict[str, set[int]] = defaultdict(set)
    limited: set[str] = set()
    for sample in kept:
        for name, container in sample.containers.items():
            seen[name].add(container.size)
            if container.limit is not None:
                limited.add(name)
    return [
        KeptSample(
            second=sample.second,
            containers={
                name: container
                for name, container in sample.containers.items()
                if name in limited or len(seen[name]) > 1
            },
        )
        for sample in kept
    ]


def grown(kept: Sequence[KeptSample]) -> Iterator[tuple[str, KeptSize]]:
    """The containers that grew steadily in the second half, with their last size."""
    half = kept[len(kept) // 2 :]
    if len(half) < _PARTS:
        return
    for name, last in half[-1].containers.items():
        entries = [
            sample.containers[name].size if name in sample.containers else 0 for sample in half
        ]
        means = [float(part.mean()) for part in np.array_split(np.array(entries), _PARTS)]
        grows = all(earlier < later for earlier, later in pairwise(means))
        least = max(_GROWN_ENTRIES, means[0] * _GROWN_SHARE)
        if grows and means[-1] - means[0] > least:
            yield name, last


def table_rows(report: SoakReport) -> Iterator[tuple[str, str]]:
    """The report without its samples and containers, as names and values."""
    first, last = report.samples[0], report.samples[-1]
    yield "pods created", f"{report.created} in {report.seconds:.0f} s on {report.nodes} nodes"
    yield "pods bound", f"{report.bound}, {report.evicted} evicted"
    yield "memory", f"{first.rss_mib:.0f} MiB at the start, {last.rss_mib:.0f} MiB at the end"
    yield (
        "growth in the second half",
        f"{report.growth_mib_per_1000_pods:.3f} MiB for each 1,000 pods "
        + (
            f"(at most {GROWTH_MIB_MAX})"
            if report.is_judged
            else f"(too short to say: caches fill for {FILLING_PODS} pods)"
        ),
    )
    for name, spread in (
        ("creation to binding", report.latency),
        ("stalls of the scheduler's loop", report.stalls),
        ("stalls of the control loop", report.control_stalls),
        ("lateness of the lease", report.lease_lateness),
    ):
        yield (
            name,
            f"p50 {spread.p50_ms:.1f} ms, p99 {spread.p99_ms:.1f} ms, max {spread.max_ms:.1f} ms",
        )
    yield "queue depth", f"at most {report.queue_depth_max}"


def curves(report: SoakReport) -> Iterator[tuple[str, str, str]]:
    """Each measurement over time in one line of text, with its least and largest value."""
    samples = report.samples
    for name, values in (
        ("memory MiB", [sample.rss_mib for sample in samples]),
        ("queue depth", [float(sample.queued) for sample in samples]),
        ("latency p50 ms", [sample.latency.p50_ms for sample in samples]),
        ("latency p99 ms", [sample.latency.p99_ms for sample in samples]),
        ("longest stall ms", [sample.stalls.max_ms for sample in samples]),
        ("lease late ms", [sample.lease_lateness.max_ms for sample in samples]),
    ):
        yield name, sparkline(values), f"{min(values):.1f} to {max(values):.1f}"


def sparkline(values: Sequence[float]) -> str:
    """The largest value of each part of the run as a bar."""
    parts = np.array_split(np.array(values), min(_SPARKLINE_WIDTH, len(values)))
    peaks = np.array([part.max() for part in parts])
    span = float(peaks.max() - peaks.min())
    heights = (peaks - peaks.min()) / span if span else np.zeros(len(peaks))
    return "".join(_BARS[int(height * (len(_BARS) - 1))] for height in heights.tolist())
