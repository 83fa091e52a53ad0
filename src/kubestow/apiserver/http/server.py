"""The HTTP server of the embedded API server: sockets, TLS, tokens, dispatch of requests.

    request ── host? token? ──┬─ /healthz, /version, …    plain answers
                              ├─ /api, /apis, /openapi    discovery
                              ├─ …/pods?watch=true        a stream
                              └─ …/pods/web-1/binding     a verb on an object

On a loopback address the Host of a request has to be one, too: with a name that an attacker's DNS
server points there, any site that is open in a browser could send requests as to itself.

A request is read whole, then answered by one plain function call on the store: no request ever sees
another one's partial writes. Only watches stay open.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from kubestow import __version__
from kubestow.apiserver.http import metrics
from kubestow.apiserver.http.access import Access, AccessRules, verb_of
from kubestow.apiserver.http.authentication import (
    ADMINISTRATOR,
    ANONYMOUS,
    Authentication,
    Subject,
    impersonated,
    unauthorized,
)
from kubestow.apiserver.http.discovery import Discovery
from kubestow.apiserver.http.failures import failure_answer
from kubestow.apiserver.http.field_validation import warning_header
from kubestow.apiserver.http.openapi import OpenApi
from kubestow.apiserver.http.query import Query
from kubestow.apiserver.http.representation import negotiate
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.reviews import Reviews, is_review
from kubestow.apiserver.http.routing import ApiPath, parse_path
from kubestow.apiserver.http.streaming import WatchStreams
from kubestow.apiserver.http.subresources import Subresources
from kubestow.apiserver.http.verbs import ObjectRequest, Verbs, refuse_verb
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import no_such_resource
from kubestow.clock import Clock
from kubestow.errors import ApiError, DecodeError
from kubestow.http_port import BACKLOG, HttpPort, keep, read_body
from kubestow.usage.store import UsageStore

logger = logging.getLogger(__name__)

# The version that the server reports and whose behaviour it has.
BODY_BYTES_MAX: Final = 3 * 1024 * 1024
BOOKMARK_INTERVAL_S: Final = 60.0
# How long requests in progress may take when the server closes.
SHUTDOWN_S: Final = 1.0
# Verbs that need a name in the path; the others need one without.
_ON_OBJECTS: Final = ("get", "update", "patch", "delete")


class ApiServer:
    """Serves a `MemoryCluster` over HTTP on the loop it is started on."""

    def __init__(self, cluster: MemoryCluster, clock: Clock, *, token: str = "") -> None:
        """If there is a token, requests without it are refused."""
        self.cluster: Final = cluster
        self._served = cluster.served
        self._authentication = Authentication(token, cluster, clock)
        self._rules = AccessRules(cluster)
        self._reviews = Reviews(self._authentication, self._rules)
        self._discovery = Discovery(self._served)
        self._openapi = OpenApi(self._served, version=__version__)
        self._verbs = Verbs(cluster, clock)
        self._subresources = Subresources(cluster, clock, self._verbs, self._authentication)
        self._streams = WatchStreams(cluster, clock)
        # What nodes and pods use, served as metrics.k8s.io; None: it is not served.
        self.usage: UsageStore | None = None
        self._port: HttpPort | None = None
        self._is_loopback = False
        self._bookmarks: asyncio.Task[None] | None = None

    async def start(
        self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> int:
        """Start listening; return the port, a free one if none was given."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
        address: tuple[str, int] = bound.getsockname()[:2]
        self._is_loopback = host in _LOOPBACK
        self._port = HttpPort(self._handle, bound, tls=tls, cancels_handlers=True)
        self._port.start()
        self._bookmarks = asyncio.create_task(self._send_bookmarks())
        self._discovery = Discovery(self._served, address=f"{address[0]}:{address[1]}")
        return address[1]

    async def close(self) -> None:
        """End the watches, finish requests in progress, stop listening."""
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        self._streams.close()
        if self._port is not None:
            await self._port.close(timeout_s=SHUTDOWN_S)

    async def _send_bookmarks(self) -> None:
        while True:
            await asyncio.sleep(BOOKMARK_INTERVAL_S)
            self.cluster.send_bookmarks()

    # --- Requests -----------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = parse_path(request.path)
        try:
            if self._is_loopback and not _names_loopback(request.headers.get("Host", "")):
                raise ApiError("this is another host", code=421, reason="MisdirectedRequest")
            query = Query(request.query)
            is_list = path is not None and request.method == "GET" and not path.name
            is_watch = is_list and query.flag("watch")
            subject = self._require_access(request, path, is_watch=is_watch)
            if subject is not ANONYMOUS:
                keep(request)
            if is_watch and path is not None:
                return await self._stream(request, path)
            body = await _read_body(request)
            answer = self._answer(request, path, body, subject)
        except (ApiError, DecodeError) as error:
            answer = self._failure(error, path)
        except ConnectionError:
            raise  # The client has closed the connection.
        except Exception as error:
            # One request must not stop the server; the client gets an internal error.
            logger.exception("cannot answer %s %s", request.method, request.path)
            answer = self._failure(ApiError(f"Internal error occurred: {error}"), path)
        response = web.Response(
            body=answer.body,
            status=answer.status,
            headers={"Content-Type": answer.content_type, **_NO_CACHE, **answer.headers},
        )
        for warning in answer.warnings:
            response.headers.add("Warning", warning_header(warning))
        return response

    def _require_access(
        self, request: web.BaseRequest, path: ApiPath | None, *, is_watch: bool
    ) -> Subject:
        """The user of the request; 401 or 403 if it is not accepted."""
        subject = self._authentication.subject_of(request.headers.get("Authorization", ""))
        if subject is ADMINISTRATOR:
            name = request.headers.get("Impersonate-User", "")
            if not name:
                return subject
            subject = impersonated(name, request.headers.getall("Impersonate-Group", []))
        if path is None:
            access = Access(verb=request.method.lower(), path=request.path)
        else:
            verb = verb_of(request.method, has_name=bool(path.name), is_watch=is_watch)
            parts = filter(None, (path.plural, path.subresource))
            access = Access(verb, path.group, "/".join(parts), path.namespace, path.name)
        if subject is ANONYMOUS and not self._rules.reason(subject, access):
            raise unauthorized()
        self._rules.require(subject, access)
        return subject

    def _answer(
        self, request: web.BaseRequest, path: ApiPath | None, body: bytes, subject: Subject
    ) -> ApiResponse:
        if path is None:
            return self._answer_without_resource(request)
        if path.group == metrics.GROUP and self.usage is not None:
            return metrics.answer(self.usage, request.method, path)
        if is_review(path) and request.method == "POST":
            content_type = request.headers.get("Content-Type", "")
            return self._reviews.answer(path, body, content_type, subject)
        if (path.group, path.plural, request.method) == ("", "bindings", "POST"):
            pods = path._replace(plural="pods")
            return self._subresources.bind(self._object_request(request, pods, body))
        object_request = self._object_request(request, path, body)
        if path.subresource:
            return self._subresources.handle(request.method, object_request)
        verb = verb_of(request.method, has_name=bool(path.name), is_watch=False)
        handler = self._verb(verb) if verb in object_request.served.resource.verbs else None
        if handler is None or bool(path.name) is not (verb in _ON_OBJECTS):
            raise refuse_verb()
        return handler(object_request)

    def _verb(self, verb: str) -> Callable[[ObjectRequest], ApiResponse] | None:
        verbs = self._verbs
        by_name = {
            "get": verbs.get,
            "list": verbs.list,
            "create": verbs.create,
            "update": verbs.update,
            "patch": verbs.patch,
            "delete": verbs.delete,
            "deletecollection": verbs.delete_collection,
        }
        return by_name.get(verb)

    def _object_request(
        self, request: web.BaseRequest, path: ApiPath, body: bytes = b""
    ) -> ObjectRequest:
        headers = request.headers
        return ObjectRequest(
            path=path,
            served=self._served.find(path.group, path.version, path.plural),
            query=Query(request.query),
            form=negotiate(headers.get("Accept", "")),
            body=body,
            content_type=headers.get("Content-Type", ""),
            user_agent=headers.get("User-Agent", ""),
        )

    def _answer_without_resource(self, request: web.BaseRequest) -> ApiResponse:
        path, accept = request.path, request.headers.get("Accept", "")
        if request.method != "GET":
            raise refuse_verb()
        if (health := _health_answer(path, Query(request.query))) is not None:
            return health
        if path in ("/version", "/version/"):
            return json_response(version_document(self.cluster.gates.edition.version))
        found = self._discovery.answer(path, accept)
        if found is not None:
            content_type = self._discovery.content_type(path, accept)
            return json_response(found)._replace(content_type=content_type)
        found = self._openapi.answer(path)
        if found is not None:
            return json_response(found)
        if path == "/":
            return json_response({"paths": list(_ROOT_PATHS)})
        raise no_such_resource()

    def _failure(self, error: ApiError | DecodeError, path: ApiPath | None) -> ApiResponse:
        resource = None
        if path is not None:
            try:
                resource = self._served.find(path.group, path.version, path.plural).resource
            except ApiError:
                resource = None
        return failure_answer(error, resource=resource, name=path.name if path else "")

    # --- Watches ------------------------------------------------------------------------------

    async def _stream(self, request: web.BaseRequest, path: ApiPath) -> web.StreamResponse:
        stream = self._streams.open(self._object_request(request, path))
        response = web.StreamResponse(headers={"Content-Type": "application/json", **_NO_CACHE})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            await stream.send_all(response.write)
            await response.write_eof()
        except ConnectionError:
            logger.debug("a client closed its watch of %s", path.plural)
        return response


_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1", "[::1]")


def _names_loopback(host: str) -> bool:
    """Whether a Host header, with or without a port, is a name of this machine for itself."""
    name, _, port = host.rpartition(":")
    return host in _LOOPBACK or (port.isdecimal() and name in _LOOPBACK)


_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_CHECKS: Final = ("ping", "log", "etcd")
_READY_CHECKS: Final = (*_CHECKS, "etcd-readiness", "informer-sync")
_TEXT: Final = "text/plain; charset=utf-8"
_NO_CACHE: Final[Mapping[str, str]] = {"Cache-Control": "no-cache, private"}
_ROOT_PATHS: Final = ("/api", "/api/v1", "/apis", "/openapi/v3", "/version", *_HEALTH)


def version_document(version: str) -> dict[str, str]:
    """What the server of an edition reports; `version` is such as v1.37."""
    return {
        "major": "1",
        "minor": version.rpartition(".")[2],
        "gitVersion": f"{version}.0+kubestow.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "python",
    }


async def _read_body(request: web.BaseRequest) -> bytes:
    """The whole body; 413 if it is too large, 408 if it does not arrive."""
    try:
        body = await read_body(request, bytes_max=BODY_BYTES_MAX)
    except TimeoutError as error:
        raise ApiError("the body did not arrive in time", code=408, reason="Timeout") from error
    if body is None:
        raise ApiError(
            f"Request entity too large: limit is {BODY_BYTES_MAX}",
            code=413,
            reason="RequestEntityTooLarge",
        )
    return body


def _health_answer(path: str, query: Query) -> ApiResponse | None:
    """The answer at `/readyz` or at one of its checks; None for any other path.

    A server that answers at all has everything it needs, so every check passes.
    """
    root, _, check = path.strip("/").partition("/")
    if f"/{root}" not in _HEALTH:
        return None
    checks = _READY_CHECKS if root == "readyz" else _CHECKS
    if check:
        return ApiResponse(b"ok", content_type=_TEXT) if check in checks else None
    if not query.has("verbose"):
        return ApiResponse(b"ok", content_type=_TEXT)
    excluded = query.texts("exclude")
    lines = [
        f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks
    ]
    lines.append(f"{root} check passed\n")
    return ApiResponse("\n".join(lines).encode(), content_type=_TEXT)
