"""The metrics of v1.9: three histograms in microseconds (spec 09 §13.1)."""

from kubestow.service.metrics.buckets import exponential
from kubestow.service.metrics.process_metrics import ComponentMetrics
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.options import SchedulerOptions

_BUCKETS = exponential(1000, 2, 15)
_MICROSECONDS = 1e6


class ProcessMetricsV19(ComponentMetrics):
    def __init__(self, options: SchedulerOptions) -> None:
        super().__init__(options)
        self.scheduler = RecorderV19(self.registry)


class RecorderV19:
    """Implements `editions.v1_9.engine.scheduler.MetricsV19`."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._pod = registry.histogram(
            "scheduler_e2e_scheduling_latency_microseconds",
            "E2e scheduling latency (scheduling algorithm + binding)",
            buckets=_BUCKETS,
        ).only
        self._algorithm = registry.histogram(
            "scheduler_scheduling_algorithm_latency_microseconds",
            "Scheduling algorithm latency",
            buckets=_BUCKETS,
        ).only
        self._binding = registry.histogram(
            "scheduler_binding_latency_microseconds", "Binding latency", buckets=_BUCKETS
        ).only

    def algorithm_ended(self, duration_s: float) -> None:
        self._algorithm.observe(duration_s * _MICROSECONDS)

    def binding_ended(self, duration_s: float) -> None:
        self._binding.observe(duration_s * _MICROSECONDS)

    def pod_ended(self, duration_s: float) -> None:
        self._pod.observe(duration_s * _MICROSECONDS)
