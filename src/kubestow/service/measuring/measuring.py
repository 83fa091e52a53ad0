"""Connects the plugin LoadAware of a running scheduler with its source of measurements."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.credentials import FixedCredentials, TokenFile
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.http.tls import TlsSettings
from kubestow.config.arguments import convert_args
from kubestow.config.field_errors import raise_if_any
from kubestow.config.load_aware_args import (
    FILE,
    PROMETHEUS,
    LoadAwareArgs,
    LoadSource,
    load_aware_errors,
    source_of,
)
from kubestow.config.profile import ProfileConfig, enabled_names
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.scheduler import Scheduler
from kubestow.errors import ConfigError, UnreachableError
from kubestow.plugins.load_aware import LoadAware
from kubestow.service.measuring.metrics_api import MetricsApi, Requests
from kubestow.service.measuring.prometheus import PrometheusApi
from kubestow.service.measuring.reader import MeasurementReader, Source
from kubestow.service.measuring.usage_file import UsageFile
from kubestow.service.metrics.process_metrics import OwnMetrics
from kubestow.usage.store import HISTORY_MAX, UsageStore


class Synced(Protocol):
    async def wait_synced(self) -> None: ...


class Measuring:
    """The store of one process, and what fills it. Raises ConfigError if profiles differ."""

    def __init__(self, config: SchedulerConfig) -> None:
        found = [args for profile in config.profiles for args in _args_of(profile)]
        self._args = found[0]
        self._source = source_of(found[0])
        for args in found[1:]:
            if source_of(args) != self._source or args.history_seconds != found[0].history_seconds:
                raise ConfigError(
                    f"the plugin {LoadAware.name} must have the same source and historySeconds in "
                    "all profiles: there is one store of measurements"
                )
        kept = self._args.history_seconds // self._source.interval_seconds
        self.usage = UsageStore(history=min(max(kept, 1), HISTORY_MAX))
        self.reader: MeasurementReader | None = None

    def connect(self, scheduler: Scheduler, client: ClusterClient, clock: Clock) -> None:
        """Make the reader; nothing is read yet. Raises ConfigError for unusable certificates."""
        plugin = next(
            plugin
            for profile in scheduler.profiles.values()
            for plugin in profile.plugins.values()
            if isinstance(plugin, LoadAware)
        )

        def counts() -> tuple[int, int, int]:
            plugin.load.refresh(scheduler.snapshot)
            return plugin.load.counts()

        self.reader = MeasurementReader(
            make_source(self._source, scheduler, client, clock),
            self.usage,
            scheduler.objects,
            clock,
            interval_s=self._source.interval_seconds,
            timeout_s=self._source.timeout_seconds,
            counts=counts,
        )

    async def run(self, watcher: Synced) -> None:
        """Read until cancelled, once the nodes and pods are known."""
        assert self.reader is not None
        await watcher.wait_synced()
        await self.reader.run()

    def conditions(self) -> Sequence[str]:
        assert self.reader is not None
        status, reason, message, since = self.reader.condition
        return (f"LoadAware={status} {reason} since {since}: {message}",)

    def observe(self, metrics: OwnMetrics) -> None:
        """Publish what is read and used."""
        reader, usage = self.reader, self.usage
        assert reader is not None

        def refresh() -> None:
            found = reader.statistics()
            for state in ("usable", "stale", "unmeasured"):
                metrics.load_nodes.labels(state).set(getattr(found, state))
            metrics.load_reads.labels("success").value = found.succeeded
            metrics.load_reads.labels("error").value = found.failed
            metrics.load_active.only.set(int(found.usable > 0))
            for reason, count in usage.statistics().refused.items():
                metrics.load_refused.labels(reason).value = count

        metrics.load_nodes.refresh = metrics.load_reads.refresh = refresh
        metrics.load_refused.refresh = metrics.load_active.refresh = refresh


def make_source(
    source: LoadSource, scheduler: Scheduler, client: ClusterClient, clock: Clock
) -> Source:
    if source.type == FILE:
        return UsageFile(Path(source.path))
    if source.type == PROMETHEUS:
        return PrometheusApi(_prometheus(source, clock), source)

    def namespaces() -> Iterable[str]:
        if not source.pods:
            return ()
        return [namespace.metadata.name for namespace in scheduler.objects.namespaces]

    requests: Requests = client.session if isinstance(client, HttpClient) else _NoRequests()
    return MetricsApi(requests, namespaces)


def _prometheus(source: LoadSource, clock: Clock) -> ApiSession:
    token = TokenFile(source.token_file, clock) if source.token_file else FixedCredentials()
    server = ServerConfig(
        server=source.address.rstrip("/"),
        tls=TlsSettings(ca_file=source.ca_file, skips_verification=source.insecure_skip_verify),
        credentials=token,
    )
    return ApiSession(server, clock, timeout_s=source.timeout_seconds, qps=-1, connections_max=2)


def _args_of(profile: ProfileConfig) -> Iterable[LoadAwareArgs]:
    if LoadAware.name not in enabled_names(profile.plugins):
        return
    for entry in profile.plugin_config:
        if entry.name == LoadAware.name:
            args = entry.args
            if not isinstance(args, LoadAwareArgs):
                args = convert_args(LoadAware.name, args, LoadAwareArgs)
            assert isinstance(args, LoadAwareArgs), args
            raise_if_any(load_aware_errors(args))
            yield args
            return
    yield LoadAwareArgs()


class _NoRequests:
    """The API of a cluster in memory, which serves no measurements."""

    async def request(self, method: str, path: str) -> bytes:
        raise UnreachableError(f"{method} {path}: the client has no connection")
