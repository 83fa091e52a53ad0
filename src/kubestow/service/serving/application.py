"""Paths to answers (spec 09 §7): authentication, then authorization, then the route.

A bug in an answer is a 500 and never ends the process. What reads the scheduler's state is written
on its loop, everything else on that of the port.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from aiohttp import web

from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.running_pod import RunningPod
from kubestow.http_port import keep, read_body
from kubestow.logs import inform, is_printed
from kubestow.service.loops import OtherLoop, SharedLoop
from kubestow.service.metrics.component import RuntimeMetrics
from kubestow.service.metrics.registry import CONTENT_TYPE, MetricsRegistry
from kubestow.service.serving.authentication import (
    ANONYMOUS_USER,
    Authenticator,
    Headers,
    TokenHeaders,
    UnauthorizedError,
    User,
)
from kubestow.service.serving.authorization import Authorizer, forbidden_message
from kubestow.service.serving.health import HealthEndpoint, HealthSlis
from kubestow.service.serving.pages import (
    ProcessFacts,
    asks_for_document,
    flagz_document,
    flagz_text,
)
from kubestow.service.serving.reviews import TooManyReviewsError

log = logging.getLogger(__name__)

_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_NO_CACHE: Final[Mapping[str, str]] = {
    "Cache-Control": "no-cache, private",
    "X-Content-Type-Options": "nosniff",
}

# Smaller pieces of a long answer are sent together.
_CHUNK_CHARS: Final = 32_768

# A verbosity has ten digits; a longer body is not read. Python parses numbers of this length.
VERBOSITY_BYTES_MAX: Final = 1024
_INT32_MAX: Final = 2**31 - 1
_UINT32_MAX: Final = 2**32 - 1

Route = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
# Whether the user of a bearer token may read the page.
Accepts = Callable[[str], Awaitable[bool]]


class PagePaths(Protocol):
    """Paths for browsers (`page_site`), which is loaded only where the page is asked for.

    prefix         with which all its paths begin
    session_path   where a token is exchanged for a cookie; open to all
    """

    @property
    def prefix(self) -> str: ...

    @property
    def session_path(self) -> str: ...

    def owns(self, path: str) -> bool: ...

    def authorized_path(self, path: str) -> str:
        """The path that a user has to be allowed to read."""
        ...

    def headers_of(self, request: web.BaseRequest) -> Headers:
        """The headers of a request, or the token of its cookie as such if it has no other."""
        ...

    def form(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """The form for a token, for a browser that opens the page; None for other requests."""
        ...

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a user who may read the path."""
        ...

    async def sign_in(self, request: web.BaseRequest, accepts: Accepts) -> web.StreamResponse: ...

    async def close(self) -> None: ...


class Pages(msgspec.Struct, kw_only=True):
    """The content of all paths."""

    health: tuple[HealthEndpoint, ...]
    slis: HealthSlis
    metrics: MetricsRegistry
    runtime: RuntimeMetrics
    # The pieces of `/metrics/resources`; empty while another process leads.
    pod_resources: Callable[[], Iterable[str]]
    configz: Callable[[], JsonObject]
    flags: Mapping[str, str] | None  # None: the gate is off
    facts: ProcessFacts | None  # likewise
    # Collects what is known of a pod, by namespace and name; called on the scheduler's loop.
    running_pod: Callable[[str, str], RunningPod | None]
    # The last attempts of the pods that wait, of one namespace or of all; called likewise.
    kept_attempts: Callable[[str], Sequence[FrozenDecision]]
    # Changes how much is logged; None without profiling.
    set_verbosity: Callable[[int], None] | None


class Application:
    def __init__(
        self,
        pages: Pages,
        authenticator: Authenticator,
        authorizer: Authorizer,
        loop: OtherLoop,
        clock: Clock,
        rng: np.random.Generator,
        *,
        page: PagePaths | None = None,
    ) -> None:
        self._pages = pages
        self._page = page
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._loop = loop
        self._clock = clock
        self._rng = rng
        self._routes: dict[str, Route] = {
            "/metrics": self._metrics,
            "/metrics/resources": self._metrics_resources,
            "/metrics/slis": self._metrics_slis,
            "/configz": self._configz,
            "/explain": self._explain,
        }
        for endpoint in pages.health:
            self._routes[f"/{endpoint.name}"] = self._health(endpoint)
        if pages.flags is not None:
            self._routes["/flagz"] = self._flagz
        if pages.facts is not None:
            self._routes["/statusz"] = self._statusz
        if pages.set_verbosity is not None:
            self._routes["/debug/flags/v"] = self._verbosity

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started_s = self._clock.monotonic_s()
        try:
            answer = await self._guarded(request)
        except (ConnectionError, asyncio.CancelledError):
            raise  # The client has closed the connection.
        except TooManyReviewsError:
            answer = _status(429, "TooManyRequests", "too many requests wait for their review")
            answer.headers["Retry-After"] = "1"
        except Exception:
            # One request must not end the scheduler.
            log.exception("cannot answer %s %s", request.method, request.path)
            answer = _text("This request caused apiserver to panic. Look in the logs.", status=500)
        if is_printed(log, 3):
            inform(
                log,
                "HTTP",
                v=3,
                verb=request.method,
                URI=request.path_qs,
                latency=f"{(self._clock.monotonic_s() - started_s) * 1000:.3f}ms",
                srcIP=request.remote or "",
                resp=answer.status,
            )
        return answer

    async def _guarded(self, request: web.BaseRequest) -> web.StreamResponse:
        path, method = request.path, request.method
        if self._page is not None and self._page.owns(path):
            return await self._show(request, self._page)
        try:
            user = await self._authenticator.identify(request.headers, peer_certificate(request))
        except UnauthorizedError:
            return _status(401, "Unauthorized", "Unauthorized")
        if not await self._authorizer.allows(user, path, method):
            return self._forbidden(user, path, method)
        if user != ANONYMOUS_USER:
            keep(request)
        route = self._routes.get(path)
        if route is not None:
            return await route(request)
        return self._single_check(path) or _text("404 page not found\n", status=404)

    def _forbidden(self, user: User, path: str, method: str) -> web.StreamResponse:
        return _status(403, "Forbidden", forbidden_message(user, path, method))

    # --- the page ---

    async def _show(self, request: web.BaseRequest, page: PagePaths) -> web.StreamResponse:
        """The page, for those who may read it; a form for browsers without credentials."""
        path, method = page.authorized_path(request.path), request.method
        if path == page.session_path:
            return await page.sign_in(request, lambda token: self._may_see(page, token))
        try:
            headers, certificate = page.headers_of(request), peer_certificate(request)
            user = await self._authenticator.identify(headers, certificate)
        except UnauthorizedError:
            return page.form(request) or _status(401, "Unauthorized", "Unauthorized")
        if not await self._authorizer.allows(user, path, method):
            form = page.form(request) if user == ANONYMOUS_USER else None
            return form or self._forbidden(user, path, method)
        if user != ANONYMOUS_USER:
            keep(request)
        return await page.handle(request)

    async def _may_see(self, page: PagePaths, token: str) -> bool:
        try:
            user = await self._authenticator.identify(TokenHeaders(token), None)
        except UnauthorizedError:
            return False
        return user != ANONYMOUS_USER and await self._authorizer.allows(user, page.prefix, "GET")

    # --- health ---

    def _health(self, endpoint: HealthEndpoint) -> Route:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            query = request.query
            found = endpoint.answer_all(
                is_verbose="verbose" in query, excluded=query.getall("exclude", [])
            )
            return _text(found.text, status=found.status)

        return answer

    def _single_check(self, path: str) -> web.StreamResponse | None:
        parent, _, name = path.rpartition("/")
        for endpoint in self._pages.health:
            if f"/{endpoint.name}" == parent:
                found = endpoint.answer_one(name)
                return None if found is None else _text(found.text, status=found.status)
        return None

    # --- metrics ---

    async def _metrics(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "DELETE":
            await self._loop.run_on_scheduler(self._reset_metrics())
            return _text("metrics reset\n")
        return await _stream(request, self._metrics_texts(), CONTENT_TYPE, self._loop)

    async def _reset_metrics(self) -> None:
        self._pages.metrics.reset()

    def _metrics_texts(self) -> Iterator[str]:
        yield from self._pages.metrics.texts()
        yield self._pages.runtime.text()

    async def _metrics_resources(self, request: web.BaseRequest) -> web.StreamResponse:
        return await _stream(request, self._pod_resource_texts(), CONTENT_TYPE, self._loop)

    def _pod_resource_texts(self) -> Iterator[str]:
        yield from self._pages.pod_resources()

    async def _metrics_slis(self, request: web.BaseRequest) -> web.StreamResponse:
        return await _stream(request, self._pages.slis.registry.texts(), CONTENT_TYPE, SharedLoop())

    # --- pages ---

    async def _configz(self, request: web.BaseRequest) -> web.StreamResponse:
        return _json(self._pages.configz())

    async def _explain(self, request: web.BaseRequest) -> web.StreamResponse:
        """The last attempt for `?namespace=…&pod=…`, if it was kept; with `?all=true` the causes of
        all that wait, of one namespace if it is given."""
        namespace = request.query.get("namespace", "default")
        name = request.query.get("pod", "")
        if request.method != "GET":
            return _status(405, "MethodNotAllowed", "only GET is answered here")
        if request.query.get("all") == "true":
            return await self._explain_all(request.query.get("namespace", ""))
        if not name:
            return _status(400, "BadRequest", "name a pod: /explain?namespace=NAMESPACE&pod=NAME")
        # Imported with the first request: 25 modules that most schedulers never need.
        from kubestow.explain.running import explain_running

        running = await self._loop.run_on_scheduler(self._running_pod(namespace, name))
        explanation = None if running is None else explain_running(running)
        if explanation is None:
            return _status(404, "NotFound", _not_kept(namespace, name, running))
        return web.Response(
            body=msgspec.json.encode(explanation), headers={"Content-Type": _JSON, **_NO_CACHE}
        )

    async def _explain_all(self, namespace: str) -> web.StreamResponse:
        from kubestow.explain.running_many import explain_kept

        attempts = await self._loop.run_on_scheduler(self._kept_attempts(namespace))
        return web.Response(
            body=msgspec.json.encode(explain_kept(attempts)),
            headers={"Content-Type": _JSON, **_NO_CACHE},
        )

    async def _kept_attempts(self, namespace: str) -> Sequence[FrozenDecision]:
        return self._pages.kept_attempts(namespace)

    async def _running_pod(self, namespace: str, name: str) -> RunningPod | None:
        return self._pages.running_pod(namespace, name)

    async def _flagz(self, request: web.BaseRequest) -> web.StreamResponse:
        flags = self._pages.flags or {}
        if asks_for_document(request.headers.get("Accept", ""), "Flagz"):
            return _json(flagz_document(flags))
        return _text(flagz_text(flags, self._rng))

    async def _statusz(self, request: web.BaseRequest) -> web.StreamResponse:
        facts = self._pages.facts
        assert facts is not None
        now_ns = self._clock.now_ns()
        if asks_for_document(request.headers.get("Accept", ""), "Statusz"):
            return _json(facts.statusz_document(now_ns))
        return _text(facts.statusz_text(now_ns))

    async def _verbosity(self, request: web.BaseRequest) -> web.StreamResponse:
        set_verbosity = self._pages.set_verbosity
        assert set_verbosity is not None
        if request.method != "PUT":
            return _text("unsupported http method\n", status=406)
        try:
            body = await read_body(request, bytes_max=VERBOSITY_BYTES_MAX)
        except TimeoutError:
            return _text("error reading request body: it did not arrive in time\n", status=400)
        if body is None:
            limit = f"it is longer than {VERBOSITY_BYTES_MAX} bytes"
            return _text(f"error reading request body: {limit}\n", status=400)
        text = body.decode(errors="replace")
        if problem := verbosity_problem(text):
            return _text(f"{problem}\n", status=400)
        set_verbosity(int(text))
        return _text(f"successfully set klog.logging.verbosity to {text}\n")


def _not_kept(namespace: str, name: str, running: RunningPod | None) -> str:
    pod = f'pod "{namespace}/{name}"'
    if running is None:
        return f"{pod} is not known to this scheduler"
    if running.place == "active":
        return f"{pod} waits for its first attempt"
    return f"no attempt of {pod} is kept: it was placed at once, or others were kept since"


def verbosity_problem(text: str) -> str:
    """Why a text is no verbosity, in Go's words; empty if it is one."""
    if not (text.isascii() and text.isdecimal()):
        return f'strconv.ParseUint: parsing "{text}": invalid syntax'
    if int(text) > _UINT32_MAX:
        return f'strconv.ParseUint: parsing "{text}": value out of range'
    if int(text) > _INT32_MAX:
        problem = f'strconv.ParseInt: parsing "{text}": value out of range'
        return f"failed set klog.logging.verbosity {text}: {problem}"
    return ""


async def _stream(
    request: web.BaseRequest, pieces: Iterator[str], content_type: str, loop: OtherLoop
) -> web.StreamResponse:
    """Send text piece by piece. The pieces are made on the scheduler's loop."""
    # Before the head is sent: an error here is still answered with a 500.
    chunk = await loop.run_on_scheduler(_next_chunk(pieces))
    response = web.StreamResponse(headers={"Content-Type": content_type, **_NO_CACHE})
    await response.prepare(request)
    while chunk:
        await response.write(chunk.encode())
        chunk = await loop.run_on_scheduler(_next_chunk(pieces))
    await response.write_eof()
    return response


async def _next_chunk(pieces: Iterator[str]) -> str:
    """Some pieces in one; the scheduler runs between two of them. Empty at the end."""
    taken: list[str] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece)
        if size >= _CHUNK_CHARS:
            break
        await asyncio.sleep(0)
    return "".join(taken)


def _text(text: str, *, status: int = 200) -> web.StreamResponse:
    return web.Response(
        body=text.encode(), status=status, headers={"Content-Type": _TEXT, **_NO_CACHE}
    )


def _json(document: JsonObject, *, status: int = 200) -> web.StreamResponse:
    return web.Response(
        body=msgspec.json.encode(document),
        status=status,
        headers={"Content-Type": _JSON, **_NO_CACHE},
    )


def _status(code: int, reason: str, message: str) -> web.StreamResponse:
    document: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": {}} if code == 403 else {}),
        "code": code,
    }
    return _json(document, status=code)


def peer_certificate(request: web.BaseRequest) -> bytes | None:
    """The client's certificate as DER; TLS has verified it."""
    transport = request.transport
    ssl_object = transport.get_extra_info("ssl_object") if transport is not None else None
    if ssl_object is None:
        return None
    try:
        return ssl_object.getpeercert(True)
    except ValueError as error:
        raise ConnectionResetError("the client has ended TLS") from error
