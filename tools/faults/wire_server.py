"""The API server in memory behind HTTP requests as bytes, without sockets."""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kubestow.apiserver.http.access import verb_of
from kubestow.apiserver.http.authentication import Authentication
from kubestow.apiserver.http.failures import failure_answer
from kubestow.apiserver.http.query import Query
from kubestow.apiserver.http.response import ApiResponse
from kubestow.apiserver.http.routing import parse_path
from kubestow.apiserver.http.streaming import ServedWatch, WatchStreams
from kubestow.apiserver.http.subresources import Subresources
from kubestow.apiserver.http.verbs import ObjectRequest, Verbs, refuse_verb
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import no_such_resource
from kubestow.clock import Clock
from kubestow.errors import ApiError, DecodeError


class Request(NamedTuple):
    """A request as it was read."""

    method: str
    target: str
    content_type: str
    body: bytes

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def parameters(self) -> Mapping[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))

    @property
    def is_watch(self) -> bool:
        return self.parameters.get("watch") == "true"

    @property
    def is_list(self) -> bool:
        """Whether all objects of a kind are requested, also as the first events of a watch."""
        path = parse_path(urlsplit(self.target).path)
        has_name = path is None or bool(path.name)
        is_resumed = self.is_watch and "sendInitialEvents" not in self.parameters
        return self.method == "GET" and not has_name and not is_resumed


def read_request(raw: bytes) -> Request:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    return Request(method, target, headers.get("Content-Type", ""), body)


class WireServer:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self._served = cluster.served
        verbs: Final = Verbs(cluster, clock)
        self._streams = WatchStreams(cluster, clock)
        self._subresources = Subresources(cluster, clock, verbs, Authentication("", cluster, clock))
        self._verbs = {
            "get": verbs.get,
            "list": verbs.list,
            "create": verbs.create,
            "update": verbs.update,
            "patch": verbs.patch,
            "delete": verbs.delete,
        }

    def answer(self, request: Request) -> ApiResponse | ServedWatch:
        try:
            asked = self._object_request(request)
        except ApiError as error:
            return failure_answer(error)
        try:
            return self._answer(request, asked)
        except (ApiError, DecodeError) as error:
            return failure_answer(error, resource=asked.served.resource, name=asked.path.name)

    def _object_request(self, request: Request) -> ObjectRequest:
        path = parse_path(urlsplit(request.target).path)
        if path is None:
            raise no_such_resource()
        return ObjectRequest(
            path=path,
            served=self._served.find(path.group, path.version, path.plural),
            query=Query(request.parameters),
            body=request.body,
            content_type=request.content_type,
        )

    def _answer(self, request: Request, asked: ObjectRequest) -> ApiResponse | ServedWatch:
        if request.is_watch:
            return self._streams.open(asked)
        if asked.path.subresource:
            return self._subresources.handle(request.method, asked)
        verb = verb_of(request.method, has_name=bool(asked.path.name), is_watch=False)
        handler = self._verbs.get(verb)
        if handler is None:
            raise refuse_verb()
        return handler(asked)
