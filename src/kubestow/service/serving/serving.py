"""The HTTPS side of a scheduler process (spec 09 §7).

Certificate and socket come first, so that their errors end the process before anything runs. The
port is served on its own loop, which answers also while a scheduling cycle runs.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.written import configz_document
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.running_pod import RunningPod
from kubestow.service.connections import Connections
from kubestow.service.loops import OtherLoop, SharedLoop
from kubestow.service.metrics.pod_resources import pod_resource_texts
from kubestow.service.metrics.process_metrics import ComponentMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.serving.application import Application, PagePaths, Pages
from kubestow.service.serving.authentication import Authenticator
from kubestow.service.serving.authorization import Authorizer
from kubestow.service.serving.certificates import ServingCertificates
from kubestow.service.serving.health import (
    NOT_SYNCED,
    SHUTTING_DOWN,
    HealthEndpoint,
    HealthSlis,
    NamedCheck,
    always_ok,
)
from kubestow.service.serving.pages import ProcessFacts
from kubestow.service.serving.server import HttpsServer, bind_socket
from kubestow.service.serving.trust import TrustLookup

log = logging.getLogger(__name__)

PATHS = ("/healthz", "/livez", "/readyz", "/metrics", "/configz", "/flagz", "/statusz")


class Served(Protocol):
    """The process that is served."""

    @property
    def is_stopping(self) -> bool: ...

    @property
    def has_synced(self) -> bool:
        """Whether every object of the first lists has reached cache and queue."""
        ...

    @property
    def is_active(self) -> bool:
        """Whether this process schedules: it leads, or there is no election."""
        ...

    @property
    def stall(self) -> str | None:
        """What the scheduler's loop is stuck in; None while it moves."""
        ...

    def pods(self) -> Iterable[Pod]: ...

    def conditions(self) -> Sequence[str]:
        """Lines about the state of what kube-scheduler does not have."""
        ...

    def running_pod(self, namespace: str, name: str) -> RunningPod | None:
        """What is known of a pod, for its explanation."""
        ...

    def kept_attempts(self, namespace: str) -> Sequence[FrozenDecision]:
        """The last attempts of the pods that wait, of one namespace or of all ("")."""
        ...

    def page_site(self, port: OtherLoop) -> PagePaths | None:
        """The page on this port, made on its loop; None without one."""
        ...


class Serving:
    def __init__(
        self,
        options: SchedulerOptions,
        config: SchedulerConfig,
        connections: Connections,
        metrics: ComponentMetrics,
        clock: Clock,
        rng: np.random.Generator,
        *,
        port_loop: OtherLoop | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        configz: Callable[[], JsonObject] | None = None,
    ) -> None:
        """Bind the socket; ConfigError if that fails or a certificate or file cannot be read."""
        self._options = options
        self._config = config
        self._connections = connections
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._loop = port_loop or SharedLoop()
        self._set_verbosity = set_verbosity
        self._configz = configz
        self._authenticator = Authenticator(
            clock,
            reviewer=connections.authentication,
            token_ttl_s=options.authentication.token_cache_ttl.seconds,
        )
        self.trust = TrustLookup(
            options.authentication, connections.authentication, self._authenticator
        )
        self._certificates = ServingCertificates(
            options.serving, clock, lambda: self._authenticator.trust.all_authorities
        )
        self._socket = bind_socket(options.serving)
        self._server: HttpsServer | None = None
        self._page: PagePaths | None = None

    @property
    def address(self) -> str:
        return self._server.address if self._server is not None else ""

    async def start(self, served: Served) -> None:
        await self.trust.refresh()
        self._warn_without_reviews()
        self._page = served.page_site(self._loop)
        application = Application(
            self._pages(served),
            self._authenticator,
            self._authorizer(),
            self._loop,
            self._clock,
            self._rng,
            page=self._page,
        )
        self._server = HttpsServer(
            application,
            self._socket,
            self._certificates.context,
            on_refused=self._metrics.own.refused_connections.only.inc,
        )
        self._server.start()

    async def close(self) -> None:
        if self._page is not None:
            await self._page.close()
        if self._server is not None:
            await self._server.close()
        self._socket.close()

    def _warn_without_reviews(self) -> None:
        """Every request but those for open paths is refused then, also one with a good token."""
        if self._connections.authentication is None:
            log.warning(
                "No authentication-kubeconfig provided, so TokenReview of bearer tokens won't work."
            )
        if self._connections.authorization is None:
            log.warning(
                "No authorization-kubeconfig provided, so SubjectAccessReview of authorization "
                "tokens won't work."
            )

    def _authorizer(self) -> Authorizer:
        options = self._options.authorization
        return Authorizer(
            self._clock,
            reviewer=self._connections.authorization,
            always_allow_paths=options.always_allow_paths,
            allow_ttl_s=options.allow_cache_ttl.seconds,
            deny_ttl_s=options.deny_cache_ttl.seconds,
        )

    def _pages(self, served: Served) -> Pages:
        options, config, gates = self._options, self._config, self._options.gates
        slis = HealthSlis()
        flags = dict(_pairs(options.flags.lines())) if gates.enabled("ComponentFlagz") else None
        facts = None
        if gates.enabled("ComponentStatusz"):
            facts = ProcessFacts(
                started_ns=self._clock.now_ns(),
                version=options.reported_version,
                emulated_version=options.emulated_version,
                paths=(*PATHS, "/debug") if config.enable_profiling else PATHS,
                conditions=served.conditions,
            )
        return Pages(
            health=health_endpoints(served, slis, has_election=config.leader_election.leader_elect),
            slis=slis,
            metrics=self._metrics.registry,
            runtime=self._metrics.runtime,
            pod_resources=lambda: pod_resource_texts(served.pods()) if served.is_active else (),
            configz=self._configz or (lambda: configz_document(config, gates)),
            running_pod=served.running_pod,
            kept_attempts=served.kept_attempts,
            flags=flags,
            facts=facts,
            set_verbosity=self._set_verbosity if config.enable_profiling else None,
        )


def health_endpoints(
    served: Served, slis: HealthSlis, *, has_election: bool
) -> tuple[HealthEndpoint, ...]:
    # Spec 09 §7: upstream has this check, but never connected it to the elector.
    election = [NamedCheck("leaderElection", always_ok)] if has_election else []
    ping = [NamedCheck("ping", always_ok)]
    # Beyond upstream: the port answers by itself, so it would answer also for a dead scheduler.
    live = [*ping, NamedCheck("scheduling-loop", lambda: served.stall)]
    ready = [
        *election,
        NamedCheck("shutdown", lambda: SHUTTING_DOWN if served.is_stopping else None),
        NamedCheck("sched-handler-sync", lambda: None if served.has_synced else NOT_SYNCED),
    ]
    return (
        HealthEndpoint("healthz", election or ping, slis),
        HealthEndpoint("livez", live, slis),
        HealthEndpoint("readyz", ready, slis),
    )


def _pairs(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Names and values of `name="value"`."""
    for line in lines:
        name, _, value = line.partition("=")
        yield name, value.removeprefix('"').removesuffix('"')
