"""The metrics of groups that v1.37 adds (spec 12 §19)."""

from typing import Final

from kubestow.service.metrics import buckets
from kubestow.service.metrics.registry import MetricsRegistry

_COUNTS: Final = buckets.exponential(1, 2, 11)
# 1 ms to 32.8 s.
_SECONDS: Final = buckets.exponential(0.001, 2, 16)


class GroupPreemptionCatalogue:
    """Preemption, by what it is for: a pod, a group, or a tree of groups."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self.attempts = registry.counter(
            "scheduler_workload_preemption_attempts_total",
            "Number of attempts to preempt pods for a whole group, by result.",
            ("result",),
        )
        self.victims = registry.histogram(
            "scheduler_workload_preemption_victims",
            "Number of pods chosen for eviction for a whole group.",
            buckets=_COUNTS,
        )
        self.disruptions = registry.histogram(
            "scheduler_preemption_workload_disruptions",
            "Number of groups, and pods of groups, that are evicted together.",
            ("preemptor",),
            buckets=_COUNTS,
        )
        self.evaluation_duration = registry.histogram(
            "scheduler_preemption_evaluation_duration_seconds",
            "Duration of looking for pods to evict in seconds.",
            ("preemptor", "result"),
            buckets=_SECONDS,
        )
        self.execution_duration = registry.histogram(
            "scheduler_preemption_execution_duration_seconds",
            "Duration of evicting pods in seconds.",
            ("preemptor", "result"),
            buckets=_SECONDS,
        )
        self.budget_violations = registry.counter(
            "scheduler_preemption_pdb_violations_total",
            "Number of evicted pods whose disruption budget does not allow it.",
            ("preemptor",),
        )


class PlacementCatalogue:
    """Placements of groups, with the gate TopologyAwareWorkloadScheduling."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self.generated = registry.counter(
            "scheduler_generated_placements_total",
            "Number of placements that were made for groups.",
            ("profile",),
        )
        self.evaluations = registry.counter(
            "scheduler_placement_evaluations_total",
            "Number of placements on which groups were tried, by whether they fit.",
            ("result", "profile"),
        )
        self.evaluation_duration = registry.histogram(
            "scheduler_placement_evaluation_duration_seconds",
            "Duration of trying a group on a placement in seconds.",
            buckets=_SECONDS,
        )
