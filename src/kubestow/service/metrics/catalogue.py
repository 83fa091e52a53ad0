"""The scheduler's own metrics: names, labels, buckets and help (spec 09 §8.1).

What exists here is on `/metrics` from the start, if only as its name. Nothing is counted here; see
`recorders`.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from kubestow.config.feature_gates import FeatureGates
from kubestow.service.metrics import buckets
from kubestow.service.metrics.instruments import Counter, Family, Gauge, Histogram
from kubestow.service.metrics.registry import MetricsRegistry, Stability

if TYPE_CHECKING:
    from kubestow.service.metrics.group_catalogue import (
        GroupPreemptionCatalogue,
        PlacementCatalogue,
    )

_PREFIX: Final = "scheduler_"


class RescoringFamilies(NamedTuple):
    """How often, and for how long, the node of the pod before was scored again."""

    attempts: Family[Counter]
    duration: Family[Histogram]


class SchedulerCatalogue:
    """Every metric as a family. The order is that of the specification."""

    def __init__(self, registry: MetricsRegistry, gates: FeatureGates) -> None:
        edition = gates.edition
        since_v1_37: Stability = "BETA" if edition.entity_metrics else "ALPHA"
        deprecated = "(Deprecated since 1.37.0) " if edition.entity_metrics else ""
        # Whether evictions that run beside the loop are timed as a whole, with their result.
        self.times_evictions = edition.entity_metrics
        self.schedule_attempts = registry.counter(
            f"{_PREFIX}schedule_attempts_total",
            "Number of attempts to schedule pods, by result: 'unschedulable' could not be placed, "
            "'error' is a problem of the scheduler.",
            ("result", "profile"),
            stability="STABLE",
        )
        self.attempt_duration = registry.histogram(
            f"{_PREFIX}scheduling_attempt_duration_seconds",
            "Duration of an attempt in seconds, from the algorithm to the binding.",
            ("result", "profile"),
            buckets=buckets.B,
            stability="STABLE",
        )
        self.algorithm_duration = registry.histogram(
            f"{_PREFIX}scheduling_algorithm_duration_seconds",
            "Duration of choosing a node in seconds.",
            buckets=buckets.B,
            stability=since_v1_37,
        )
        self.sli_duration = registry.histogram(
            f"{_PREFIX}pod_scheduling_sli_duration_seconds",
            "Duration in seconds from the moment a pod was first ready to be tried until it was "
            "bound, over all attempts.",
            ("attempts",),
            buckets=buckets.D,
            stability="BETA",
        )
        self.pod_attempts = registry.histogram(
            f"{_PREFIX}pod_scheduling_attempts",
            "Number of attempts it took to schedule a pod.",
            buckets=buckets.E,
            stability="STABLE",
        )
        self.scheduled_after_flush = registry.counter(
            f"{_PREFIX}pod_scheduled_after_flush_total",
            "Number of pods scheduled after they had been tried again for waiting too long.",
        )
        self.point_duration = registry.histogram(
            f"{_PREFIX}framework_extension_point_duration_seconds",
            "Duration of running all plugins of an extension point in seconds.",
            ("extension_point", "status", "profile"),
            buckets=buckets.A,
            stability="STABLE",
        )
        self.plugin_duration = registry.histogram(
            f"{_PREFIX}plugin_execution_duration_seconds",
            "Duration of calling a plugin at an extension point in seconds, of one attempt in ten.",
            ("plugin", "extension_point", "status"),
            buckets=buckets.F,
            stability=since_v1_37,
        )
        self.plugin_evaluations = registry.counter(
            f"{_PREFIX}plugin_evaluation_total",
            "Number of times a plugin was asked, at Filter and Score once for every node.",
            ("plugin", "extension_point", "profile"),
            stability="BETA",
        )
        self.event_duration = registry.histogram(
            f"{_PREFIX}event_handling_duration_seconds",
            "Duration of handling an event of the cluster in seconds.",
            ("event",),
            buckets=buckets.A,
        )
        self.incoming_pods = registry.counter(
            f"{_PREFIX}queue_incoming_pods_total",
            "Number of pods that entered a queue, by the event that moved them.",
            ("queue", "event"),
            stability="STABLE",
        )
        self.pending_pods = registry.gauge(
            f"{_PREFIX}pending_pods",
            "Number of waiting pods: 'active' are next, 'backoff' wait a while after a failure, "
            "'unschedulable' wait for an event, 'gated' may not be tried yet.",
            ("queue",),
            stability="STABLE",
        )
        self.unschedulable_pods = registry.gauge(
            f"{_PREFIX}unschedulable_pods",
            "Number of waiting pods by the plugin that rejected them; a pod rejected by several "
            "counts for each.",
            ("plugin", "profile"),
            stability="BETA",
        )
        self.inflight_events = registry.gauge(
            f"{_PREFIX}inflight_events",
            "Number of events logged for pods that are being tried.",
            ("event",),
        )
        self.hint_duration = registry.histogram(
            f"{_PREFIX}queueing_hint_execution_duration_seconds",
            "Duration of queueing hints in seconds.",
            ("plugin", "event", "hint"),
            buckets=buckets.F,
        )
        self.preemption_attempts = registry.counter(
            f"{_PREFIX}preemption_attempts_total",
            "Number of attempts to preempt pods.",
            stability="STABLE",
        )
        self.preemption_victims = registry.histogram(
            f"{_PREFIX}preemption_victims",
            "Number of pods chosen for eviction.",
            buckets=buckets.C,
            stability="STABLE",
        )
        self.preemption_task_duration = registry.histogram(
            f"{_PREFIX}preemption_goroutines_duration_seconds",
            f"{deprecated}Duration of evictions that run beside the scheduling loop in seconds.",
            ("result",),
            buckets=buckets.D,
        )
        self.preemption_tasks = registry.counter(
            f"{_PREFIX}preemption_goroutines_execution_total",
            "Number of evictions that ran beside the scheduling loop.",
            ("result",),
        )
        self.permit_wait_duration = registry.histogram(
            f"{_PREFIX}permit_wait_duration_seconds",
            "Duration of waiting at Permit in seconds.",
            ("result",),
            buckets=buckets.B,
            stability="BETA",
        )
        self.goroutines = registry.gauge(
            f"{_PREFIX}goroutines",
            "Number of tasks running beside the scheduling loop, by what they do.",
            ("operation",),
            stability="BETA",
        )
        self.cache_size = registry.gauge(
            f"{_PREFIX}cache_size",
            "Number of nodes, pods and assumed pods in the scheduler's cache.",
            ("type",),
        )
        self._batching(registry)
        # Without the gate nothing is counted of it.
        self.counts_hints = gates.has("OpportunisticBatching")
        self.rescoring: RescoringFamilies | None = None
        # Values of the labels that creations of claims have beside the status.
        self.claim_labels = tuple(gates.edition.claim_labels.values())
        self._devices_and_volumes(registry, tuple(gates.edition.claim_labels))
        self.queued_entities: Family[Gauge] | None = None
        self.incoming_entities: Family[Counter] | None = None
        self.narrowed_events: Family[Counter] | None = None
        if gates.edition.entity_metrics:
            self._entities(registry)
        if gates.enabled("SchedulerAsyncAPICalls"):
            self._async_api_calls(registry)
        self.for_groups: GroupPreemptionCatalogue | None = None
        self.placements: PlacementCatalogue | None = None
        if gates.enabled("GenericWorkload"):
            self._pod_groups(registry)
            if edition.entity_metrics:
                from kubestow.service.metrics import group_catalogue

                self.for_groups = group_catalogue.GroupPreemptionCatalogue(registry)
                if gates.enabled("TopologyAwareWorkloadScheduling"):
                    self.placements = group_catalogue.PlacementCatalogue(registry)

    def _batching(self, registry: MetricsRegistry) -> None:
        self.batch_attempts = registry.counter(
            f"{_PREFIX}batch_attempts_total",
            "Number of attempts by how the hint from the pod before was used.",
            ("profile", "result"),
        )
        self.batch_flushes = registry.counter(
            f"{_PREFIX}batch_cache_flushed_total",
            "Number of times the results of a pod could not be used for the next one.",
            ("profile", "reason"),
        )
        registry.histogram(
            f"{_PREFIX}get_node_hint_duration_seconds",
            "Duration of looking for a hint in seconds.",
            ("hinted", "profile"),
            buckets=buckets.H,
        )
        registry.histogram(
            f"{_PREFIX}store_schedule_results_duration_seconds",
            "Duration of keeping results for the next pod in seconds.",
            ("profile",),
            buckets=buckets.H,
        )

    def _entities(self, registry: MetricsRegistry) -> None:
        """What v1.37 adds (spec 12 §19)."""
        self.queued_entities = registry.gauge(
            f"{_PREFIX}queued_entities",
            "Number of waiting entities, by queue and type: a pod, or a group with all its pods.",
            ("queue", "type"),
        )
        self.incoming_entities = registry.counter(
            f"{_PREFIX}queue_incoming_entities_total",
            "Number of entities that entered a queue, by the event that moved them and by type.",
            ("queue", "event", "type"),
        )
        self.rescoring = RescoringFamilies(
            registry.counter(
                f"{_PREFIX}batch_rescore_attempts_total",
                "Number of times the node of the pod before was scored again for the next one.",
                ("profile",),
            ),
            registry.histogram(
                f"{_PREFIX}batch_rescore_duration_seconds",
                "Duration of scoring the node of the pod before again in seconds.",
                ("profile",),
                buckets=buckets.H,
            ),
        )
        self.narrowed_events = registry.counter(
            f"{_PREFIX}pre_queueing_hint_evaluations_total",
            "Number of events for which a plugin said which pods they may concern.",
            ("plugin", "result"),
        )

    def _devices_and_volumes(
        self, registry: MetricsRegistry, claim_labels: tuple[str, ...]
    ) -> None:
        self.claim_creates = registry.counter(
            f"{_PREFIX}resourceclaim_creates_total",
            "Number of resource claims created for extended resources.",
            ("status", *claim_labels),
        )
        self.device_allocations = registry.counter(
            f"{_PREFIX}dra_bindingconditions_allocations_total",
            "Number of allocations of devices with binding conditions.",
            ("profile", "driver", "status"),
        )
        self.device_wait_duration = registry.histogram(
            f"{_PREFIX}dra_bindingconditions_wait_duration_seconds",
            "Duration of waiting for binding conditions of devices in seconds.",
            ("profile", "driver", "status"),
            buckets=buckets.G,
        )
        registry.counter(
            f"{_PREFIX}volume_binder_cache_requests_total",
            "Number of requests to the volume binder's cache.",
            ("operation",),
        )
        self.volume_errors = registry.counter(
            f"{_PREFIX}volume_scheduling_stage_error_total",
            "Number of failures to find, reserve or bind volumes.",
            ("operation",),
        )

    def _async_api_calls(self, registry: MetricsRegistry) -> None:
        registry.counter(
            f"{_PREFIX}async_api_call_execution_total",
            "Number of requests sent beside the scheduling loop.",
            ("call_type", "result"),
        )
        registry.histogram(
            f"{_PREFIX}async_api_call_execution_duration_seconds",
            "Duration of requests sent beside the scheduling loop in seconds.",
            ("call_type", "result"),
            buckets=buckets.B,
        )
        registry.gauge(
            f"{_PREFIX}pending_async_api_calls",
            "Number of requests waiting to be sent.",
            ("call_type",),
        )

    def _pod_groups(self, registry: MetricsRegistry) -> None:
        labels = ("result", "profile")
        self.group_attempts = registry.counter(
            f"{_PREFIX}podgroup_schedule_attempts_total",
            "Number of attempts to schedule groups of pods, by result.",
            labels,
        )
        self.group_attempt_duration = registry.histogram(
            f"{_PREFIX}podgroup_scheduling_attempt_duration_seconds",
            "Duration of an attempt to schedule a group of pods in seconds.",
            labels,
            buckets=buckets.B,
        )
        self.group_algorithm_duration = registry.histogram(
            f"{_PREFIX}podgroup_scheduling_algorithm_duration_seconds",
            "Duration of choosing nodes for a group of pods in seconds.",
            buckets=buckets.B,
        )
