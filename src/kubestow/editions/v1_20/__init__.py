"""v1.20: a scheduler of plugins, without hints; assumed pods expire.

The cycle is the core's. v1.17 builds on it.
"""

from typing import Final

from kubestow.editions.edition import Edition, Gate, Stage, Version

DEFAULT_POD_TOPOLOGY_SPREAD: Final = "DefaultPodTopologySpread"

# Metrics that came later.
_LATER: Final = (
    "pod_scheduled_after_flush_total",
    "plugin_evaluation_total",
    "event_handling_duration_seconds",
    "unschedulable_pods",
    "inflight_events",
    "queueing_hint_execution_duration_seconds",
    "preemption_goroutines_duration_seconds",
    "preemption_goroutines_execution_total",
    "batch_attempts_total",
    "batch_cache_flushed_total",
    "get_node_hint_duration_seconds",
    "store_schedule_results_duration_seconds",
    "resourceclaim_creates_total",
    "dra_bindingconditions_allocations_total",
    "dra_bindingconditions_wait_duration_seconds",
    "async_api_call_execution_total",
    "async_api_call_execution_duration_seconds",
    "pending_async_api_calls",
)
_RENAMED: Final = {
    "scheduling_attempt_duration_seconds": "e2e_scheduling_duration_seconds",
    "pod_scheduling_sli_duration_seconds": "pod_scheduling_duration_seconds",
    "goroutines": "scheduler_goroutines",
    "cache_size": "scheduler_cache_size",
}

EDITION: Final = Edition(
    version=Version.V1_20,
    # Gates of the time that change nothing about placing pods are refused: they would have no
    # effect.
    gates={DEFAULT_POD_TOPOLOGY_SPREAD: Gate(Stage.BETA, default=True)},
    filters=(
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "EBSLimits",
        "GCEPDLimits",
        "NodeVolumeLimits",
        "AzureDiskLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ),
    scores={
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesLeastAllocated": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000,
        "PodTopologySpread": 2,
        "TaintToleration": 1,
    },
    # Labels and buckets are today's. `scheduler_binding_duration_seconds` and the durations of
    # single predicates and priorities have no successor that could be renamed:
    # `scheduler_framework_extension_point_duration_seconds` has them.
    metric_names={
        **{f"scheduler_{name}": f"scheduler_{older}" for name, older in _RENAMED.items()},
        **{f"scheduler_{name}": "" for name in _LATER},
    },
)
