"""Answers the requests of a scheduler, to the API server and to extenders, as a recording says."""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from kubestow import errors
from kubestow.api.decode import decode_json
from kubestow.api.meta import ApiObject
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.proxy import Proxy
from kubestow.cluster.http.tls import TlsContexts
from kubestow.cluster.requests import (
    Create,
    CreateEvent,
    IsServed,
    ListAndWatch,
    ListObjects,
    Request,
    Update,
    WatchObjects,
)
from kubestow.engine.extenders import ExtenderChain, HttpExtender
from kubestow.engine.extenders.post import PostResponse
from kubestow.errors import ApiError, ExtenderError, NotFoundError, UnreachableError
from kubestow.recording.format import Answer, Posted, Refusal
from kubestow.recording.posts import checksum_of
from kubestow.redaction import without_secrets

T = TypeVar("T", bound=ApiObject)


class RequestKey(NamedTuple):
    request: str
    kind: str
    namespace: str
    name: str


def key_of(answer: Answer) -> RequestKey:
    return RequestKey(answer.request, answer.kind, answer.namespace, answer.name)


class ReplayClient(ClusterClient):
    """Requests wait until the recording has come to their answer.

    A request without an answer was given up, and waits for that again. With `answers_all` it was
    not made at all when it was recorded, because the scheduler decides otherwise: it is answered at
    once, as if it had been carried out.
    """

    def __init__(
        self, objects: ClusterObjects, answers: Iterable[RequestKey], *, answers_all: bool
    ) -> None:
        self._objects = objects
        self._answers_all = answers_all
        # How many answers of each are still to come.
        self._coming = Counter(answers)
        self._early: defaultdict[RequestKey, deque[Answer]] = defaultdict(deque)
        # In the order in which they were made.
        self._waiting: defaultdict[RequestKey, list[asyncio.Future[Answer]]] = defaultdict(list)

    @property
    def host(self) -> str:
        return "the recording"

    def deliver(self, answer: Answer) -> None:
        """The recording has come to this answer."""
        key = key_of(answer)
        self._coming[key] -= 1
        waiting = self._unanswered(key)
        if waiting:
            # If fewer requests were made than recorded, the last one gets the answer.
            waiting[min(answer.position, len(waiting) - 1)].set_result(answer)
        else:
            self._early[key].append(answer)

    def _unanswered(self, key: RequestKey) -> "list[asyncio.Future[Answer]]":
        return [future for future in self._waiting[key] if not future.done()]

    async def _answer(self, key: RequestKey) -> Answer | None:
        """None if the recording has no answer; raises what it says."""
        early = self._early[key]
        if early:
            answer = early.popleft()
        elif not self._answers_all or self._coming[key] > len(self._unanswered(key)):
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            waiting = self._waiting[key]
            waiting.append(future)
            try:
                answer = await future
            finally:
                waiting.remove(future)
        else:
            return None
        if answer.refusal is not None:
            raise error_of(answer.refusal)
        return answer

    async def send(self, request: Request) -> Any:
        match request:
            case CreateEvent():
                return None
            # What only informers ask for; there are none.
            case IsServed():
                return True
            case ListObjects() | ListAndWatch() | WatchObjects():
                raise ApiError("a recording has no lists and no watches")
            case _:
                pass
        kind = request.kind
        answer = await self._answer(RequestKey(request.verb, kind.__name__, *request.key))
        if not request.is_decoded:
            return None
        if answer is not None:
            return decode_json(kind, answer.text)
        # As if it had been carried out.
        if isinstance(request, Create | Update):
            return request.new
        return self._known(kind, *request.key)

    def _known(self, cls: type[T], namespace: str, name: str) -> T:
        known = self._objects.store(cls).get(namespace, name)
        if known is None:
            raise NotFoundError(f'{cls.__name__} "{name}" not found')
        return known


def error_of(refusal: Refusal) -> ApiError:
    """The error as it was raised."""
    if refusal.error == UnreachableError.__name__:
        match refusal.cause:
            case "refused" | "broken off" as cause:
                return UnreachableError(refusal.message, cause=cause)
            case _:
                return UnreachableError(refusal.message)
    cls = getattr(errors, refusal.error, ApiError)
    if not (isinstance(cls, type) and issubclass(cls, ApiError)):
        cls = ApiError
    return cls(refusal.message, code=refusal.code, reason=refusal.reason)


class RecordedPosts:
    """In place of `post_json`: the answers to equal requests come in their order."""

    def __init__(self, answers: Iterable[Posted]) -> None:
        self._answers: defaultdict[int, deque[Posted]] = defaultdict(deque)
        for answer in answers:
            self._answers[answer.request].append(answer)

    def __call__(
        self,
        url: str,
        body: bytes,
        *,
        timeout_s: float,
        body_bytes_max: int,
        tls: TlsContexts,
        proxy: Proxy | None,
    ) -> "Future[PostResponse]":
        future: Future[PostResponse] = Future()
        answers = self._answers[checksum_of(url, body)]
        if not answers:
            future.set_exception(
                ExtenderError(
                    f'Post "{without_secrets(url)}": this request is not in the recording'
                )
            )
            return future
        answer = answers.popleft()
        if answer.error:
            future.set_exception(ExtenderError(answer.error))
        else:
            future.set_result(PostResponse(answer.code, answer.text))
        return future


def replay_posts(extenders: ExtenderChain, posts: RecordedPosts) -> None:
    """Let these extenders answer from the recording."""
    for extender in extenders.extenders:
        if isinstance(extender, HttpExtender):
            extender.post = posts
