"""The paths below `/page/` (docs/reference/page.md).

Who may ask is decided before: by the scheduler's own port in `run`, by `local` in a demo. Without
`actions` nothing can be changed: there is no path for it.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from aiohttp import web

from kubestow.api.decode import UNREADABLE
from kubestow.api.meta import JsonObject
from kubestow.errors import ApiError, InputError
from kubestow.explain.history import AttemptHistory
from kubestow.http_port import read_body
from kubestow.web.assets import Assets
from kubestow.web.details import (
    ATTEMPTS_MAX,
    AttemptFilter,
    attempt_detail,
    find_attempt,
    find_attempts,
    find_node,
    find_object,
    find_pod,
    pod_detail,
)
from kubestow.web.feed import Feed
from kubestow.web.follower import PageFollower
from kubestow.web.groups import find_group, find_groups
from kubestow.web.hub import TooManyReadersError
from kubestow.web.node_search import TEXT_LENGTH_MAX, matching_nodes
from kubestow.web.picture import NOW, PageFacts, PastMoment, Picture, state_of
from kubestow.web.responses import (
    NOT_KEPT,
    accepts_gzip,
    encoded_answer,
    error_answer,
    gzipped,
    json_answer,
)
from kubestow.web.suggest import Suggested

PREFIX: Final = "/page/"
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
_NUMBER_DIGITS_MAX: Final = 16

T = TypeVar("T")


class Actions(Protocol):
    """What the forms of a demo do. Called on the scheduler's loop."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def templates(self) -> JsonObject:
        """What pods and nodes can be made of."""
        ...

    async def perform(self, name: str, body: JsonObject) -> JsonObject:
        """Do it; InputError or ApiError if that is not possible."""
        ...


# What would make a pod fit, by namespace and name; called on the scheduler's loop.
Suggest = Callable[[str, str], Suggested]


class PageRoutes:
    def __init__(
        self,
        feed: Feed,
        facts: PageFacts,
        assets: Assets,
        *,
        history: AttemptHistory,
        suggest: Suggest,
        actions: Actions | None = None,
        stream_s_max: float | None = None,
    ) -> None:
        """A stream ends after `stream_s_max`; browsers then connect again by themselves."""
        self._stream_s_max = stream_s_max
        self._feed = feed
        self._facts = facts
        self._assets = assets
        self._history = history
        self._suggest = suggest
        self._actions = actions

    async def handle(self, request: web.BaseRequest, prefix: str = PREFIX) -> web.StreamResponse:
        """Answer a request whose path begins with the prefix."""
        parts = [unquote(part) for part in request.rel_url.raw_path[len(prefix) :].split("/")]
        if parts[0] == "actions":
            return await self._act(request, parts[1:])
        if request.method not in ("GET", "HEAD"):
            return error_answer(405, f"{request.method} is not answered here, only GET")
        match parts:
            case ["state"]:
                return await self._state(request)
            case ["stream"]:
                return await self._stream(request)
            case ["pods", namespace, name]:
                return await self._pod(request, namespace, name)
            case ["pods", namespace, name, "suggestions"]:
                return await self._suggestions(namespace, name)
            case ["nodes"]:
                return await self._search(request)
            case ["nodes", name]:
                return await self._node(request, name)
            case [("pods" | "nodes") as kind, *key, "yaml"]:
                return await self._manifest(request, kind, key)
            case ["evictions"]:
                found = await self._ask(lambda: self._follower.evictions.newest_first())
                return json_answer({"evictions": found}, accepts_gzip=accepts_gzip(request))
            case ["groups"]:
                groups = await self._ask(lambda: find_groups(self._follower))
                return json_answer(groups, accepts_gzip=accepts_gzip(request))
            case ["groups", namespace, name]:
                return await self._group(request, namespace, name)
            case ["trends"]:
                return await self._trends(request)
            case ["attempts"]:
                return await self._attempts(request)
            case ["attempts", number]:
                return await self._attempt(request, number)
            case ["templates"] if self._actions is not None:
                return json_answer(self._actions.templates())
            case _:
                found = self._assets.answer(request, "/".join(parts))
                return found or error_answer(404, f'there is no "{request.path}"')

    # --- state and stream ---

    async def _state(self, request: web.BaseRequest) -> web.StreamResponse:
        moment = _moment(request)
        if moment is None:
            return error_answer(400, "at is a time in milliseconds, attempt the id of one")
        picture = await self._feed.picture(moment)
        if picture is None:
            return error_answer(404, "that moment is not kept; see span of the state")
        is_gzip = accepts_gzip(request)
        body = await asyncio.to_thread(_encoded_state, picture, self._facts, is_gzip)
        answer = encoded_answer(body)
        if is_gzip:
            answer.headers["Content-Encoding"] = "gzip"
        return answer

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        text = request.headers.get("Last-Event-ID") or request.query.get("since", "0")
        since = _number(text)
        if since is None:
            return error_answer(400, "since is the seq of a state or batch", where="since")
        try:
            with self._feed.hub.reading():
                return await self._send_stream(request, since)
        except TooManyReadersError:
            return error_answer(503, "too many pages are open; close one and try again")

    async def _send_stream(self, request: web.BaseRequest, since: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={**NOT_KEPT, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        frames = self._feed.frames(since)
        try:
            # How long a browser waits before it connects again.
            await response.write(b"retry: 1000\n\n")
            async with asyncio.timeout(self._stream_s_max):
                async for frame in frames:
                    await response.write(frame)
        except (ConnectionError, TimeoutError):
            pass  # The page was closed, or connects again.
        finally:
            await frames.aclose()
        return response

    # --- what is opened ---

    async def _pod(self, request: web.BaseRequest, namespace: str, name: str) -> web.StreamResponse:
        found = await self._ask(lambda: find_pod(self._follower, self._history, namespace, name))
        if found is None:
            return error_answer(404, f'there is no pod "{namespace}/{name}"')
        return json_answer(pod_detail(found), accepts_gzip=accepts_gzip(request))

    async def _suggestions(self, namespace: str, name: str) -> web.StreamResponse:
        found = await self._ask(lambda: self._suggest(namespace, name))
        return json_answer(found)

    async def _node(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        found = await self._ask(lambda: find_node(self._follower, name))
        if found is None:
            return error_answer(404, f'there is no node "{name}"')
        return json_answer(found, accepts_gzip=accepts_gzip(request))

    async def _group(
        self, request: web.BaseRequest, namespace: str, name: str
    ) -> web.StreamResponse:
        found = await self._ask(lambda: find_group(self._follower, namespace, name))
        if found is None:
            return error_answer(404, f'no pod is of a group "{namespace}/{name}"')
        return json_answer(found, accepts_gzip=accepts_gzip(request))

    async def _trends(self, request: web.BaseRequest) -> web.StreamResponse:
        begin, end = (_number(request.query.get(name, "0")) for name in ("begin", "end"))
        if begin is None or end is None:
            return error_answer(400, "begin and end are times in milliseconds", where="begin")
        found = await self._ask(
            lambda: self._follower.trends_between(begin, end or self._follower.now_ms())
        )
        return json_answer(found, accepts_gzip=accepts_gzip(request))

    async def _search(self, request: web.BaseRequest) -> web.StreamResponse:
        text = request.query.get("find", "")
        if len(text) > TEXT_LENGTH_MAX:
            return error_answer(
                400, f"a text has at most {TEXT_LENGTH_MAX} characters", where="find"
            )
        nodes = await self._ask(lambda: self._follower.scheduler.objects.nodes.list())
        # Objects never change, so another thread can read them.
        found = await asyncio.to_thread(matching_nodes, nodes, text)
        return json_answer({"names": found}, accepts_gzip=accepts_gzip(request))

    async def _manifest(
        self, request: web.BaseRequest, kind: str, key: list[str]
    ) -> web.StreamResponse:
        found = None
        if len(key) == (1 if kind == "nodes" else 2):
            found = await self._ask(lambda: find_object(self._follower, kind, *key))
        if found is None:
            return error_answer(404, f'there is no {kind[:-1]} "{"/".join(key)}"')
        from kubestow.web.manifests import manifest_text  # YAML is written when it is asked for.

        text = await asyncio.to_thread(manifest_text, found)
        return json_answer({"text": text}, accepts_gzip=accepts_gzip(request))

    async def _attempts(self, request: web.BaseRequest) -> web.StreamResponse:
        before, limit = request.query.get("before"), _number(request.query.get("limit", "200"))
        before_id = None if before is None else _number(before)
        texts = [request.query.get(name, "") for name in ("result", "namespace", "owner", "text")]
        if any(len(text) > TEXT_LENGTH_MAX for text in texts):
            return error_answer(400, f"a text has at most {TEXT_LENGTH_MAX} characters")
        if before is not None and before_id is None:
            return error_answer(400, "before is the id of an attempt", where="before")
        if not limit or limit > ATTEMPTS_MAX:
            return error_answer(400, f"limit is a number from 1 to {ATTEMPTS_MAX}", where="limit")
        wanted = AttemptFilter(before_id, *texts)
        found = await self._ask(lambda: find_attempts(self._follower, wanted, limit))
        return json_answer(found, accepts_gzip=accepts_gzip(request))

    async def _attempt(self, request: web.BaseRequest, text: str) -> web.StreamResponse:
        number = _number(text)
        found = None
        if number is not None:
            found = await self._ask(lambda: find_attempt(self._follower, number))
        if found is None:
            return error_answer(404, f'attempt "{text}" is not kept')
        return json_answer(attempt_detail(found), accepts_gzip=accepts_gzip(request))

    # --- actions ---

    async def _act(self, request: web.BaseRequest, parts: list[str]) -> web.StreamResponse:
        actions = self._actions
        if actions is None:
            return error_answer(404, "this page only shows; it has no actions")
        if len(parts) != 1 or parts[0] not in actions.names:
            return error_answer(404, f"there is no such action, only {', '.join(actions.names)}")
        if request.method != "POST":
            return error_answer(405, "actions are posted")
        if request.content_type != "application/json":
            return error_answer(415, "the body of an action is application/json")
        body = await _json_body(request)
        if isinstance(body, web.StreamResponse):
            return body
        await self._feed.start()
        try:
            answer = await self._feed.bridge.run_on_scheduler(actions.perform(parts[0], body))
        except InputError as error:
            return error_answer(400, str(error), where=error.where)
        except ApiError as error:
            return error_answer(error.code, str(error), where=", ".join(error.causes))
        return json_answer(answer)

    # --- the scheduler ---

    @property
    def _follower(self) -> PageFollower:
        return self._feed.follower

    async def _ask(self, find: Callable[[], T]) -> T:
        """Call a function on the scheduler's loop, which the page follows."""
        await self._feed.start()
        return await self._feed.bridge.run_on_scheduler(_called(find))


async def _called(find: Callable[[], T]) -> T:
    return find()


def _encoded_state(picture: Picture, facts: PageFacts, is_gzip: bool) -> bytes:
    body = msgspec.json.encode(state_of(picture, facts))
    return gzipped(body) if is_gzip else body


def _number(text: str) -> int | None:
    """A number as it stands in an address; None if it is none."""
    if text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS_MAX:
        return int(text)
    return None


def _moment(request: web.BaseRequest) -> PastMoment | None:
    """The moment that a request names, by default now; None if it is wrong."""
    names = [name for name in ("at", "attempt") if name in request.query]
    if not names:
        return NOW
    number = _number(request.query[names[0]])
    if number is None or len(names) > 1:
        return None
    return PastMoment(time_ms=number) if names[0] == "at" else PastMoment(attempt=number)


async def _json_body(request: web.BaseRequest) -> JsonObject | web.StreamResponse:
    try:
        raw = await read_body(request, bytes_max=BODY_BYTES_MAX)
    except TimeoutError:
        return error_answer(408, "the body did not arrive in time")
    if raw is None:
        return error_answer(413, f"the body is longer than {BODY_BYTES_MAX // 1024**2} MiB")
    try:
        return msgspec.json.decode(raw or b"{}", type=JsonObject)
    except UNREADABLE as error:
        return error_answer(400, f"the body is no JSON object: {error}")
