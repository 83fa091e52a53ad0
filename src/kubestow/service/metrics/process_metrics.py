"""All metrics of one scheduler process."""

from collections.abc import Mapping

import numpy as np

from kubestow.clock import Clock
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.component import (
    ElectionMetrics,
    RequestMetrics,
    RuntimeMetrics,
    add_build_metrics,
    add_registry_metrics,
    add_workqueue_metrics,
)
from kubestow.service.metrics.own import OwnMetrics
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
