"""The clients of one process (spec 09 §4.1): each with its own rate limit and name.

main            lists, watches, binds, writes statuses
events          what `kubectl describe` shows; many events must not delay bindings
election        the lease; with a short timeout, since a late answer is useless
authentication, authorization   reviews for the HTTPS port of this process

Main and events belong to the scheduler's loop, the election to the control loop and reviews to the
port's. What belongs to different loops shares no credentials object either, since requests wait on
it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.clock import Clock, SystemClock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig, find_server, in_cluster
from kubestow.cluster.http.pool import Permission
from kubestow.cluster.http.session import ApiSession, RequestObserver
from kubestow.editions import edition_of_server
from kubestow.editions.edition import Edition
from kubestow.errors import ApiError, ConfigError
from kubestow.logs import inform, warn
from kubestow.service.metrics.component import RequestMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.user_agent import user_agent

log = logging.getLogger(__name__)

# How long a review may take.
REVIEW_TIMEOUT_S: Final = 10.0
# Between attempts to read the version of a server that does not answer.
VERSION_PAUSES_S: Final = (1.0, 2.0)
# After those, for as long as it takes. The log mentions each minute that it does not answer.
VERSION_PAUSE_S: Final = 1.0
VERSION_REMIND_S: Final = 60.0
# Answers that are final once they came this often: a server that starts has no roles at first.
VERSION_REFUSED: Final = (403, 404)
VERSION_REFUSALS: Final = 3
ELECTION_TIMEOUT_S_MIN: Final = 1.0


class VersionReader(Protocol):
    async def server_version(self) -> str: ...


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


# --- the edition of the server ---


async def edition_to_run(options: SchedulerOptions) -> Edition | None:
    """The edition of the server's version; None if it does not answer soon.

    The newest if it refuses to say. ConfigError without a server. The edition stays the same while
    the process runs.
    """
    return await _edition_to_run(options, VERSION_PAUSES_S)


async def edition_once_known(options: SchedulerOptions) -> Edition:
    """The edition to run, as `edition_to_run` says; waits until the server answers."""
    edition = await _edition_to_run(options, repeat(VERSION_PAUSE_S))
    assert edition is not None
    return edition


async def _edition_to_run(options: SchedulerOptions, pauses_s: Iterable[float]) -> Edition | None:
    clock, connection = SystemClock(), options.config.client_connection
    server = find_server(clock, kubeconfig=connection.kubeconfig, master=options.master)
    session = ApiSession(server, clock, user_agent=user_agent(), qps=-1, burst=1)
    client = HttpClient(session, rng=np.random.default_rng())
    try:
        version = await read_server_version(client, clock, pauses_s)
    finally:
        client.close()
    if version is None:
        return None
    edition, note = edition_of_server(version)
    what = f"Scheduling as the nearest version: {note}" if note else "Scheduling as the server does"
    inform(log, what, server=version, compatibility=str(edition.version))
    return edition


async def read_server_version(
    client: VersionReader, clock: Clock, pauses_s: Iterable[float]
) -> str | None:
    """Empty if the server refuses to say; None if it does not answer, with these pauses."""
    refusals, problem, logged_s = 0, "", clock.monotonic_s()
    for pause_s in chain((0.0,), pauses_s):
        await asyncio.sleep(pause_s)
        try:
            return await client.server_version()
        except ApiError as error:
            problem = str(error)
            refusals += error.code in VERSION_REFUSED
        if refusals == VERSION_REFUSALS:
            warn(log, "The API server does not tell its version", err=problem)
            return ""
        if clock.monotonic_s() - logged_s > VERSION_REMIND_S:
            logged_s = clock.monotonic_s()
            warn(log, "Still waiting for the version of the API server", err=problem)
    warn(log, "Waiting for the version of the API server", err=problem)
    return None


async def note_other_edition(client: ClusterClient, running: Edition) -> None:
    """Log if the server's version is not that of the edition that runs.

    A new leader calls this: the control plane may have been upgraded since its process started.
    """
    if not running.is_modern or not isinstance(client, HttpClient):
        return
    try:
        version = await client.server_version()
    except ApiError as error:
        log.warning("cannot read the version of the API server: %s", error)
        return
    edition, _ = edition_of_server(version)
    if edition is not running:
        log.warning(
            "the API server is %s and this process schedules as %s; restart it without "
            "--compatibility to schedule as %s",
            version,
            running.version,
            edition.version,
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
