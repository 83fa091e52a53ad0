"""A client of the API server in memory, whose requests and watches go over a faulty link."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.client import Listing, ObjectEvent, ObjectWatch, update_patch
from kubestow.cluster.requests import (
    BindPod,
    IsServed,
    ListAndWatch,
    Patch,
    Request,
    Update,
    WatchObjects,
)
from kubestow.errors import ApiError, ConflictError, GoneError, UnreachableError
from tools.faults.fault import Fault
from tools.faults.link import Link

T = TypeVar("T", bound=ApiObject)
R = TypeVar("R")

# A slow list has this many pages and takes this long, or up to four times as long.
SLOW_LIST_PAGES: Final = 4
SLOW_LIST_S: Final = 12.0
# How long a watch goes on after it has lost an event, at most.
LOSS_UNNOTICED_S: Final = 20.0


class ClientHooks(NamedTuple):
    """What is called when the client sends a binding, when the server has confirmed it, when an
    event was lost that is about this node, and when an invariant of requests does not hold."""

    binding_sent: Callable[[Pod, str], None]
    binding_confirmed: Callable[[Pod, str], None]
    event_lost: Callable[[str], None]
    report: Callable[[str, str], None]


class FaultyWatch:
    """A watch over a link.

    An API server loses an event only together with its history (it was restored from a backup, a
    cache of it started anew). So a watch that has lost one ends with 410, and cannot be resumed.
    """

    def __init__(self, watch: ObjectWatch[Any], link: Link, lost: Callable[[Any], None]) -> None:
        """`lost` is called with the object of an event that does not arrive."""
        self._watch = watch
        self._link = link
        self._lost = lost
        self._is_broken = False
        self._has_expired = False

    @property
    def is_closed(self) -> bool:
        return self._is_broken or self._watch.is_closed

    async def next_batch(self) -> Sequence[ObjectEvent[Any]]:
        while not self._is_broken:
            batch = list(await self._watch.next_batch())
            await self._link.watch_travels()
            batch = self._disturbed(batch)
            if batch or self.is_closed:
                return batch
        return []

    def _disturbed(self, batch: list[ObjectEvent[Any]]) -> list[ObjectEvent[Any]]:
        """What arrives of a batch."""
        faults = self._link.faults
        if self._has_expired or faults.happens(Fault.WATCH_GONE):
            self.close()
            raise GoneError("too old resource version")
        if faults.happens(Fault.WATCH_CLOSED):
            self.close()
            return []
        if faults.happens(Fault.WATCH_CUT):
            self.close()
            return batch[: len(batch) // 2]
        if faults.happens(Fault.WATCH_REPEATED):
            return [event for event in batch for _ in range(2)]
        if batch and faults.happens(Fault.WATCH_LOST):
            self._lose(batch)
        return batch

    def close(self) -> None:
        self._is_broken = True
        self._watch.close()

    def _lose(self, batch: list[ObjectEvent[Any]]) -> None:
        rng = self._link.faults.rng
        self._lost(batch.pop(int(rng.integers(len(batch)))).object)
        delay_s = LOSS_UNNOTICED_S * float(rng.random())
        asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._has_expired = True
        self._watch.close()


class FaultyClient(MemoryClient):
    """A client whose requests go over a link."""

    def __init__(
        self,
        cluster: MemoryCluster,
        link: Link,
        hooks: ClientHooks,
        *,
        timeout_s: float | None = None,
    ) -> None:
        super().__init__(cluster)
        self._link = link
        self._hooks = hooks
        self._timeout_s = timeout_s
        self._watches: list[FaultyWatch] = []
        # Kinds of which an event was lost since the last list: their watches cannot be resumed.
        self._lossy: set[type[ApiObject]] = set()

    def disconnect(self) -> None:
        """The process is gone, and its connections with it."""
        for watch in self._watches:
            watch.close()

    async def _request(
        self, request: Coroutine[Any, Any, R], *, is_write: bool, is_decoded: bool
    ) -> R:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._carry(request, is_write=is_write, is_decoded=is_decoded)
        except TimeoutError as error:
            raise UnreachableError("no answer in time") from error

    async def _carry(
        self, request: Coroutine[Any, Any, R], *, is_write: bool, is_decoded: bool
    ) -> R:
        link = self._link
        faults = link.faults
        try:
            await link.travel()
            if faults.happens(Fault.DROPPED):
                raise UnreachableError("connection reset by peer")
            if faults.happens(Fault.BUSY):
                raise ApiError("too many requests", code=429, reason="TooManyRequests")
            if faults.happens(Fault.ERROR):
                raise ApiError("internal error")
            if is_write and faults.happens(Fault.CONFLICT):
                raise ConflictError("the object has been modified")
            result = await request
        finally:
            request.close()
        if is_write and faults.happens(Fault.ANSWER_LOST):
            raise UnreachableError("connection reset by peer")
        if is_decoded and faults.happens(Fault.TRUNCATED):
            raise ApiError("the answer of the server is not JSON: input data was truncated")
        await link.travel()
        return result

    # --- the requests ---

    async def send(self, request: Request) -> Any:
        match request:
            case IsServed():
                return self.answer(request)
            case ListAndWatch():
                return await self._list_over_link(request)
            case WatchObjects():
                return await self._watch_over_link(request)
            case Update(new, old, subresource):
                patch = update_patch(old, new)
                if not patch:
                    return old
                return await self.send(
                    Patch(request.kind, *request.key, patch, "merge", subresource)
                )
            case BindPod(pod, node_name):
                with self._link.under_way(pod.metadata.uid, node_name):
                    self._hooks.binding_sent(pod, node_name)
                    await self._answered(request)
                    self._hooks.binding_confirmed(pod, node_name)
            case _:
                return await self._answered(request)

    async def _answered(self, request: Request) -> Any:
        return await self._request(
            super().send(request), is_write=request.is_write, is_decoded=request.is_decoded
        )

    async def _list_over_link(self, request: ListAndWatch) -> Listing[Any]:
        cls = request.cls

        async def list_first() -> Listing[Any]:
            listing: Listing[Any] = self.answer(request)
            return listing._replace(watch=self._over_link(cls, listing.watch))

        listing = await self._opened(list_first(), lambda listing: listing.watch)
        if self._link.faults.happens(Fault.SLOW_LIST):
            listing.watch.close()
            await self._await_pages()
            # The version of the first page may be too old by now.
            watch = self.answer(
                WatchObjects(
                    cls,
                    listing.resource_version,
                    field_selector=request.field_selector,
                    label_selector=request.label_selector,
                )
            )
            listing = listing._replace(watch=self._over_link(cls, watch))
        self._lossy.discard(cls)
        return listing

    async def _await_pages(self) -> None:
        """The pages of a list come one after the other, all as of the version of the first."""
        page_s = SLOW_LIST_S * (1 + 3 * self._link.faults.rng.random()) / SLOW_LIST_PAGES
        for _ in range(SLOW_LIST_PAGES):
            await asyncio.sleep(page_s)
            await self._link.travel()

    async def _watch_over_link(self, request: WatchObjects) -> FaultyWatch:
        async def open_first() -> FaultyWatch:
            return self._over_link(request.cls, self.answer(request))

        watch = await self._opened(open_first(), lambda watch: watch)
        if request.cls in self._lossy:
            watch.close()
            raise GoneError("too old resource version")
        return watch

    async def _opened(
        self, request: Coroutine[Any, Any, R], watch_of: Callable[[R], ObjectWatch[Any]]
    ) -> R:
        """The answer to a request that opens a watch, which is closed if the answer is lost."""
        opened: list[R] = []

        async def note() -> R:
            opened.append(await request)
            return opened[0]

        try:
            return await self._request(note(), is_write=False, is_decoded=True)
        except BaseException:
            request.close()
            for answer in opened:
                watch_of(answer).close()
            raise

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        """An event about the lease: travels, and is not kept."""
        await self._link.travel()
        return document

    async def get_document(self, path: str) -> JsonObject:
        raise UnreachableError("no reviews here")

    def _over_link(self, cls: type[T], watch: ObjectWatch[T]) -> FaultyWatch:
        def lost(found: ApiObject) -> None:
            self._lossy.add(cls)
            is_pod = isinstance(found, Pod)
            self._hooks.event_lost(found.spec.node_name if is_pod else found.metadata.name)

        faulty = FaultyWatch(watch, self._link, lost)
        self._watches = [known for known in self._watches if not known.is_closed]
        self._watches.append(faulty)
        return faulty
