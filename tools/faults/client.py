"""A client of the API server in memory, whose requests and watches go over a faulty link."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.client import Listing, ObjectEvent, ObjectWatch, PatchType
from kubestow.cluster.resources import Subresource
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

    async def _read(self, request: Coroutine[Any, Any, R]) -> R:
        return await self._request(request, is_write=False, is_decoded=True)

    async def _write(self, request: Coroutine[Any, Any, R]) -> R:
        return await self._request(request, is_write=True, is_decoded=True)

    async def _post(self, request: Coroutine[Any, Any, R]) -> R:
        """A write whose answer is not decoded."""
        return await self._request(request, is_write=True, is_decoded=False)

    async def _request(
        self, request: Coroutine[Any, Any, R], *, is_write: bool, is_decoded: bool
    ) -> R:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(request, is_write=is_write, is_decoded=is_decoded)
        except TimeoutError as error:
            raise UnreachableError("no answer in time") from error

    async def _send(
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

    async def get(self, cls: type[T], namespace: str, name: str) -> T:
        return await self._read(super().get(cls, namespace, name))

    async def list(
        self,
        cls: type[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> Sequence[T]:
        return await self._read(
            super().list(
                cls,
                namespace=namespace,
                field_selector=field_selector,
                label_selector=label_selector,
            )
        )

    async def list_and_watch(
        self,
        cls: type[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        resource_version: str = "",
    ) -> Listing[T]:
        select = {"field_selector": field_selector, "label_selector": label_selector}

        async def list_first() -> Listing[T]:
            listing = await super(FaultyClient, self).list_and_watch(
                cls, resource_version=resource_version, **select
            )
            return listing._replace(watch=self._over_link(cls, listing.watch))

        listing = await self._opened(list_first(), lambda listing: listing.watch)
        if self._link.faults.happens(Fault.SLOW_LIST):
            listing.watch.close()
            await self._await_pages()
            # The version of the first page may be too old by now.
            watch = await super().watch(cls, resource_version=listing.resource_version, **select)
            listing = listing._replace(watch=self._over_link(cls, watch))
        self._lossy.discard(cls)
        return listing

    async def _await_pages(self) -> None:
        """The pages of a list come one after the other, all as of the version of the first."""
        page_s = SLOW_LIST_S * (1 + 3 * self._link.faults.rng.random()) / SLOW_LIST_PAGES
        for _ in range(SLOW_LIST_PAGES):
            await asyncio.sleep(page_s)
            await self._link.travel()

    async def watch(
        self,
        cls: type[T],
        *,
        resource_version: str,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> ObjectWatch[T]:
        async def open_first() -> FaultyWatch:
            watch = await super(FaultyClient, self).watch(
                cls,
                resource_version=resource_version,
                namespace=namespace,
                field_selector=field_selector,
                label_selector=label_selector,
            )
            return self._over_link(cls, watch)

        watch = await self._opened(open_first(), lambda watch: watch)
        if cls in self._lossy:
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
            return await self._read(note())
        except BaseException:
            request.close()
            for answer in opened:
                watch_of(answer).close()
            raise

    async def create(self, new: T) -> T:
        return await self._write(super().create(new))

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
        return await self._write(
            super().patch(cls, namespace, name, patch, patch_type, subresource=subresource)
        )

    async def delete(
        self,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        await self._post(
            super().delete(cls, namespace, name, uid=uid, grace_period_s=grace_period_s)
        )

    async def bind(self, pod: Pod, node_name: str) -> None:
        with self._link.under_way(pod.metadata.uid):
            self._hooks.binding_sent(pod, node_name)
            await self._post(super().bind(pod, node_name))
            self._hooks.binding_confirmed(pod, node_name)

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        await self._post(
            super().patch_pod_status(
                pod, condition=condition, nominated_node_name=nominated_node_name
            )
        )

    async def delete_pod(self, pod: Pod) -> None:
        await self._post(super().delete_pod(pod))

    async def create_event(self, event: Event) -> None:
        await self._post(super().create_event(event))

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
