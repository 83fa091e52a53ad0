"""What v1.37 adds to the metrics, and names in another way (spec 12 §19)."""

import numpy as np
import pytest
from tests.editions.v1_37.engine.cluster import Cluster, play_run

from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.framework.status import Status
from kubestow.queue.metrics import ACTIVE
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.metrics.recorders import QueueRecorder, SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.testing import ManualClock

NEW = (
    "scheduler_queued_entities",
    "scheduler_queue_incoming_entities_total",
    "scheduler_batch_rescore_attempts_total",
    "scheduler_batch_rescore_duration_seconds",
    "scheduler_pre_queueing_hint_evaluations_total",
)


GROUPS = ("GenericWorkload", "TopologyAwareWorkloadScheduling")


def catalogue(version: str, *gates: str) -> tuple[MetricsRegistry, SchedulerCatalogue]:
    edition = edition_named(version)
    registry = MetricsRegistry(renamed=edition.metric_names)
    return registry, SchedulerCatalogue(registry, FeatureGates(dict.fromkeys(gates, True), edition))


def recorder(version: str, *gates: str) -> tuple[MetricsRegistry, SchedulerRecorder]:
    registry, families = catalogue(version, *gates)
    return registry, SchedulerRecorder(families, ManualClock(), np.random.default_rng(0))


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_families_of_the_edition_are_there_from_the_start(version: str) -> None:
    text = "".join(catalogue(version)[0].texts())
    assert all((f"# TYPE {name} " in text) == (version == "v1.37") for name in NEW)
    is_renamed = "# TYPE dynamic_resource_allocation_resourceclaim_creates_total " in text
    assert is_renamed == (version == "v1.37")


def test_a_pod_is_an_entity() -> None:
    registry, families = catalogue("v1.37")
    recorder = QueueRecorder(families, np.random.default_rng(0))
    recorder.pending_changed(ACTIVE, 2)
    recorder.incoming(ACTIVE, "UnscheduledPodAdd")
    text = "".join(registry.texts())
    assert 'scheduler_queued_entities{queue="active",type="pod"} 2' in text
    event = 'event="UnscheduledPodAdd",queue="active",type="pod"'
    other = 'queue="active",event="UnscheduledPodAdd",type="pod"'
    name = "scheduler_queue_incoming_entities_total"
    assert f"{name}{{{event}}} 1" in text or f"{name}{{{other}}} 1" in text


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_where_members_of_groups_wait_is_shown_also_without_groups(version: str) -> None:
    registry, families = catalogue(version)
    QueueRecorder(families, np.random.default_rng(0))
    for queue in ("incomplete", "pending"):
        shown = f'scheduler_pending_pods{{queue="{queue}"}} 0' in text_of(registry)
        assert shown is (version == "v1.37")


@pytest.mark.parametrize(
    ("version", "flags", "hidden"),
    [
        pytest.param("v1.36", (), 0, id="v1.36"),
        pytest.param("v1.37", (), 1, id="v1.37"),
        pytest.param("v1.37", ("--show-hidden-metrics-for-version=1.36",), 0, id="wanted"),
    ],
)
def test_a_deprecated_metric_is_hidden(version: str, flags: tuple[str, ...], hidden: int) -> None:
    options = parse_options(flags, edition=edition_named(version))
    assert isinstance(options, SchedulerOptions)
    text = text_of(ProcessMetrics(options, ManualClock(), np.random.default_rng(0)).registry)
    name = "scheduler_preemption_goroutines_duration_seconds"
    assert (f"# TYPE {name} " in text) == (not hidden)
    assert f"\nhidden_metrics_total {hidden}\n" in text


def text_of(registry: MetricsRegistry) -> str:
    return "".join(registry.texts())


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_stability_and_deprecation(version: str) -> None:
    text = text_of(catalogue(version)[0])
    is_later = version == "v1.37"
    level = "[BETA]" if is_later else "[ALPHA]"
    for name in ("scheduling_algorithm_duration_seconds", "plugin_execution_duration_seconds"):
        assert f"# HELP scheduler_{name} {level}" in text
    assert ("(Deprecated since 1.37.0)" in text) is is_later


@pytest.mark.parametrize(
    ("version", "label"), [("v1.36", "success"), ("v1.37", "error")], ids=["v1.36", "v1.37"]
)
def test_failed_evictions_are_counted_as_such_since_v1_37(version: str, label: str) -> None:
    registry, metrics = recorder(version)
    metrics.preemption_task_ended("pod", 0.5, is_success=False)
    name = "scheduler_preemption_goroutines_execution_total"
    assert f'{name}{{result="{label}"}} 1' in text_of(registry)


def test_preemption_for_groups_is_counted_apart() -> None:
    registry, metrics = recorder("v1.37", *GROUPS)
    metrics.preemption_actuated("pod", 1)
    metrics.preemption_actuated("podgroup", 5)
    metrics.preemption_evaluated("pod", Status.unschedulable(), 0.1)
    metrics.preemption_evaluated("compositepodgroup", Status.unschedulable(), 0.1)
    metrics.preemption_disrupts("podgroup", 2, 3)
    metrics.preemption_task_ended("podgroup", 0.5, is_success=True)
    metrics.placements_generated("default-scheduler", 4)
    metrics.placement_evaluated("default-scheduler", 0.0, is_feasible=False)
    text = text_of(registry)
    for line in (
        "scheduler_preemption_victims_sum 1",
        "scheduler_workload_preemption_victims_sum 5",
        'scheduler_workload_preemption_attempts_total{result="Unschedulable"} 1',
        'preemption_evaluation_duration_seconds_count{preemptor="pod",result="Unschedulable"} 1',
        'evaluation_duration_seconds_count{preemptor="podgroup",result="Unschedulable"} 1',
        'scheduler_preemption_workload_disruptions_sum{preemptor="podgroup"} 2',
        'scheduler_preemption_pdb_violations_total{preemptor="podgroup"} 3',
        'execution_duration_seconds_count{preemptor="podgroup",result="success"} 1',
        'scheduler_generated_placements_total{profile="default-scheduler"} 4',
        'placement_evaluations_total{profile="default-scheduler",result="infeasible"} 1',
    ):
        assert line in text, line


def test_groups_count_with_their_pods() -> None:
    registry, metrics = recorder("v1.37", *GROUPS)

    async def work(cluster: Cluster) -> None:
        metrics.observe(cluster.world.scheduler)
        cluster.gang("g", 2)
        for name in ("a", "b"):
            cluster.pod(name, "1", group="g")
        cluster.pod("c", "1", group="unknown")
        cluster.pod("d", "1")
        text = text_of(registry)
        assert 'scheduler_pending_pods{queue="active"} 3' in text
        assert 'scheduler_pending_pods{queue="incomplete"} 1' in text
        assert 'scheduler_queued_entities{queue="active",type="podgroup"} 1' in text
        assert 'scheduler_queued_entities{queue="active",type="pod"} 1' in text

    play_run(work, *GROUPS)
