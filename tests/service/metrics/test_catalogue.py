"""Every metric of the specification, with its type, labels, stability and buckets (09 §8)."""

from typing import NamedTuple

import pytest

from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.service.metrics import buckets
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.component import (
    ElectionMetrics,
    RequestMetrics,
    add_build_metrics,
    add_registry_metrics,
    add_workqueue_metrics,
)
from kubestow.service.metrics.instruments import Histogram
from kubestow.service.metrics.registry import MetricsRegistry


class Row(NamedTuple):
    name: str
    kind: str
    labels: str
    stability: str
    bounds: str = ""


C, G, H = "counter", "gauge", "histogram"
ROWS = [
    Row("schedule_attempts_total", C, "result profile", "STABLE"),
    Row("scheduling_attempt_duration_seconds", H, "result profile", "STABLE", "B"),
    Row("scheduling_algorithm_duration_seconds", H, "", "ALPHA", "B"),
    Row("pod_scheduling_sli_duration_seconds", H, "attempts", "BETA", "D"),
    Row("pod_scheduling_attempts", H, "", "STABLE", "E"),
    Row("pod_scheduled_after_flush_total", C, "", "ALPHA"),
    Row(
        "framework_extension_point_duration_seconds",
        H,
        "extension_point status profile",
        "STABLE",
        "A",
    ),
    Row("plugin_execution_duration_seconds", H, "plugin extension_point status", "ALPHA", "F"),
    Row("plugin_evaluation_total", C, "plugin extension_point profile", "BETA"),
    Row("event_handling_duration_seconds", H, "event", "ALPHA", "A"),
    Row("queue_incoming_pods_total", C, "queue event", "STABLE"),
    Row("pending_pods", G, "queue", "STABLE"),
    Row("unschedulable_pods", G, "plugin profile", "BETA"),
    Row("inflight_events", G, "event", "ALPHA"),
    Row("queueing_hint_execution_duration_seconds", H, "plugin event hint", "ALPHA", "F"),
    Row("preemption_attempts_total", C, "", "STABLE"),
    Row("preemption_victims", H, "", "STABLE", "C"),
    Row("preemption_goroutines_duration_seconds", H, "result", "ALPHA", "D"),
    Row("preemption_goroutines_execution_total", C, "result", "ALPHA"),
    Row("permit_wait_duration_seconds", H, "result", "BETA", "B"),
    Row("goroutines", G, "operation", "BETA"),
    Row("cache_size", G, "type", "ALPHA"),
    Row("batch_attempts_total", C, "profile result", "ALPHA"),
    Row("batch_cache_flushed_total", C, "profile reason", "ALPHA"),
    Row("get_node_hint_duration_seconds", H, "hinted profile", "ALPHA", "H"),
    Row("store_schedule_results_duration_seconds", H, "profile", "ALPHA", "H"),
    Row("resourceclaim_creates_total", C, "status", "ALPHA"),
    Row("dra_bindingconditions_allocations_total", C, "profile driver status", "ALPHA"),
    Row("dra_bindingconditions_wait_duration_seconds", H, "profile driver status", "ALPHA", "G"),
    Row("volume_binder_cache_requests_total", C, "operation", "ALPHA"),
    Row("volume_scheduling_stage_error_total", C, "operation", "ALPHA"),
]
GATED_ROWS = [
    Row("async_api_call_execution_total", C, "call_type result", "ALPHA"),
    Row("async_api_call_execution_duration_seconds", H, "call_type result", "ALPHA", "B"),
    Row("pending_async_api_calls", G, "call_type", "ALPHA"),
    Row("podgroup_schedule_attempts_total", C, "result profile", "ALPHA"),
    Row("podgroup_scheduling_attempt_duration_seconds", H, "result profile", "ALPHA", "B"),
    Row("podgroup_scheduling_algorithm_duration_seconds", H, "", "ALPHA", "B"),
]
COMPONENT_ROWS = [
    Row("leader_election_master_status", G, "name", "ALPHA"),
    Row("leader_election_slowpath_total", C, "name", "ALPHA"),
    Row("rest_client_requests_total", C, "code method host", "ALPHA"),
    Row("rest_client_request_duration_seconds", H, "verb host", "ALPHA", "REQUEST_SECONDS"),
    Row("rest_client_request_size_bytes", H, "verb host", "ALPHA", "REQUEST_BYTES"),
    Row("rest_client_response_size_bytes", H, "verb host", "ALPHA", "REQUEST_BYTES"),
    Row("rest_client_rate_limiter_duration_seconds", H, "verb host", "ALPHA", "REQUEST_SECONDS"),
    Row("rest_client_request_retries_total", C, "code verb host", "ALPHA"),
    Row(
        "kubernetes_build_info",
        G,
        "major minor git_version git_commit git_tree_state build_date go_version compiler platform",
        "ALPHA",
    ),
    Row("kubestow_build_info", G, "version kubernetes_version python_version", "ALPHA"),
    Row("kubernetes_feature_enabled", G, "name stage", "BETA"),
    Row("version_info", G, "component binary emulation min_compat", "ALPHA"),
    Row("hidden_metrics_total", C, "", "BETA"),
    Row("disabled_metrics_total", C, "", "BETA"),
    Row("registered_metrics_total", C, "stability_level deprecated_version", "BETA"),
    Row("workqueue_depth", G, "name", "ALPHA"),
    Row("workqueue_adds_total", C, "name", "ALPHA"),
]


def full_registry(gates: FeatureGates = DEFAULT_GATES) -> MetricsRegistry:
    registry = MetricsRegistry()
    SchedulerCatalogue(registry, gates)
    RequestMetrics(registry)
    ElectionMetrics(registry, "kube-scheduler")
    add_build_metrics(
        registry,
        gates,
        version="v1.36.4",
        emulated_version="1.36",
        min_compatibility_version="1.35",
    )
    add_workqueue_metrics(registry)
    add_registry_metrics(registry)
    return registry


def check(registry: MetricsRegistry, name: str, row: Row) -> None:
    family = registry.family(name)
    assert family is not None, name
    assert family.kind == row.kind
    assert family.label_names == tuple(row.labels.split())
    assert family.help.startswith(f"[{row.stability}] ")
    if row.kind == H:
        child = family.labels(*family.label_names) if row.labels else family.only
        assert isinstance(child, Histogram)
        bounds = getattr(buckets, row.bounds)
        assert len(child.counts) == len(bounds) + 1
        bounds_shown = [line.partition('le="')[2].partition('"')[0] for line in _lines(child)]
        assert [float(bound) for bound in bounds_shown] == [*bounds, float("inf")]


def _lines(histogram: Histogram) -> list[str]:
    return [line for line in histogram.samples("h", "") if "_bucket" in line]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_scheduler_metrics_are_as_specified(row: Row) -> None:
    check(full_registry(), f"scheduler_{row.name}", row)


@pytest.mark.parametrize("row", GATED_ROWS, ids=[row.name for row in GATED_ROWS])
def test_metrics_of_gates_exist_only_with_their_gates(row: Row) -> None:
    name = f"scheduler_{row.name}"
    assert full_registry().family(name) is None
    gates = FeatureGates({"SchedulerAsyncAPICalls": True, "GenericWorkload": True})
    check(full_registry(gates), name, row)


@pytest.mark.parametrize("row", COMPONENT_ROWS, ids=[row.name for row in COMPONENT_ROWS])
def test_component_metrics_are_as_specified(row: Row) -> None:
    check(full_registry(), row.name, row)


def test_every_scheduler_metric_is_specified() -> None:
    named = {f"scheduler_{row.name}" for row in ROWS}
    assert {name for name in full_registry().names() if name.startswith("scheduler_")} == named


def test_constants_show_their_values() -> None:
    text = "".join(full_registry().texts())
    assert 'kubernetes_feature_enabled{name="GangScheduling",stage="ALPHA"} 0\n' in text
    assert 'kubernetes_feature_enabled{name="SchedulerQueueingHints",stage=""} 1\n' in text
    labels = 'binary="1.36.4",component="kube",emulation="1.36",min_compat="1.35"'
    assert f"version_info{{{labels}}} 1" in text
    assert 'git_version="v1.36.4",go_version="python3' in text
    assert 'registered_metrics_total{deprecated_version="",stability_level="STABLE"} 8\n' in text
