"""Informers: keep a store of objects up to date, and call handlers for each change.

An informer lists a resource once and watches it from then on. The store changes first, then each
handler is called, in order, one event after the other; between two events of a batch that takes
long the loop has its turn. When the server no longer has the version followed, it lists again and
reports objects that disappeared meanwhile as deletions whose final state is unknown.

    list ──► watch ──ended in time──► watch again from the last version ◄──┐
      ▲        └──410, error──► back off ──┐          └──busy──► back off ──┘
      └────────────────────────────────────┘

A kind that the server does not serve counts as empty, and is looked for from time to time. One that
was listed before stays as it is: its objects have not gone with an answer of 404.

An exception of a handler ends `run`: a scheduler that has missed an event must not go on.
Not here: what handlers do (`engine`), how a list is fetched (`client`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeGuard, TypeVar

import msgspec
import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.clock import Clock
from kubestow.cluster.client import CallingWatch, ClusterClient, ObjectEvent, ObjectWatch
from kubestow.cluster.failure_log import FailureLog
from kubestow.errors import ApiError, GoneError, UnreachableError

T = TypeVar("T", bound=ApiObject)

# Spec 03 §11.3: a pod that has ended leaves the watch, which looks like a deletion.
POD_FIELD_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"
SUCCEEDED_SELECTOR: Final = "status.phase=Succeeded"
# A watch that ends faster without a single event has not worked.
SHORT_WATCH_S: Final = 1.0
# How many objects of a list are handled between two turns of the event loop.
OBJECTS_PER_TURN: Final = 256
# How long objects are handled between two turns: users decide how much work one is.
TURN_S: Final = 0.01
# How often a kind is looked for that the server does not have: it may be upgraded.
LOOK_AGAIN_S: Final = 300.0


class Store(Protocol[T]):
    """What an informer needs of its store (`cache.objects.ObjectStore`)."""

    def get(self, namespace_or_name: str, name: str | None = None, /) -> T | None: ...

    def list(self) -> Sequence[T]: ...

    def put(self, new: T) -> T | None: ...

    def remove(self, namespace_or_name: str, name: str | None = None, /) -> T | None: ...


class Handler(NamedTuple, Generic[T]):
    """Functions to call after an event; those left out are not called.

    `on_delete` also gets whether the final state is unknown: the object is then the last one seen,
    not the one that was deleted.
    """

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T, bool], None] | None = None


class InformerStatistics(msgspec.Struct, frozen=True):
    has_synced: bool
    event_count: int
    list_count: int
    resource_version: str


class Informer(Generic[T]):
    """Follows one resource."""

    def __init__(
        self,
        client: ClusterClient,
        cls: type[T],
        store: Store[T],
        clock: Clock,
        *,
        rng: np.random.Generator,
        field_selector: str = "",
        label_selector: str = "",
        failures: FailureLog | None = None,
        gate: asyncio.Event | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`failures` is shared with other informers of the client. While the gate is not set,
        events wait."""
        self.cls: Final = cls
        self.store: Final = store
        self.has_synced = False
        self.is_listing = True
        self._client = client
        self._clock = clock
        self._field_selector = field_selector
        self._label_selector = label_selector
        self._failures = failures or FailureLog(clock, host=client.host)
        self._gate = gate
        self._sleep = sleep
        self._backoff = Backoff(rng, clock.monotonic_s())
        self._handlers: list[Handler[T]] = []
        self._synced = asyncio.Event()
        # Not set while a failed list or watch is to be repeated: the store falls behind.
        self._following = asyncio.Event()
        self._watch: ObjectWatch[T] | None = None
        # The version of the last list, and what was handled after it.
        self._listed_version = ""
        self._last_event: ObjectEvent[T] | None = None
        self._event_count = 0
        self._list_count = 0

    def add_handler(self, handler: Handler[T]) -> None:
        """Call the handler from now on. Handlers are added before the informer runs."""
        assert not self.has_synced, "this handler would miss what was listed already"
        self._handlers.append(handler)

    @property
    def _resource_version(self) -> str:
        """What the store is as of."""
        event = self._last_event
        return self._listed_version if event is None else event.resource_version

    def statistics(self) -> InformerStatistics:
        return InformerStatistics(
            has_synced=self.has_synced,
            event_count=self._event_count,
            list_count=self._list_count,
            resource_version=self._resource_version,
        )

    async def run(self) -> None:
        """Follow the resource until cancelled. Errors of the server are logged and retried."""
        try:
            while True:
                try:
                    await self._list_and_follow()
                except ApiError as error:
                    if await self._is_unserved(error):
                        await self._go_without(error)
                    else:
                        await self._back_off(error)
        finally:
            self._end_watch()

    async def wait_synced(self) -> None:
        """Return once the handlers have been called for all objects of the first list."""
        await self._synced.wait()

    async def wait_following(self) -> None:
        """Return once the store follows the server: listed, and the watch has not failed since."""
        await self._following.wait()

    async def _list_and_follow(self) -> None:
        await self._list()
        while True:
            assert self._watch is not None
            await self._follow(self._watch)
            self._watch = await self._watch_again()

    async def _is_unserved(self, error: ApiError) -> bool:
        """Whether a list failed because the server does not have the kind."""
        # Without rights on its group, which older roles lack, the answer is 403.
        if self._list_count or error.code not in (403, 404):
            return False
        try:
            return not await self._client.is_served(self.cls)
        except ApiError:
            return False  # it remains a failure of the list

    async def _go_without(self, error: ApiError) -> None:
        self._failures.failed(self.cls.__name__, "discover", error, delay_s=LOOK_AGAIN_S)
        self._set_synced()
        await self._sleep(LOOK_AGAIN_S)

    async def _watch_again(self) -> ObjectWatch[T]:
        while True:
            try:
                watch = await self._client.watch(
                    self.cls,
                    resource_version=self._resource_version,
                    field_selector=self._field_selector,
                    label_selector=self._label_selector,
                )
            except ApiError as error:
                if not _is_transient(error):
                    raise
                await self._back_off(error)
            else:
                self._failures.works(self.cls.__name__)
                self._following.set()
                return watch

    async def _back_off(self, error: ApiError) -> None:
        self._following.clear()
        delay_s = self._backoff.next_delay_s(self._clock.monotonic_s())
        action = "list" if self.is_listing else "watch"
        self._failures.failed(
            self.cls.__name__, action, error, delay_s=delay_s, version=self._resource_version
        )
        await self._sleep(delay_s)

    async def _list(self) -> None:
        self._end_watch()
        self.is_listing = True
        try:
            # At first any version is accepted, however old: the watch brings the rest.
            listing = await self._fetch(self._resource_version or "0")
        except GoneError:
            # Only now is it certain that the server cannot continue from our version.
            listing = await self._fetch("")
        self.is_listing = False
        self._failures.works(self.cls.__name__)
        self._watch = listing.watch
        self._list_count += 1
        await self._replace(listing.items, listing.undecoded)
        self._listed_version, self._last_event = listing.resource_version, None
        self._following.set()
        self._set_synced()

    def _set_synced(self) -> None:
        self.has_synced = True
        self._synced.set()

    async def _fetch(self, resource_version: str):
        return await self._client.list_and_watch(
            self.cls,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
            resource_version=resource_version,
        )

    async def _follow(self, watch: ObjectWatch[T]) -> None:
        """Handle events until the watch ends; ApiError if it ended at once without an event."""
        started_s, event_count = self._clock.monotonic_s(), self._event_count
        if self._gate is None and _is_calling(watch):
            await watch.call(self._handle_some)
        else:
            await self._follow_batches(watch)
        if (
            event_count == self._event_count
            and self._clock.monotonic_s() - started_s < SHORT_WATCH_S
        ):
            raise ApiError(f"the watch closed within {SHORT_WATCH_S:.0f} s without an event")

    async def _follow_batches(self, watch: ObjectWatch[T]) -> None:
        while batch := await watch.next_batch():
            await self._pass_gate()
            turn_started_s = self._clock.monotonic_s()
            for event in batch:
                if self._clock.monotonic_s() - turn_started_s > TURN_S:
                    turn_started_s = await self._pause()
                self._handle(event)

    def _handle_some(self, batch: Sequence[ObjectEvent[T]]) -> int:
        """Handle events for the length of a turn; their number."""
        if len(batch) == 1:
            self._handle(batch[0])
            return 1
        turn_started_s = self._clock.monotonic_s()
        for number, event in enumerate(batch):
            if self._clock.monotonic_s() - turn_started_s > TURN_S:
                return number
            self._handle(event)
        return len(batch)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    async def _replace(self, items: Sequence[T], undecoded: Sequence[tuple[str, str]]) -> None:
        """Make the store hold exactly these objects (spec 09 §4.3): deletions first.

        Of an object that exists but was not decoded, the last known state stays. The loop runs in
        between: leases and health checks do not wait for a list of 50,000 pods.
        """
        listed = {(item.metadata.namespace, item.metadata.name) for item in items}
        listed.update(undecoded)
        await self._pass_gate()
        for known in self.store.list():
            key = known.metadata.namespace, known.metadata.name
            if key not in listed:
                self._remove(known, is_final_state_unknown=True)
        turn_started_s = self._clock.monotonic_s()
        for number, item in enumerate(items):
            is_long = self._clock.monotonic_s() - turn_started_s > TURN_S
            if is_long or number % OBJECTS_PER_TURN == 0:
                turn_started_s = await self._pause()
            self._put(item)

    async def _pause(self) -> float:
        """Let the loop have its turn; when it was over."""
        await asyncio.sleep(0)
        await self._pass_gate()
        return self._clock.monotonic_s()

    async def _pass_gate(self) -> None:
        # Again after each wait: it may have closed before this task has had its turn.
        while self._gate is not None and not self._gate.is_set():
            await self._gate.wait()

    def deliver(self, batch: Sequence[ObjectEvent[T]]) -> int:
        """Handle events that were read from a watch; their number."""
        for event in batch:
            self._handle(event)
        return len(batch)

    def _handle(self, event: ObjectEvent[T]) -> None:
        match event.type:
            case "MODIFIED" | "ADDED":
                self._put(event.object)
            case "DELETED":
                self._remove(event.object, is_final_state_unknown=False)
            case "VANISHED":
                metadata = event.object.metadata
                known = self.store.get(metadata.namespace, metadata.name)
                if known is not None:
                    self._remove(known, is_final_state_unknown=True)
            case "UNDECODED" | "BOOKMARK":
                pass  # of an object that is not decoded, the last known state stays
        self._last_event = event
        self._event_count += 1

    def _put(self, new: T) -> None:
        metadata = new.metadata
        old = self.store.get(metadata.namespace, metadata.name)
        if old is None:
            self.store.put(new)
            for handler in self._handlers:
                if handler.on_add is not None:
                    handler.on_add(new)
        # The same version again is no change (after listing again, most objects are unchanged).
        elif old.metadata.resource_version != metadata.resource_version:
            self.store.put(new)
            for handler in self._handlers:
                if handler.on_update is not None:
                    handler.on_update(old, new)

    def _remove(self, last: T, *, is_final_state_unknown: bool) -> None:
        metadata = last.metadata
        if self.store.remove(metadata.namespace, metadata.name) is None:
            return  # reported already, when it was missing from a list
        for handler in self._handlers:
            if handler.on_delete is not None:
                handler.on_delete(last, is_final_state_unknown)


def _is_calling(watch: object) -> TypeGuard[CallingWatch[Any]]:
    return isinstance(watch, CallingWatch)


def _is_transient(error: ApiError) -> bool:
    """Whether the server did not handle the request: the store and its version are still valid."""
    if isinstance(error, UnreachableError):
        return error.cause == "refused"
    return error.code == 429


BASE_S: Final = 0.8
FACTOR: Final = 2.0
MAX_S: Final = 30.0
RESET_AFTER_S: Final = 120.0


class Backoff:
    """How long to wait before a request that failed is repeated (spec 09 §4.3).

    Delays that double up to a cap. More than two minutes after the last reset, or after the
    start, the next one begins at the base again, also if requests kept failing meanwhile.

    Each is extended by up to its own length, so that a thousand clients do not return at once.
    """

    def __init__(self, rng: np.random.Generator, now_s: float) -> None:
        self._rng = rng
        self._next_s = BASE_S
        self._reset_at_s = now_s

    def next_delay_s(self, now_s: float) -> float:
        """The next delay, at this reading of a monotonic clock."""
        if now_s - self._reset_at_s > RESET_AFTER_S:
            self._next_s = BASE_S
            self._reset_at_s = now_s
        delay_s = self._next_s
        self._next_s = min(delay_s * FACTOR, MAX_S)
        return delay_s * (1.0 + self._rng.random())
