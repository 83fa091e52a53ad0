"""The connection of one process to the API server, on which faults happen."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

import numpy as np

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.client import Listing, ObjectEvent, ObjectWatch, PatchType
from kubestow.cluster.resources import Subresource
from kubestow.errors import ApiError, ConflictError, GoneError, UnreachableError

T = TypeVar("T", bound=ApiObject)
R = TypeVar("R")

# How long a request or an answer travels without any fault.
LATENCY_S: Final = 0.002
SLOW_S: Final = 3.0


class Fault(StrEnum):
    """What can happen to a request, an answer or a watch."""

    BUSY = "429"
    ERROR = "500"
    CONFLICT = "409"
    DROPPED = "connection closed before the request arrived"
    ANSWER_LOST = "answer lost after the write"
    SLOW = "slow answers"
    WATCH_CLOSED = "watch closed"
    WATCH_CUT = "watch cut in the middle of a batch"
    WATCH_GONE = "410 on a watch"
    WATCH_DELAYED = "watch delayed"
    WATCH_REPEATED = "watch events repeated"


REQUEST_FAULTS: Final = (
    Fault.BUSY,
    Fault.ERROR,
    Fault.CONFLICT,
    Fault.DROPPED,
    Fault.ANSWER_LOST,
    Fault.SLOW,
)


class Link:
    """The network between one process and the server: which faults happen, how often."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.name = name
        self.rates: dict[Fault, float] = {}
        # Fault → how often it happened.
        self.counts: dict[Fault, int] = {}
        self._rng = rng
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_cut(self) -> bool:
        return not self._open.is_set()

    def cut(self) -> None:
        """Nothing arrives until `mend`."""
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def happens(self, fault: Fault) -> bool:
        rate = self.rates.get(fault, 0.0)
        if not rate or self._rng.random() >= rate:
            return False
        self.counts[fault] = self.counts.get(fault, 0) + 1
        return True

    async def travel(self) -> None:
        """Wait as long as a message takes; a message on a cut link is lost when it is mended."""
        delay_s = LATENCY_S * (0.5 + self._rng.random())
        if self.happens(Fault.SLOW):
            delay_s += SLOW_S * self._rng.random()
        await asyncio.sleep(delay_s)
        if self.is_cut:
            await self._open.wait()
            raise UnreachableError("connection reset by peer")

    async def watch_travels(self) -> None:
        """Events are not lost, since the informer repeats its watch; they wait."""
        delay_s = LATENCY_S * (0.5 + self._rng.random())
        if self.happens(Fault.WATCH_DELAYED):
            delay_s += SLOW_S * self._rng.random()
        await asyncio.sleep(delay_s)
        await self._open.wait()


class FaultyWatch:
    """A watch over a link."""

    def __init__(self, watch: ObjectWatch[Any], link: Link) -> None:
        self._watch = watch
        self._link = link
        self._is_broken = False

    @property
    def is_closed(self) -> bool:
        return self._is_broken or self._watch.is_closed

    async def next_batch(self) -> Sequence[ObjectEvent[Any]]:
        if self._is_broken:
            return []
        batch = list(await self._watch.next_batch())
        await self._link.watch_travels()
        if self._link.happens(Fault.WATCH_GONE):
            self.close()
            raise GoneError("too old resource version")
        if self._link.happens(Fault.WATCH_CLOSED):
            self.close()
            return []
        if self._link.happens(Fault.WATCH_CUT):
            self.close()
            return batch[: len(batch) // 2]
        if self._link.happens(Fault.WATCH_REPEATED):
            return [event for event in batch for _ in range(2)]
        return batch

    def close(self) -> None:
        self._is_broken = True
        self._watch.close()


class FaultyClient(MemoryClient):
    """A client whose requests go over a link."""

    def __init__(
        self,
        cluster: MemoryCluster,
        link: Link,
        on_bind: Callable[[Pod, str], None],
        *,
        timeout_s: float | None = None,
    ) -> None:
        """`on_bind` is called when a binding is sent."""
        super().__init__(cluster)
        self._link = link
        self._on_bind = on_bind
        self._timeout_s = timeout_s
        self._watches: list[FaultyWatch] = []

    def close_watches(self) -> None:
        """The process is gone, and its connections with it."""
        for watch in self._watches:
            watch.close()

    async def _read(self, request: Coroutine[Any, Any, R]) -> R:
        return await self._request(request, is_write=False)

    async def _write(self, request: Coroutine[Any, Any, R]) -> R:
        return await self._request(request, is_write=True)

    async def _request(self, request: Coroutine[Any, Any, R], *, is_write: bool) -> R:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(request, is_write=is_write)
        except TimeoutError as error:
            raise UnreachableError("no answer in time") from error

    async def _send(self, request: Coroutine[Any, Any, R], *, is_write: bool) -> R:
        link = self._link
        try:
            await link.travel()
            if link.happens(Fault.DROPPED):
                raise UnreachableError("connection reset by peer")
            if link.happens(Fault.BUSY):
                raise ApiError("too many requests", code=429, reason="TooManyRequests")
            if link.happens(Fault.ERROR):
                raise ApiError("internal error")
            if is_write and link.happens(Fault.CONFLICT):
                raise ConflictError("the object has been modified")
            result = await request
        finally:
            request.close()
        if is_write and link.happens(Fault.ANSWER_LOST):
            raise UnreachableError("connection reset by peer")
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
        listing = await self._read(
            super().list_and_watch(
                cls,
                field_selector=field_selector,
                label_selector=label_selector,
                resource_version=resource_version,
            )
        )
        return listing._replace(watch=self._over_link(listing.watch))

    async def watch(
        self,
        cls: type[T],
        *,
        resource_version: str,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> ObjectWatch[T]:
        watch = await self._read(
            super().watch(
                cls,
                resource_version=resource_version,
                namespace=namespace,
                field_selector=field_selector,
                label_selector=label_selector,
            )
        )
        return self._over_link(watch)

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
        await self._write(
            super().delete(cls, namespace, name, uid=uid, grace_period_s=grace_period_s)
        )

    async def bind(self, pod: Pod, node_name: str) -> None:
        self._on_bind(pod, node_name)
        await self._write(super().bind(pod, node_name))

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        await self._write(
            super().patch_pod_status(
                pod, condition=condition, nominated_node_name=nominated_node_name
            )
        )

    async def delete_pod(self, pod: Pod, *, same_uid: bool = False) -> None:
        await self._write(super().delete_pod(pod, same_uid=same_uid))

    async def create_event(self, event: Event) -> None:
        await self._write(super().create_event(event))

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        """An event about the lease: travels, and is not kept."""
        await self._link.travel()
        return document

    async def get_document(self, path: str) -> JsonObject:
        raise UnreachableError("no reviews here")

    def _over_link(self, watch: ObjectWatch[T]) -> FaultyWatch:
        faulty = FaultyWatch(watch, self._link)
        self._watches = [known for known in self._watches if not known.is_closed]
        self._watches.append(faulty)
        return faulty
