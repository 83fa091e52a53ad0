"""The clients of one process (spec 09 §4.1): each with its own rate limit and name.

main            lists, watches, binds, writes statuses
events          what `kubectl describe` shows; many events must not delay bindings
election        the lease; with a short timeout, since a late answer is useless
authentication, authorization   reviews for the HTTPS port of this process
"""

import sys
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np

from kubestow import __version__
from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig, find_server, in_cluster
from kubestow.cluster.http.session import ApiSession
from kubestow.errors import ConfigError
from kubestow.service.metrics.component import RequestMetrics, go_platform
from kubestow.service.options import SchedulerOptions
from kubestow.service.versions import UPSTREAM_VERSION

# How long a review may take.
REVIEW_TIMEOUT_S: Final = 10.0
ELECTION_TIMEOUT_S_MIN: Final = 1.0


class ReviewClient(Protocol):
    async def create_document(self, path: str, document: JsonObject) -> JsonObject: ...

    async def get_document(self, path: str) -> JsonObject: ...


class Connections(NamedTuple):
    main: ClusterClient
    events: ClusterClient
    election: ClusterClient
    # None without a server for reviews.
    authentication: ReviewClient | None = None
    authorization: ReviewClient | None = None
    # Posts events about the lease, which are of the older kind.
    lease_events: ReviewClient | None = None

    def close(self) -> None:
        for client in self:
            if isinstance(client, HttpClient):
                client.close()


def connect(
    options: SchedulerOptions, metrics: RequestMetrics, clock: Clock, rng: np.random.Generator
) -> Connections:
    """Clients for the servers of the options; ConfigError if there is none. Nothing is sent yet."""
    connection = options.config.client_connection
    server = find_server(clock, kubeconfig=connection.kubeconfig, master=options.master)
    maker = _ClientMaker(metrics, clock, rng, qps=connection.qps, burst=connection.burst)
    election = maker.make(
        server,
        "/leader-election",
        timeout_s=max(
            ELECTION_TIMEOUT_S_MIN, options.config.leader_election.renew_deadline.seconds / 2
        ),
    )
    return Connections(
        main=maker.make(server, "/scheduler"),
        events=maker.make(server, ""),
        election=election,
        authentication=maker.reviewer(options.authentication.kubeconfig),
        authorization=maker.reviewer(options.authorization.kubeconfig),
        lease_events=election,
    )


class _ClientMaker:
    def __init__(
        self,
        metrics: RequestMetrics,
        clock: Clock,
        rng: np.random.Generator,
        *,
        qps: float,
        burst: int,
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._qps = qps
        self._burst = burst

    def make(
        self, server: ServerConfig, suffix: str, *, timeout_s: float | None = None
    ) -> HttpClient:
        return self._client(
            server,
            user_agent=f"{user_agent()}{suffix}",
            qps=self._qps,
            burst=self._burst,
            timeout_s=timeout_s,
        )

    def reviewer(self, kubeconfig: str) -> HttpClient | None:
        """A client for reviews; without a file the in-cluster one, None outside of a cluster."""
        try:
            server = (
                find_server(self._clock, kubeconfig=kubeconfig)
                if kubeconfig
                else in_cluster(self._clock)
            )
        except ConfigError:
            if kubeconfig:
                raise
            return None
        return self._client(
            server, user_agent=user_agent(), qps=-1, burst=1, timeout_s=REVIEW_TIMEOUT_S
        )

    def _client(self, server: ServerConfig, **settings: Any) -> HttpClient:
        observer = self._metrics.of_host(urlsplit(server.server).netloc.rpartition("@")[2])
        session = ApiSession(server, self._clock, observer=observer, **settings)
        return HttpClient(session, rng=self._rng)


def user_agent() -> str:
    """The User-Agent of requests."""
    program = Path(sys.argv[0]).name or "kubestow"
    if program == "__main__.py":
        program = "kubestow"
    return f"{program}/{__version__} ({go_platform()}) kubernetes/{UPSTREAM_VERSION}"
