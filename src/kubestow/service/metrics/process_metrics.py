"""All metrics of one scheduler process."""

from collections.abc import Mapping

import numpy as np

from kubestow.clock import Clock
from kubestow.cluster.events import EventRecorder
from kubestow.explain.history import AttemptHistory
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.component import (
    ElectionMetrics,
    RequestMetrics,
    RuntimeMetrics,
    add_build_metrics,
    add_registry_metrics,
    add_workqueue_metrics,
)
from kubestow.service.metrics.recorders import QueueRecorder, SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry, parse_allowed_labels
from kubestow.service.options import SchedulerOptions


class ComponentMetrics:
    """What a process of any version has."""

    def __init__(self, options: SchedulerOptions, renamed: Mapping[str, str] | None = None) -> None:
        """`renamed`: metric → its name in an older version."""
        self.registry = MetricsRegistry(
            disabled=options.metrics.disabled,
            allowed_labels=parse_allowed_labels(options.metrics.allowed_labels),
            renamed=renamed,
            hidden=() if options.metrics.hidden_since else options.gates.edition.hidden_metrics,
        )
        self.requests = RequestMetrics(self.registry)
        self.election = ElectionMetrics(self.registry, options.config.leader_election.resource_name)
        self.own = OwnMetrics(self.registry)
        self.runtime = RuntimeMetrics()
        add_build_metrics(
            self.registry,
            options.gates,
            version=options.reported_version,
            emulated_version=options.emulated_version,
            min_compatibility_version=_previous_minor(options.emulated_version),
        )
        add_workqueue_metrics(self.registry)
        add_registry_metrics(self.registry)


class ProcessMetrics(ComponentMetrics):
    """The metrics of a process whose scheduler has plugins."""

    def __init__(
        self,
        options: SchedulerOptions,
        clock: Clock,
        rng: np.random.Generator,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(options, renamed)
        catalogue = SchedulerCatalogue(self.registry, options.gates)
        self.scheduler = SchedulerRecorder(catalogue, clock, rng)
        self.queue = QueueRecorder(catalogue, rng)


def _previous_minor(version: str) -> str:
    major, minor, *_ = version.split(".")
    return f"{major}.{int(minor) - 1}"


class OwnMetrics:
    """Metrics that kube-scheduler does not have."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self.events = registry.counter(
            "kubestow_events_total",
            "Number of events about pods by what became of them: 'sent', 'failed' if the API "
            "server refused it or did not answer, 'dropped' if too many were waiting.",
            ("result",),
        )
        self.waiting_events = registry.gauge(
            "kubestow_waiting_events", "Number of events about pods that wait to be sent."
        )
        self.refused_connections = registry.counter(
            "kubestow_serving_connections_refused_total",
            "Number of connections to the serving port that were closed because of their limit.",
        )
        self.unkept_attempts = registry.counter(
            "kubestow_attempts_not_kept_total",
            "Number of attempts for pods that wait which /explain does not have: 'skipped' if "
            "copying them would have taken too long, 'dropped' if others took their place.",
            ("reason",),
        )
        self.slow_calls = registry.counter(
            "kubestow_slow_plugin_calls_total",
            "Number of plugin calls in scheduling cycles that took more than 0.1 s.",
            ("plugin", "extension_point"),
        )
        self.load_active = registry.gauge(
            "kubestow_load_aware_active",
            "With the plugin LoadAware: 1 while pods are placed by measured use, 0 while no node "
            "has a usable measurement.",
        )
        self.load_nodes = registry.gauge(
            "kubestow_load_nodes",
            "Number of nodes by what is known of their use: 'usable', 'stale' if the measurement "
            "is too old or cannot be true, 'unmeasured' if there is none.",
            ("state",),
        )
        self.load_reads = registry.counter(
            "kubestow_load_reads_total",
            "Number of reads of the source of measurements, by result: 'success' or 'error'.",
            ("result",),
        )
        self.load_refused = registry.counter(
            "kubestow_load_measurements_refused_total",
            "Number of measurements that were not taken, by reason.",
            ("reason",),
        )

    def count_slow_call(self, plugin: str, point: str) -> None:
        self.slow_calls.labels(plugin, point).inc()

    def observe_history(self, history: AttemptHistory) -> None:
        """Publish what this history counts."""

        def refresh() -> None:
            statistics = history.statistics()
            self.unkept_attempts.labels("skipped").value = statistics.skipped
            self.unkept_attempts.labels("dropped").value = statistics.dropped

        self.unkept_attempts.refresh = refresh

    def observe(self, recorder: EventRecorder) -> None:
        """Publish what this recorder counts."""

        def refresh() -> None:
            statistics = recorder.statistics()
            self.events.labels("sent").value = statistics.sent_count
            self.events.labels("failed").value = statistics.failed_count
            self.events.labels("dropped").value = statistics.dropped_count
            self.waiting_events.only.set(statistics.waiting_count)

        self.events.refresh = self.waiting_events.refresh = refresh
