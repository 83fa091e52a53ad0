"""The client of a real API server, over HTTP.

Lists come as the first events of a watch where the server can do that, and in pages where it cannot
(spec 09 §4.3). Answers that are not used (to a binding, a status, an event) are not decoded.

An object that cannot be decoded is skipped in lists and watches (`undecodable`). Requested by name,
it is an `ApiError`.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import numpy as np

from kubestow.api.coordination import Event, Lease
from kubestow.api.decode import UNREADABLE, decode_json, encode_json, is_map, quoted
from kubestow.api.deep_json import read_json
from kubestow.api.meta import ApiObject, JsonObject, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.cluster.client import PATCH_TYPES, ClusterClient, Listing, update_patch
from kubestow.cluster.http.error_response import TOO_LARGE_VERSION
from kubestow.cluster.http.pages import ListPage, decode_page
from kubestow.cluster.http.session import ApiSession, serves
from kubestow.cluster.http.undecodable import UndecodableObjects
from kubestow.cluster.http.watch_stream import WatchFrame, WatchStream
from kubestow.cluster.pod_status import pod_status_patch
from kubestow.cluster.requests import (
    BindPod,
    Create,
    CreateEvent,
    Delete,
    DeletePod,
    Get,
    IsServed,
    ListAndWatch,
    ListObjects,
    Patch,
    PatchPodStatus,
    PatchType,
    Request,
    Update,
    WatchObjects,
)
from kubestow.cluster.resources import (
    EVENTS,
    PODS,
    ApiResource,
    ResourceTable,
    Subresource,
    client_resources,
)
from kubestow.errors import ApiError, ConflictError, DecodeError, GoneError, UnreachableError

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)

PAGE_SIZE: Final = 500
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
# Spec 09 §4.3: a watch is requested for 300 s and a random part of another 300 s.
WATCH_S_MIN: Final = 300
WATCH_GRACE_S: Final = 30.0  # beyond that, for the server to end it itself
# Spec 09 §4.6: a status is sent up to four times, these delays and up to a tenth more apart.
STATUS_DELAYS_S: Final = (0.01, 0.05, 0.25)
_STATUS_RETRY_CODES: Final = (409, 500, 503)

_PATCH_HEADERS: Final = {patch_type: name for name, patch_type in PATCH_TYPES.items()}
# Leases may be updated but not patched by a scheduler's usual role (spec 09 §4.7), and a whole spec
# is written each time anyway.
_REPLACED_AS_A_WHOLE: Final = (Lease,)


class HttpClient(ClusterClient):
    """A client of the server that the session talks to."""

    def __init__(
        self,
        session: ApiSession,
        *,
        rng: np.random.Generator,
        resources: ResourceTable | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.session: Final = session
        self._rng = rng
        self._resources = resources or client_resources()
        self._sleep = sleep
        self._undecodable: Final = UndecodableObjects(session.observer)

    @property
    def host(self) -> str:
        return self.session.host

    async def send(self, request: Request) -> Any:
        match request:
            case BindPod(pod, node_name):
                await self._bind(pod, node_name)
            case PatchPodStatus(pod, condition, nominated_node_name):
                await self._patch_pod_status(
                    pod,
                    pod_status_patch(
                        pod, condition=condition, nominated_node_name=nominated_node_name
                    ),
                )
            case CreateEvent(event):
                path = list_path(EVENTS, event.metadata.namespace or "default")
                await self.session.request("POST", path, _body(event, EVENTS))
            case Get(cls, namespace, name):
                path = object_path(self._resource(cls), namespace, name)
                return _typed(cls, await self.session.request("GET", path))
            case Create(new):
                return await self._create(new)
            case Update(new, old, subresource):
                return await self._update(old, new, subresource)
            case Patch(cls, namespace, name, patch, patch_type, subresource):
                path = object_path(self._resource(cls), namespace, name, subresource)
                return _typed(cls, await self._send_patch(path, patch, patch_type))
            case Delete(cls, namespace, name, uid, grace_period_s):
                path = object_path(self._resource(cls), namespace, name)
                await self._delete(path, uid, grace_period_s)
            case DeletePod(pod):
                await self._delete(object_path(PODS, *request.key), pod.metadata.uid, None)
            case ListObjects(cls, namespace, field_selector, label_selector):
                selectors = _selectors(field_selector, label_selector)
                page = await self._list_pages(cls, namespace, selectors, resource_version="")
                return page.items
            case ListAndWatch(cls, field_selector, label_selector, resource_version):
                selectors = _selectors(field_selector, label_selector)
                return await self._list_and_watch(cls, selectors, resource_version)
            case WatchObjects(cls, resource_version, namespace, field_selector, label_selector):
                selectors = _selectors(field_selector, label_selector)
                query = {"resourceVersion": resource_version, **selectors}
                return await self._open_watch(cls, query, namespace)
            case IsServed(cls):
                return await serves(self.session, self._resource(cls))
            case _:
                raise NotImplementedError(request.verb)

    async def get_document(self, path: str) -> JsonObject:
        """The document at a path, such as a list of the resources the server serves."""
        return _document(await self.session.request("GET", path))

    async def server_version(self) -> str:
        """What the server reports, such as v1.37.0; empty if it reports none."""
        version = (await self.get_document("/version")).get("gitVersion")
        return version if isinstance(version, str) else ""

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        """Post a document to a path and return the answer: reviews, events of the older kind."""
        body = msgspec.json.encode(document)
        return _document(await self.session.request("POST", path, body))

    def close(self) -> None:
        self.session.close()

    # --- Reading ----------------------------------------------------------------------------------

    async def _list_and_watch(
        self, cls: type[T], selectors: dict[str, str], resource_version: str
    ) -> Listing[T]:
        """All objects, at least as new as the version given, and a watch of what follows.

        GoneError if the server cannot compare with that version: it no longer has it, or has not
        reached it. Version "0" accepts any version, so the server need not read its storage.
        """
        try:
            return await self._stream_all(cls, selectors, resource_version)
        except (GoneError, UnreachableError):
            raise
        except ApiError as error:
            if error.reason == TOO_LARGE_VERSION:
                raise GoneError(str(error)) from error
            if error.code == 429:
                raise
            logger.debug("cannot stream the list of %s: %s", cls.__name__, error)
        try:
            page = await self._list_pages(cls, "", selectors, resource_version=resource_version)
        except ApiError as error:
            if error.reason == TOO_LARGE_VERSION:
                raise GoneError(str(error)) from error
            raise
        version = page.metadata.resource_version
        watch = await self._open_watch(cls, {"resourceVersion": version, **selectors})
        undecoded = [(skipped.namespace, skipped.name) for skipped in page.skipped]
        return Listing(page.items, version, watch, undecoded)

    # --- Writing ----------------------------------------------------------------------------------

    async def _create(self, new: T) -> T:
        resource = self._resource(type(new))
        path = list_path(resource, new.metadata.namespace or _default_namespace(resource))
        return _typed(type(new), await self.session.request("POST", path, _body(new, resource)))

    async def _update(self, old: T, new: T, subresource: Subresource) -> T:
        cls, metadata = type(old), old.metadata
        resource = self._resource(cls)
        path = object_path(resource, metadata.namespace, metadata.name, subresource)
        if isinstance(old, _REPLACED_AS_A_WHOLE):
            return _typed(cls, await self.session.request("PUT", path, _body(new, resource)))
        patch = update_patch(old, new)
        if not patch:
            return old
        return _typed(cls, await self._send_patch(path, patch, "merge"))

    async def _delete(self, path: str, uid: str, grace_period_s: int | None) -> None:
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        await self.session.request("DELETE", path, msgspec.json.encode(options))

    async def _bind(self, pod: Pod, node_name: str) -> None:
        metadata = pod.metadata
        body = _ENCODE_BINDING(
            _Binding(
                _BindingMetadata(metadata.name, metadata.namespace, metadata.uid),
                _BindingTarget(node_name),
            )
        )
        await self.session.request(
            "POST", f"{object_path(PODS, metadata.namespace, metadata.name)}/binding", body
        )

    async def _patch_pod_status(self, pod: Pod, patch: JsonObject) -> None:
        """Repeated after a conflict or a server error; nothing is sent if nothing changes."""
        if not patch:
            return
        path = object_path(PODS, pod.metadata.namespace, pod.metadata.name, "status")
        for delay_s in STATUS_DELAYS_S:
            try:
                await self._send_patch(path, patch, "strategic")
                return
            except ApiError as error:
                if not _is_retriable(error):
                    raise
            await self._sleep(delay_s * (1.0 + 0.1 * self._rng.random()))
        await self._send_patch(path, patch, "strategic")

    # --- Steps ------------------------------------------------------------------------------------

    def _resource(self, cls: type[ApiObject]) -> ApiResource:
        return self._resources.of_type(cls)

    async def _send_patch(self, path: str, patch: JsonObject, patch_type: PatchType) -> bytes:
        return await self.session.request(
            "PATCH", path, msgspec.json.encode(patch), content_type=_PATCH_HEADERS[patch_type]
        )

    async def _stream_all(
        self, cls: type[T], selectors: dict[str, str], resource_version: str
    ) -> Listing[T]:
        """A list as the first events of a watch (spec 09 §4.3, step 1)."""
        query = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            **selectors,
        }
        if resource_version not in ("", "0"):
            query["resourceVersion"] = resource_version
        watch = await self._open_watch(cls, query)
        try:
            return await _collect(cls, watch)
        except BaseException:
            watch.close()
            raise

    async def _open_watch(
        self, cls: type[T], query: dict[str, str], namespace: str = ""
    ) -> WatchStream[T]:
        time_limit_s = WATCH_S_MIN + int(self._rng.random() * WATCH_S_MIN)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(time_limit_s),
            **query,
        }
        stream = WatchStream(cls, self._undecodable)
        connection = await self.session.stream(
            f"{list_path(self._resource(cls), namespace)}?{urlencode(query)}", stream
        )
        stream.attach(
            connection, self.session.end_stream, time_limit_s=time_limit_s + WATCH_GRACE_S
        )
        return stream

    async def _list_pages(
        self, cls: type[T], namespace: str, selectors: dict[str, str], *, resource_version: str
    ) -> ListPage[T]:
        """All objects, fetched page by page (step 2), as one page."""
        resource = self._resource(cls)
        path = list_path(resource, namespace)
        query = dict(selectors)
        if resource_version:
            query["resourceVersion"] = resource_version
        # A list at a certain version comes from the server's cache, which ignores pages.
        if resource_version in ("", "0"):
            query["limit"] = str(PAGE_SIZE)
        items: list[T] = []
        skipped: list[ObjectMeta] = []
        while True:
            try:
                raw = await self.session.request("GET", _with_query(path, query))
            except GoneError:
                if "continue" not in query:
                    raise
                # Collecting the pages took longer than the server keeps versions: list all at once.
                query = dict(selectors)
                if resource_version:
                    query["resourceVersion"] = resource_version
                items, skipped = [], []
                continue
            page = await decode_page(cls, raw, self._undecodable)
            items += (_with_kind(item, resource) for item in page.items)
            skipped += page.skipped
            if not page.metadata.continue_token:
                return ListPage(page.metadata, items, skipped)
            query["continue"] = page.metadata.continue_token
            # From here on the token contains the version.
            query.pop("resourceVersion", None)


def list_path(resource: ApiResource, namespace: str = "") -> str:
    """The path where the objects of a resource are listed and created."""
    group = f"/apis/{resource.group}" if resource.group else "/api"
    if not resource.namespaced or not namespace:
        return f"{group}/{resource.version}/{resource.plural}"
    return f"{group}/{resource.version}/namespaces/{_quoted(namespace)}/{resource.plural}"


def object_path(
    resource: ApiResource, namespace: str, name: str, subresource: Subresource = ""
) -> str:
    """The path of one object."""
    path = list_path(resource, namespace or _default_namespace(resource))
    path = f"{path}/{_quoted(name)}"
    return f"{path}/{subresource}" if subresource else path


def _quoted(name: str) -> str:
    """The name as a part of a path."""
    # Nearly all names consist of letters, digits, "-" and ".", which need no quotes.
    is_plain = name.isascii() and name.replace("-", "").replace(".", "").isalnum()
    return name if is_plain else quote(name, safe="")


def _default_namespace(resource: ApiResource) -> str:
    return "default" if resource.namespaced else ""


def _selectors(field_selector: str, label_selector: str) -> dict[str, str]:
    selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {name: value for name, value in selectors.items() if value}


def _with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _is_retriable(error: ApiError) -> bool:
    if isinstance(error, UnreachableError):
        return error.cause == "refused"
    if isinstance(error, ConflictError) and error.is_replaced:
        return False
    return error.code in _STATUS_RETRY_CODES


# --- Bodies -----------------------------------------------------------------------------------


class _BindingMetadata(msgspec.Struct, omit_defaults=True, gc=False):
    name: str
    namespace: str
    uid: str = ""


class _BindingTarget(msgspec.Struct, tag="Node", tag_field="kind", gc=False):
    name: str


class _Binding(msgspec.Struct, tag="Binding", tag_field="kind", rename="camel", gc=False):
    """The body of a binding (spec 09 §4.6, W1)."""

    metadata: _BindingMetadata
    target: _BindingTarget
    api_version: str = "v1"


_ENCODE_BINDING: Final = msgspec.json.Encoder().encode
# The server reads these times only with all six digits of the microseconds, which are not written
# when they are zero.
_WHOLE_MICRO_TIME: Final = re.compile(
    rb'("(?:eventTime|lastObservedTime|acquireTime|renewTime)":"[0-9-]+T[0-9:]+)Z"'
)


def _body(new: ApiObject, resource: ApiResource) -> bytes:
    raw = encode_json(_with_kind(new, resource))
    if isinstance(new, Event | Lease) and not _is_all_micro(new):
        raw = _WHOLE_MICRO_TIME.sub(rb'\1.000000Z"', raw)
    return raw


def _is_all_micro(new: Event | Lease) -> bool:
    """Whether all times have microseconds, as that of almost every event has."""
    if not isinstance(new, Event) or new.event_time is None:
        return False
    return new.series is None and new.event_time.microsecond != 0


def _with_kind(item: T, resource: ApiResource) -> T:
    """The object with its kind, which the items of a list lack."""
    if item.kind:
        return item
    return msgspec.structs.replace(item, api_version=resource.api_version, kind=resource.kind)


def _typed(cls: type[T], raw: bytes) -> T:
    try:
        return decode_json(cls, raw)
    except DecodeError as error:
        raise ApiError(f"the answer of the server: {error}") from error


def _document(raw: bytes) -> JsonObject:
    try:
        document = read_json(raw)
    except UNREADABLE as error:
        raise ApiError(f"the answer of the server is not JSON: {error}") from error
    if not is_map(document):
        raise ApiError(f"the answer of the server is {quoted(document)}, expected an object")
    return document


# --- Lists ------------------------------------------------------------------------------------


async def _collect(cls: type[T], watch: WatchStream[T]) -> Listing[T]:
    """Read the first events of a watch, up to the bookmark that ends the list."""
    items: dict[tuple[str, str], T] = {}
    undecoded: set[tuple[str, str]] = set()
    while batch := await watch.next_batch():
        for index, event in enumerate(batch):
            if _is_end_of_initial_events(event):
                watch.unread(batch[index + 1 :])
                return Listing([*items.values()], event.resource_version, watch, [*undecoded])
            metadata = event.object.metadata
            key = metadata.namespace, metadata.name
            match event.type:
                case "ADDED" | "MODIFIED":
                    items[key] = event.object
                    undecoded.discard(key)
                case "DELETED" | "VANISHED":
                    items.pop(key, None)
                    undecoded.discard(key)
                case "UNDECODED":
                    undecoded.add(key)
                case "BOOKMARK":
                    pass
    # A server ends the watch of a client that does not read fast enough, which a client that has
    # just started on a busy machine may not. A list in pages waits for its reader.
    raise ApiError(f"the watch of {cls.__name__} ended before the list was complete")


def _is_end_of_initial_events(event: WatchFrame[Any]) -> bool:
    if event.type != "BOOKMARK":
        return False
    return event.object.metadata.annotations.get(INITIAL_EVENTS_END) == "true"
