"""Numbers derived from a run, each defined once: here.

waiting time     of a pod that got a node: from its creation to the first time it got one. A pod
                 that never got one has none; it is counted as unplaced.
percentile p     the smallest value that at least p percent of all values do not exceed.
over time        a sample holds until the next one, the last one until the end of the run. A mean
                 over time weighs each sample with the time for which it holds.
used share       requested / allocatable. Over time: resource-seconds requested / resource-seconds
                 allocatable, so that a larger cluster weighs more than a smaller one.
stranded share   stranded / allocatable, over time in the same way. What is stranded is measured in
                 the samples (`results.Sample`).
imbalance        the standard deviation, over the nodes that have the resource, of its used share.
node-seconds     the number of nodes, times the time for which it holds.
in use           what pods really take, where a scenario says that (`usage.totals`).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kubestow.simulator.results import GATED, PENDING, NodeRow, PodRow, RunResult, Sample
from kubestow.simulator.usage.results import UsageFigures

# What the scheduler places first comes first; all other resources follow by name.
RESOURCES_FIRST: Final = ("cpu", "memory", "ephemeral-storage")
_WAITING: Final = (PENDING, GATED)


class WaitingTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How long pods waited that got a node, in seconds."""

    count: int
    mean_s: float
    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float


class ResourceFigures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One resource. What is None was not measured: the run has no samples, or no such resource."""

    resource: str
    # At the end, over the nodes that are still there.
    allocatable: int
    requested: int
    used_share: float | None
    imbalance: float | None
    # Over time.
    mean_used_share: float | None = None
    peak_used_share: float | None = None
    mean_stranded_share: float | None = None
    mean_imbalance: float | None = None


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a report says of a run in numbers."""

    pods: int
    # By outcome, in the order of their names.
    outcomes: dict[str, int]
    placed: int
    unplaced: int
    # Seconds that the pods which wait at the end have waited at most.
    longest_unplaced_s: float | None
    waiting: WaitingTimes | None
    attempts: int
    failed_attempts: int
    # At the end; `nodes_used` are those with a pod.
    nodes: int
    nodes_used: int
    node_seconds: float | None
    # The most pods that waited at once: to be tried, backing off, parked or gated.
    waiting_peak: int | None
    resources: list[ResourceFigures]
    # Pods that the API server refused to create; they are not among `pods`.
    refused: int = 0
    # Of scenarios that say what pods use.
    usage: UsageFigures | UnsetType = UNSET
    # Of scenarios that follow goals of rebalancing: the mean over time of the figure of each.
    goals: dict[str, float] | UnsetType = UNSET


def figures_of(result: RunResult) -> Figures:
    """All figures of a run."""
    placed = [pod for pod in result.pods if pod.scheduled_s is not None]
    waiting = [pod for pod in result.pods if pod.outcome in _WAITING and pod.scheduled_s is None]
    present = present_nodes(result.nodes)
    holds_s = held_s(result)
    return Figures(
        pods=len(result.pods),
        outcomes=dict(sorted(Counter(pod.outcome for pod in result.pods).items())),
        placed=len(placed),
        unplaced=len(result.pods) - len(placed),
        longest_unplaced_s=max(
            (round(result.virtual_duration_s - pod.created_s, 3) for pod in waiting), default=None
        ),
        waiting=waiting_times(placed),
        attempts=sum(pod.attempts for pod in result.pods),
        failed_attempts=result.failed_attempts,
        nodes=len(present),
        nodes_used=sum(node.pods > 0 for node in present),
        node_seconds=_integral(result.samples, holds_s, lambda sample: sample.nodes),
        waiting_peak=max(map(waiting_count, result.samples), default=None),
        resources=[
            _resource_figures(resource, present, result.samples, holds_s)
            for resource in resources_of(result)
        ],
        refused=result.refused_pods,
        usage=UNSET if isinstance(result.usage, UnsetType) else result.usage.figures(),
        goals=_goal_means(result.samples, holds_s),
    )


def waited_s(pod: PodRow) -> float | None:
    """The waiting time of a pod; None if it never got a node."""
    return None if pod.scheduled_s is None else round(pod.scheduled_s - pod.created_s, 3)


def waiting_times(pods: Iterable[PodRow]) -> WaitingTimes | None:
    """The waiting times of those that got a node; None if there are none."""
    waits = sorted(wait for pod in pods if (wait := waited_s(pod)) is not None)
    if not waits:
        return None
    return WaitingTimes(
        count=len(waits),
        mean_s=round(math.fsum(waits) / len(waits), 3),
        p50_s=percentile(waits, 50),
        p90_s=percentile(waits, 90),
        p99_s=percentile(waits, 99),
        max_s=waits[-1],
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest of the ordered values that `percent` percent of them do not exceed."""
    # In integers: 0.9 * 10 is more than 9, and its ceiling would be the tenth value.
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


def waiting_count(sample: Sample) -> int:
    """Pods that wait for a node."""
    return sample.active + sample.backoff + sample.unschedulable + sample.gated


def held_s(result: RunResult) -> list[float]:
    """How long each sample lasts: until the next one, or the end of the run."""
    ends = [sample.time_s for sample in result.samples[1:]] + [result.virtual_duration_s]
    return [max(end - one.time_s, 0.0) for one, end in zip(result.samples, ends, strict=False)]


def present_nodes(nodes: Iterable[NodeRow]) -> list[NodeRow]:
    """The nodes that are there at the end."""
    return [node for node in nodes if node.left_s is None]


def resources_of(result: RunResult) -> list[str]:
    """The names of all resources of nodes, samples and pods."""
    amounts = (
        *(node.allocatable for node in result.nodes),
        *(sample.allocatable for sample in result.samples),
        *(pod.requests for pod in result.pods),
    )
    return in_order({resource for each in amounts for resource in each})


def in_order(resources: Iterable[str]) -> list[str]:
    """The order in which reports name resources."""
    rank = {resource: index for index, resource in enumerate(RESOURCES_FIRST)}
    return sorted(resources, key=lambda resource: (rank.get(resource, len(rank)), resource))


def used_share(requested: int, allocatable: int) -> float | None:
    """The used share; None where there is nothing to use."""
    return requested / allocatable if allocatable > 0 else None


def imbalance_of(nodes: Iterable[NodeRow], resource: str) -> float | None:
    """The imbalance of a resource over some nodes; None if none of them has it."""
    shares = [
        node.requested.get(resource, 0) / allocatable
        for node in nodes
        if (allocatable := node.allocatable.get(resource, 0)) > 0
    ]
    if not shares:
        return None
    mean = math.fsum(shares) / len(shares)
    return math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares))


def _resource_figures(
    resource: str, nodes: Sequence[NodeRow], samples: Sequence[Sample], holds_s: Sequence[float]
) -> ResourceFigures:
    allocatable = sum(node.allocatable.get(resource, 0) for node in nodes)
    requested = sum(node.requested.get(resource, 0) for node in nodes)

    def total(amounts: Callable[[Sample], dict[str, int]]) -> float | None:
        return _integral(samples, holds_s, lambda sample: amounts(sample).get(resource, 0))

    available = total(lambda sample: sample.allocatable)
    shares = [
        share
        for sample in samples
        if (
            share := used_share(
                sample.requested.get(resource, 0), sample.allocatable.get(resource, 0)
            )
        )
        is not None
    ]
    return ResourceFigures(
        resource=resource,
        allocatable=allocatable,
        requested=requested,
        used_share=_share(requested, allocatable),
        imbalance=_rounded(imbalance_of(nodes, resource)),
        mean_used_share=_share(total(lambda sample: sample.requested), available),
        peak_used_share=_rounded(max(shares, default=None)),
        mean_stranded_share=_share(total(lambda sample: sample.stranded), available),
        mean_imbalance=_share(
            _integral(samples, holds_s, lambda sample: sample.imbalance.get(resource, 0.0)),
            # Of a resource that no node ever had there is none.
            math.fsum(holds_s) if available else None,
        ),
    )


def _integral(
    samples: Sequence[Sample], holds_s: Sequence[float], value: Callable[[Sample], float]
) -> float | None:
    """The sum over time of a value of the samples; None without samples."""
    if not samples:
        return None
    return math.fsum(
        value(sample) * seconds for sample, seconds in zip(samples, holds_s, strict=True)
    )


def _goal_means(
    samples: Sequence[Sample], holds_s: Sequence[float]
) -> dict[str, float] | UnsetType:
    """The mean over time of the figure of each goal, while it had one."""
    sums: dict[str, tuple[float, float]] = {}
    for sample, seconds in zip(samples, holds_s, strict=True):
        for goal, figure in ({} if isinstance(sample.goals, UnsetType) else sample.goals).items():
            total, time_s = sums.get(goal, (0.0, 0.0))
            sums[goal] = total + figure * seconds, time_s + seconds
    means = {goal: round(total / time_s, 6) for goal, (total, time_s) in sums.items() if time_s}
    return means or UNSET


def _share(part: float | None, whole: float | None) -> float | None:
    return _rounded(part / whole) if part is not None and whole else None


def _rounded(share: float | None) -> float | None:
    """To a millionth: what is left of sums in another order is far below."""
    return None if share is None else round(share, 6)
