"""Answers the requests of a scheduler, to the API server and to extenders, as a recording says."""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import NamedTuple, TypeVar

from kubestow import errors
from kubestow.api.coordination import Event
from kubestow.api.decode import decode_json
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.client import Listing, ObjectWatch, PatchType
from kubestow.cluster.http.proxy import Proxy
from kubestow.cluster.http.tls import TlsContexts
from kubestow.cluster.resources import Subresource
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


class ReplayClient:
    """Requests wait until the recording has come to their answer.

    A request without an answer was given up, and waits for that again. With `answers_all` it was
    not made at all when it was recorded, because the scheduler decides otherwise: it is answered at
    once, as if it had been carried out.
    """

    host = "the recording"

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

    async def _object(self, request: str, cls: type[T], namespace: str, name: str) -> T | None:
        answer = await self._answer(RequestKey(request, cls.__name__, namespace, name))
        return None if answer is None else decode_json(cls, answer.text)

    async def _of_pod(self, request: str, pod: Pod) -> None:
        metadata = pod.metadata
        await self._answer(RequestKey(request, Pod.__name__, metadata.namespace, metadata.name))

    def _known(self, cls: type[T], namespace: str, name: str) -> T:
        known = self._objects.store(cls).get(namespace, name)
        if known is None:
            raise NotFoundError(f'{cls.__name__} "{name}" not found')
        return known

    # --- the requests of a scheduler ---

    async def get(self, cls: type[T], namespace: str, name: str) -> T:
        answer = await self._object("get", cls, namespace, name)
        return answer if answer is not None else self._known(cls, namespace, name)

    async def create(self, new: T) -> T:
        metadata = new.metadata
        answer = await self._object("create", type(new), metadata.namespace, metadata.name)
        return answer if answer is not None else new

    async def update(self, old: T, new: T, *, subresource: Subresource = "") -> T:
        metadata = new.metadata
        answer = await self._object("update", type(new), metadata.namespace, metadata.name)
        return answer if answer is not None else new

    async def patch(
        self,
        cls: type[T],
        namespace: str,
        name: str,
        patch: JsonObject,
        patch_type: PatchType = "strategic",
        *,
        subresource: Subresource = "",
    ) -> T:
        answer = await self._object("patch", cls, namespace, name)
        return answer if answer is not None else self._known(cls, namespace, name)

    async def delete(
        self,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        await self._answer(RequestKey("delete", cls.__name__, namespace, name))

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self._of_pod("bind", pod)

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        await self._of_pod("patch_pod_status", pod)

    async def delete_pod(self, pod: Pod) -> None:
        await self._of_pod("delete_pod", pod)

    async def create_event(self, event: Event) -> None:
        pass

    # --- what only informers ask for; there are none ---

    async def is_served(self, cls: type[ApiObject]) -> bool:
        return True

    async def list(
        self,
        cls: type[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> Sequence[T]:
        raise ApiError("a recording has no lists")

    async def list_and_watch(
        self,
        cls: type[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        resource_version: str = "",
    ) -> Listing[T]:
        raise ApiError("a recording has no lists")

    async def watch(
        self,
        cls: type[T],
        *,
        resource_version: str,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> ObjectWatch[T]:
        raise ApiError("a recording has no watches")


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
