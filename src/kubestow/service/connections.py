"""The clients of one process (spec 09 §4.1): each with its own rate limit and name.

main            lists, watches, binds, writes statuses
events          what `kubectl describe` shows; many events must not delay bindings
election        the lease; with a short timeout, since a late answer is useless
authentication, authorization   reviews for the HTTPS port of this process

Main and events belong to the scheduler's loop, the election to the control loop and reviews to the
port's. What belongs to different loops shares no credentials object either, since requests wait on
it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig, find_server, in_cluster
from kubestow.cluster.http.pool import Permission
from kubestow.cluster.http.session import ApiSession, RequestObserver
from kubestow.errors import ConfigError
from kubestow.service.metrics.component import RequestMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.user_agent import user_agent

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

    def guard_writes(self, permission: Permission) -> None:
        """Send what the scheduler writes only once this returns; events are always sent."""
        if isinstance(self.main, HttpClient):
            self.main.session.may_write = permission

    def is_main_saturated(self) -> bool:
        """Whether bindings and other requests of the scheduler wait for a connection."""
        return isinstance(self.main, HttpClient) and self.main.session.is_saturated

    def close_main(self) -> None:
        """Called on the scheduler's loop."""
        _close(self.main, self.events)

    async def close_control(self) -> None:
        """Called on the control loop."""
        _close(self.election, self.lease_events)

    async def close_port(self) -> None:
        """Called on the port's loop."""
        _close(self.authentication, self.authorization)


def _close(*clients: object) -> None:
    for client in clients:
        if isinstance(client, HttpClient):
            client.close()


def connect(
    options: SchedulerOptions,
    metrics: RequestMetrics,
    clock: Clock,
    rng: np.random.Generator,
    *,
    post: Callable[[Callable[[], None]], None],
) -> Connections:
    """Clients for the servers of the options; ConfigError if there is none. Nothing is sent yet.

    `post` calls a function on the scheduler's loop, from any other loop.
    """
    connection = options.config.client_connection

    def server() -> ServerConfig:
        return find_server(clock, kubeconfig=connection.kubeconfig, master=options.master)

    maker = _ClientMaker(metrics, clock, rng, post, qps=connection.qps, burst=connection.burst)
    main = server()
    election = maker.make(
        server(),
        "/leader-election",
        timeout_s=max(
            ELECTION_TIMEOUT_S_MIN, options.config.leader_election.renew_deadline.seconds / 2
        ),
        is_apart=True,
    )
    return Connections(
        main=maker.make(main, "/scheduler"),
        events=maker.make(main, ""),
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
        post: Callable[[Callable[[], None]], None],
        *,
        qps: float,
        burst: int,
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._post = post
        self._qps = qps
        self._burst = burst

    def make(
        self,
        server: ServerConfig,
        suffix: str,
        *,
        timeout_s: float | None = None,
        is_apart: bool = False,
    ) -> HttpClient:
        return self._client(
            server,
            user_agent=f"{user_agent()}{suffix}",
            qps=self._qps,
            burst=self._burst,
            timeout_s=timeout_s,
            is_apart=is_apart,
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
            server,
            user_agent=user_agent(),
            qps=-1,
            burst=1,
            timeout_s=REVIEW_TIMEOUT_S,
            is_apart=True,
        )

    def _client(self, server: ServerConfig, *, is_apart: bool, **settings: Any) -> HttpClient:
        observer = self._metrics.of_host(urlsplit(server.server).netloc.rpartition("@")[2])
        if is_apart:
            observer = _PostedObserver(observer, self._post)
        session = ApiSession(server, self._clock, observer=observer, **settings)
        return HttpClient(session, rng=self._rng)


class _PostedObserver:
    """Counts on the scheduler's loop what happens on another loop: metrics have no locks."""

    def __init__(
        self, observer: RequestObserver, post: Callable[[Callable[[], None]], None]
    ) -> None:
        self._observer = observer
        self._post = post

    def answered(
        self, method: str, code: int, duration_s: float, *, sent_bytes: int, received_bytes: int
    ) -> None:
        self._post(
            partial(
                self._observer.answered,
                method,
                code,
                duration_s,
                sent_bytes=sent_bytes,
                received_bytes=received_bytes,
            )
        )

    def unanswered(self, method: str) -> None:
        self._post(partial(self._observer.unanswered, method))

    def held_back(self, method: str, duration_s: float) -> None:
        self._post(partial(self._observer.held_back, method, duration_s))

    def repeated(self, method: str, code: int | None) -> None:
        self._post(partial(self._observer.repeated, method, code))

    def undecodable(self, kind: str) -> None:
        self._post(partial(self._observer.undecodable, kind))
