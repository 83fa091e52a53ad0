"""One request with everything that belongs to it: identity, rate limit, retries, errors.

What is repeated here is what every client of an API server repeats (spec 09 §4.1): a request
answered with Retry-After (429 or 5xx) is sent again after that time, and a GET whose connection
broke off is sent again. Other retries are up to the caller.

The path of a request is short on purpose: a scheduler sends a thousand a second.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec

from kubestow.clock import Clock
from kubestow.cluster.http.connection import Connection, Response, SilenceLimits, Sink
from kubestow.cluster.http.credentials import Identity
from kubestow.cluster.http.dial import Dialer
from kubestow.cluster.http.error_response import response_error
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.pool import CONNECTIONS_MAX, ConnectionPool, Permission
from kubestow.cluster.http.tls import TlsContexts
from kubestow.cluster.http.wire import Head
from kubestow.cluster.resources import ApiResource
from kubestow.errors import ConfigError, NotFoundError, UnreachableError

logger = logging.getLogger(__name__)

DEFAULT_QPS: Final = 50.0
DEFAULT_BURST: Final = 100
RETRIES_MAX: Final = 10
RETRY_AFTER_DIGITS_MAX: Final = 9  # a longer number is no delay
BROKEN_OFF_DELAY_S: Final = 1.0
LONG_WAIT_S: Final = 1.0  # for the rate limit; longer ones are logged
JSON: Final = "application/json"


class RequestObserver(Protocol):
    """Counts requests. Called for every request, so it must be fast."""

    def answered(
        self, method: str, code: int, duration_s: float, *, sent_bytes: int, received_bytes: int
    ) -> None:
        """An answer came; of a stream nothing has been received yet."""
        ...

    def unanswered(self, method: str) -> None:
        """No answer came: the connection was refused, broke off, or took too long."""
        ...

    def held_back(self, method: str, duration_s: float) -> None:
        """A request passed our own rate limit after that time."""
        ...

    def repeated(self, method: str, code: int | None) -> None:
        """A request is sent again after an answer of that code; None after no answer."""
        ...

    def undecodable(self, kind: str) -> None:
        """An object of this kind came that cannot be decoded."""
        ...


class SessionStatistics(msgspec.Struct, frozen=True):
    request_count: int
    retry_count: int
    throttled_s: float
    connection_count: int


class ApiSession:
    """Requests to one API server as one client, with a rate limit of its own."""

    def __init__(
        self,
        config: ServerConfig,
        clock: Clock,
        *,
        user_agent: str = "kubestow",
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        timeout_s: float | None = None,
        connections_max: int = CONNECTIONS_MAX,
        silence: SilenceLimits | None = None,
        observer: RequestObserver | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        dial: Callable[[], Awaitable[Connection]] | None = None,
    ) -> None:
        """ConfigError if the certificates given cannot be used.

        `timeout_s` limits one request; without it only silence does. `dial` makes connections, by
        default to the server of the configuration.
        """
        self._clock = clock
        self._timeout_s = timeout_s
        self.observer: Final = observer
        # Awaited at the last moment before anything but a GET is sent: a request may wait long for
        # the rate limit, a connection or Retry-After, and what allowed it may have ended since.
        self.may_write: Permission | None = None
        self._sleep = sleep
        self._credentials = config.credentials
        self._tls = TlsContexts(config.tls)
        dialer = Dialer(config.server, self._tls, config.proxy)
        dialer.check()
        self._pool = ConnectionPool(
            dial or dialer.dial, clock, connections_max=connections_max, silence=silence
        )
        self._rate_limit = RateLimit(clock, qps=qps, burst=burst, sleep=sleep)
        self._target = _target(config.server, dialer)
        self.host: Final = urlsplit(config.server).netloc.rpartition("@")[2]
        self._fixed_headers = (
            ("Host", self.host),
            ("User-Agent", user_agent),
            ("Accept", JSON),
            *config.impersonation,
            *_proxy_headers(dialer),
        )
        self._identity: Identity | None = None
        self._valid_until_s = 0.0
        self._heads: dict[str, bytes] = {}  # header lines by content type
        self._identifying = asyncio.Lock()  # one plugin run serves all waiting requests
        # How often no identity came, and why the last time.
        self._refusal_count: int = 0
        self._refusal = ""
        self._request_count = 0
        self._retry_count = 0
        self._throttled_s = 0.0

    def statistics(self) -> SessionStatistics:
        return SessionStatistics(
            request_count=self._request_count,
            retry_count=self._retry_count,
            throttled_s=self._throttled_s,
            connection_count=self._pool.dialled_count,
        )

    @property
    def is_saturated(self) -> bool:
        """Whether requests wait for others to be answered, rather than for the rate limit."""
        return self._pool.is_saturated

    async def request(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = JSON
    ) -> bytes:
        """The body of the answer; ApiError for an error response, UnreachableError for none."""
        response, _ = await self._perform(method, path, body, content_type, None)
        return response.body

    async def stream(self, path: str, sink: Sink) -> Connection:
        """GET a stream. The caller ends it with `end_stream`."""
        _, connection = await self._perform("GET", path, b"", JSON, sink)
        assert connection is not None
        return connection

    def end_stream(self, connection: Connection) -> None:
        self._pool.end_stream(connection)

    def close(self) -> None:
        """End all connections that are not in the middle of a request."""
        self._pool.close()

    async def _perform(
        self, method: str, path: str, body: bytes, content_type: str, sink: Sink | None
    ) -> tuple[Response, Connection | None]:
        retry_count = 0
        has_new_identity = False
        while True:
            if not self._rate_limit.is_unlimited:
                await self._wait_turn(method)
            if self._clock.monotonic_s() >= self._valid_until_s:
                await self._identify(self._identity)
            identity = self._identity
            try:
                response, connection = await self._send(method, path, body, content_type, sink)
            except UnreachableError as error:
                if self.observer is not None:
                    self.observer.unanswered(method)
                code = None
                if method != "GET" or error.cause != "broken off" or retry_count >= RETRIES_MAX:
                    raise
                delay_s = BROKEN_OFF_DELAY_S
            else:
                code = response.head.status
                if code < 300:
                    return response, connection
                if connection is not None:
                    self._pool.end_stream(connection)
                if code == 401 and not has_new_identity and self._credentials.rejected():
                    has_new_identity = True
                    await self._identify(identity)
                    continue
                later_s = retry_after_s(response.head)
                if later_s is None or retry_count >= RETRIES_MAX:
                    raise response_error(code, response.body, method=method, path=path)
                delay_s = later_s
            retry_count += 1
            self._retry_count += 1
            if self.observer is not None:
                self.observer.repeated(method, code)
            logger.debug("%s %s: repeating in %g s", method, path, delay_s)
            await self._sleep(delay_s)

    async def _send(
        self, method: str, path: str, body: bytes, content_type: str, sink: Sink | None
    ) -> tuple[Response, Connection | None]:
        """Send the request once."""
        request = b"%s%s%sContent-Length: %d\r\n\r\n%s" % (
            method.encode(),
            f" {self._target}{path} HTTP/1.1\r\n".encode(),
            self._heads.get(content_type) or self._head(content_type),
            len(body),
            body,
        )
        self._request_count += 1
        started_s = self._clock.monotonic_s() if self.observer is not None else 0.0
        connection = None
        permission = None if method == "GET" else self.may_write
        if self._timeout_s is None and sink is None:
            response = await self._pool.exchange(request, permission)
        else:
            try:
                async with asyncio.timeout(self._timeout_s):
                    if sink is None:
                        response = await self._pool.exchange(request, permission)
                    else:
                        response, connection = await self._pool.stream(request, sink)
            except TimeoutError as error:
                message = f"{method} {path}: no answer within {self._timeout_s} s"
                raise UnreachableError(message) from error
        if self.observer is not None:
            duration_s = self._clock.monotonic_s() - started_s
            self.observer.answered(
                method,
                response.head.status,
                duration_s,
                sent_bytes=len(body),
                received_bytes=len(response.body),
            )
        return response, connection

    async def _wait_turn(self, method: str) -> None:
        waited_s = await self._rate_limit.wait_turn()
        if self.observer is not None:
            self.observer.held_back(method, waited_s)
        self._throttled_s += waited_s
        if waited_s > LONG_WAIT_S:
            logger.info("waited %.1f s for our own rate limit (clientConnection.qps)", waited_s)

    async def _identify(self, outdated: Identity | None) -> None:
        """Get a new identity, unless another request has done so, or failed to, since."""
        refused = self._refusal_count
        async with self._identifying:
            if self._identity is not outdated:
                return
            if self._refusal_count != refused:
                # A plugin that failed is slow, and fails for each of the requests that wait.
                raise UnreachableError(self._refusal)
            try:
                identity = await self._credentials.identify()
            except ConfigError as error:
                self._refusal_count += 1
                self._refusal = str(error)
                # A request that cannot be sent is like one without an answer: it may work later.
                raise UnreachableError(self._refusal) from error
            if outdated is not None and identity.pair != outdated.pair:
                self._pool.drop_idle()
            self._tls.use_pair(identity.pair)
            self._identity = identity
            self._valid_until_s = identity.valid_until_s
            self._heads.clear()

    def _head(self, content_type: str) -> bytes:
        """The header lines of every request with this type of body."""
        assert self._identity is not None
        headers = (*self._fixed_headers, *self._identity.headers, ("Content-Type", content_type))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise UnreachableError("a header value (token, impersonated user) contains a line end")
        self._heads[content_type] = head = lines.encode()
        return head


def retry_after_s(head: Head) -> float | None:
    """The delay in the Retry-After header of a server that is too busy; None without one."""
    if head.status != 429 and head.status < 500:
        return None
    value = head.header(b"retry-after")
    if value is None or not value.isdigit() or len(value) > RETRY_AFTER_DIGITS_MAX:
        return None
    return float(value)


def _target(server: str, dialer: Dialer) -> str:
    """The prefix of the path in each request."""
    return server if dialer.asks_proxy else urlsplit(server).path


def _proxy_headers(dialer: Dialer) -> tuple[tuple[str, str], ...]:
    if not dialer.asks_proxy or not dialer.proxy_authorization:
        return ()
    return (("Proxy-Authorization", dialer.proxy_authorization),)


class RateLimit:
    """How many requests a second a client sends: a bucket of tokens (spec 09 §4.1).

    Every client has its own. The bucket starts full with `burst` tokens and gains `qps` a second. A
    request takes one at once, even from an empty bucket, and waits until that token exists, so
    requests are sent in order. A negative `qps` means no limit.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        qps: float,
        burst: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.is_unlimited = qps <= 0
        self._clock = clock
        self._qps = qps
        self._burst = burst
        self._sleep = sleep
        self._tokens = float(burst)
        self._counted_at_s = clock.monotonic_s()

    def take(self) -> float:
        """Take a token; return how many seconds to wait before using it."""
        if self.is_unlimited:
            return 0.0
        now_s = self._clock.monotonic_s()
        gained = (now_s - self._counted_at_s) * self._qps
        self._tokens = min(self._burst, self._tokens + gained) - 1.0
        self._counted_at_s = now_s
        return 0.0 if self._tokens >= 0.0 else -self._tokens / self._qps

    async def wait_turn(self) -> float:
        """Wait until a request may be sent; return how long that took."""
        delay_s = self.take()
        if delay_s > 0.0:
            await self._sleep(delay_s)
        return delay_s


async def serves(session: ApiSession, resource: ApiResource) -> bool:
    """Whether the server serves this version of the resource; the core group always is.

    Older servers lack some, and groups can be disabled.
    """
    if not resource.group:
        # A 404 of the core group comes from a wrong address.
        return True
    try:
        raw = await session.request("GET", f"/apis/{resource.api_version}")
    except NotFoundError:
        return False
    found: dict[str, Any] = msgspec.json.decode(raw)
    return any(served["name"] == resource.plural for served in found.get("resources") or ())
