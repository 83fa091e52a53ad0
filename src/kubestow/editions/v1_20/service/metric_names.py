"""What today's metrics were called in v1.17 and v1.20; labels and buckets are today's.

`scheduler_binding_duration_seconds` and the durations of single predicates and priorities have no
successor that could be renamed: `scheduler_framework_extension_point_duration_seconds` has them.
"""

from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "scheduler_"
_RENAMED: Final[Mapping[str, str]] = {
    "scheduling_attempt_duration_seconds": "e2e_scheduling_duration_seconds",
    "pod_scheduling_sli_duration_seconds": "pod_scheduling_duration_seconds",
    "goroutines": "scheduler_goroutines",
    "cache_size": "scheduler_cache_size",
}
_RENAMED_117: Final[Mapping[str, str]] = {
    "preemption_victims": "pod_preemption_victims",
    "preemption_attempts_total": "total_preemption_attempts",
}
# Later than both versions.
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


def older_metric_names(version: str) -> Mapping[str, str]:
    """Today's name → that of the version; empty for metrics that it did not have."""
    renamed = {**_RENAMED, **(_RENAMED_117 if version == "v1.17" else {})}
    return {
        **{f"{_PREFIX}{name}": f"{_PREFIX}{older}" for name, older in renamed.items()},
        **{f"{_PREFIX}{name}": "" for name in _LATER},
    }
