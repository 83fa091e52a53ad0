"""Metrics of every Kubernetes component: requests, leader, build, gates (spec 09 §8.2)."""

import platform
import sys
from typing import Final

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.registry import CollectorRegistry

from kubestow import __version__
from kubestow.config.feature_gates import FeatureGates
from kubestow.service.metrics import buckets
from kubestow.service.metrics.instruments import Counter, Histogram, KeptSeries
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.user_agent import go_platform

# Upstream's code of a request without an answer.
NO_ANSWER: Final = "<error>"


class RequestMetrics:
    """What the API client reports (`cluster.http.session.RequestObserver`), for all its hosts."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self.requests = registry.counter(
            "rest_client_requests_total",
            "Number of requests to the API server, by status code, method and host.",
            ("code", "method", "host"),
        )
        labels = ("verb", "host")
        self.duration = registry.histogram(
            "rest_client_request_duration_seconds",
            "Duration of requests to the API server in seconds.",
            labels,
            buckets=buckets.REQUEST_SECONDS,
        )
        self.sent = registry.histogram(
            "rest_client_request_size_bytes",
            "Size of the bodies of requests in bytes.",
            labels,
            buckets=buckets.REQUEST_BYTES,
        )
        self.received = registry.histogram(
            "rest_client_response_size_bytes",
            "Size of the bodies of answers in bytes.",
            labels,
            buckets=buckets.REQUEST_BYTES,
        )
        self.rate_limiter = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Duration of waiting for the client's own rate limit in seconds.",
            labels,
            buckets=buckets.REQUEST_SECONDS,
        )
        self.retries = registry.counter(
            "rest_client_request_retries_total",
            "Number of requests that were sent again, by the answer before.",
            ("code", "verb", "host"),
        )
        self.undecodable = registry.counter(
            "kubestow_undecodable_objects_total",
            "Number of times an object was skipped because it could not be decoded, by kind.",
            ("kind",),
        )

    def of_host(self, host: str) -> "HostObserver":
        return HostObserver(self, host)


class HostObserver:
    def __init__(self, metrics: RequestMetrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._counts: KeptSeries[tuple[str, int], Counter] = KeptSeries(
            lambda key: metrics.requests.labels(str(key[1]), key[0], host)
        )
        self._histograms: KeptSeries[str, tuple[Histogram, Histogram, Histogram]] = KeptSeries(
            lambda method: (
                metrics.duration.labels(method, host),
                metrics.sent.labels(method, host),
                metrics.received.labels(method, host),
            )
        )
        self._waits: KeptSeries[str, Histogram] = KeptSeries(
            lambda method: metrics.rate_limiter.labels(method, host)
        )

    def answered(
        self, method: str, code: int, duration_s: float, *, sent_bytes: int, received_bytes: int
    ) -> None:
        self._counts[method, code].value += 1
        duration, sent, received = self._histograms[method]
        duration.observe(duration_s)
        sent.observe(sent_bytes)
        received.observe(received_bytes)

    def unanswered(self, method: str) -> None:
        self._metrics.requests.labels(NO_ANSWER, method, self._host).inc()

    def held_back(self, method: str, duration_s: float) -> None:
        self._waits[method].observe(duration_s)

    def repeated(self, method: str, code: int | None) -> None:
        label = NO_ANSWER if code is None else str(code)
        self._metrics.retries.labels(label, method, self._host).inc()

    def undecodable(self, kind: str) -> None:
        self._metrics.undecodable.labels(kind).inc()


class ElectionMetrics:
    def __init__(self, registry: MetricsRegistry, name: str) -> None:
        """`name` is that of the lease; series exist only with an election."""
        self.master_status = registry.gauge(
            "leader_election_master_status",
            "1 while this process leads, else 0.",
            ("name",),
        )
        self.slow_path = registry.counter(
            "leader_election_slowpath_total",
            "Number of renewals of a lease that had to read it first.",
            ("name",),
        )
        self._name = name

    def changed(self, *, is_leading: bool) -> None:
        self.master_status.labels(self._name).set(1.0 if is_leading else 0.0)

    def slow_path_counted(self, count: int) -> None:
        self.slow_path.labels(self._name).value = count


def add_build_metrics(
    registry: MetricsRegistry,
    gates: FeatureGates,
    *,
    version: str,
    emulated_version: str,
    min_compatibility_version: str,
) -> None:
    """Metrics that do not change while the process runs."""
    major, minor, *_ = version.removeprefix("v").split(".")
    build = {
        "major": major,
        "minor": minor,
        "git_version": version,
        "git_commit": "",
        "git_tree_state": "",
        "build_date": "",
        "go_version": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": go_platform(),
    }
    registry.gauge(
        "kubernetes_build_info",
        "Always 1; the labels say what was built, with what and for what.",
        tuple(build),
    ).labels(*build.values()).set(1)
    own = {
        "version": __version__,
        "kubernetes_version": version,
        "python_version": platform.python_version(),
    }
    registry.gauge(
        "kubestow_build_info",
        "Always 1; the labels say which kubestow this is, and what it follows and runs on.",
        tuple(own),
    ).labels(*own.values()).set(1)
    enabled = registry.gauge(
        "kubernetes_feature_enabled",
        "1 for a feature gate that is on, 0 for one that is off.",
        ("name", "stage"),
        stability="BETA",
    )
    for name, gate in gates.edition.gates.items():
        enabled.labels(name, gate.stage.value).set(1 if gates.enabled(name) else 0)
    registry.gauge(
        "version_info",
        "Always 1; the labels say which versions the component is and behaves as.",
        ("component", "binary", "emulation", "min_compat"),
    ).labels("kube", version.removeprefix("v"), emulated_version, min_compatibility_version).set(1)


def add_registry_metrics(registry: MetricsRegistry) -> None:
    """How many metrics there are; to be called last, so that all are counted."""
    hidden = registry.counter(
        "hidden_metrics_total", "Number of metrics that are hidden.", stability="BETA"
    )
    disabled = registry.counter(
        "disabled_metrics_total", "Number of metrics that are turned off.", stability="BETA"
    )
    registered = registry.counter(
        "registered_metrics_total",
        "Number of metrics, by stability level.",
        ("stability_level", "deprecated_version"),
        stability="BETA",
    )

    def refresh() -> None:
        hidden.only.value = registry.hidden_count
        disabled.only.value = registry.disabled_count
        for stability, count in registry.registered.items():
            registered.labels(stability, "").value = count

    disabled.refresh = registered.refresh = refresh


def add_workqueue_metrics(registry: MetricsRegistry) -> None:
    """Dashboards query these. This process has no work queues, so there are no series."""
    labels = ("name",)
    registry.counter("workqueue_adds_total", "Number of additions to work queues.", labels)
    registry.gauge("workqueue_depth", "Length of work queues.", labels)
    registry.gauge(
        "workqueue_longest_running_processor_seconds",
        "Age of the oldest work under way in seconds.",
        labels,
    )
    registry.gauge(
        "workqueue_unfinished_work_seconds", "Age of all work under way in seconds.", labels
    )
    registry.counter("workqueue_retries_total", "Number of retries of work.", labels)
    for name, help in (
        ("workqueue_queue_duration_seconds", "Duration of waiting in a work queue in seconds."),
        ("workqueue_work_duration_seconds", "Duration of work in seconds."),
    ):
        registry.histogram(name, help, labels, buckets=buckets.WORK_SECONDS)


class RuntimeMetrics:
    """`process_*` and `python_*`, by prometheus-client."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self) -> str:
        return generate_latest(self._registry).decode()
