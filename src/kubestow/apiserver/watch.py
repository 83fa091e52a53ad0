"""Watches: changes of a resource, in order, delivered in batches.

A watch is a list that writers append to and its reader empties. Writing wakes the reader at most
once however many events follow before it runs, so a burst of ten thousand bindings costs a reader
one turn of the loop, not ten thousand.

    open ──events_nowait / next_batch──► open ──close, or too far behind──► ended (empty batches)

Invariant: applying all events of a watch, in order, to the state at its start gives the state at
its end, restricted to what the selection matches.
Not here: how far back a watch can start (`store`).
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from kubestow.api.meta import ApiObject, JsonObject
from kubestow.apiserver.selectors import Selection
from kubestow.apiserver.store import Change, StoredObject
from kubestow.cluster.client import EventType

# A reader this far behind has stopped reading; it loses its watch and has to start again.
PENDING_MAX: Final = 1_000_000


class WatchEvent:
    """One change as a watcher sees it. A BOOKMARK has only a resource version."""

    __slots__ = ("stored", "type")

    def __init__(self, type: EventType, stored: StoredObject) -> None:
        self.type: Final[EventType] = type
        self.stored: Final = stored

    @property
    def object(self) -> ApiObject:
        """The typed object, converted once for all watchers."""
        return self.stored.typed

    @property
    def document(self) -> JsonObject:
        return self.stored.document

    @property
    def resource_version(self) -> str:
        return str(self.stored.version)

    def __repr__(self) -> str:
        return f"WatchEvent({self.type}, {self.stored!r})"


class Watch:
    """A subscription to the changes of one resource."""

    def __init__(
        self,
        selection: Selection,
        *,
        bookmarks: bool = False,
        on_close: "Callable[[Watch], None] | None" = None,
        pending_max: int = PENDING_MAX,
    ) -> None:
        self.selection: Final = selection
        self.is_closed = False
        self._bookmarks = bookmarks
        self._on_close = on_close
        self._pending_max = pending_max
        self._pending: list[WatchEvent] = []
        self._waiter: asyncio.Future[None] | None = None

    def events_nowait(self) -> list[WatchEvent]:
        """The events since the last call, oldest first; never waits."""
        events, self._pending = self._pending, []
        return events

    async def next_batch(self) -> list[WatchEvent]:
        """All events since the last call, waiting for the first; empty once the watch has ended.

        At most one task may wait at a time.
        """
        if not self._pending and not self.is_closed:
            assert self._waiter is None, "two tasks wait for the same watch"
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.events_nowait()

    @property
    def is_ready(self) -> bool:
        """Whether a reader would not have to wait."""
        return bool(self._pending) or self.is_closed

    def wake_through(self, waiter: asyncio.Future[None] | None) -> None:
        """For `WatchGroup`: complete this future at the next event, instead of waiting here."""
        assert waiter is None or self._waiter is None, "two tasks wait for the same watch"
        self._waiter = waiter

    def close(self) -> None:
        """End the watch; what is pending can still be read."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._on_close is not None:
            self._on_close(self)
        self._wake()

    def offer(self, change: Change) -> None:
        """For the store: add the event of a change, if the selection matches it."""
        event = event_for(self.selection, change)
        if event is not None:
            self.push(event)

    def offer_bookmark(self, bookmark: StoredObject) -> None:
        """For the store: add a bookmark, if the watcher requested bookmarks."""
        if self._bookmarks:
            self.push(WatchEvent("BOOKMARK", bookmark))

    def push(self, event: WatchEvent) -> None:
        """For the store: append an event and wake the reader."""
        pending = self._pending
        if len(pending) >= self._pending_max:
            pending.clear()
            self.close()
            return
        pending.append(event)
        if self._waiter is not None:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WatchGroup:
    """Several watches read as one: all their events in the order of the writes.

    One task waits for all of them, so a controller of many resources sees an object and its owner
    in the order in which they were written.
    """

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches = list(watches)
        self._waiter: asyncio.Future[None] | None = None
        self._is_woken = False

    @property
    def is_closed(self) -> bool:
        """Whether one of the watches has ended: later events would have gaps."""
        return any(watch.is_closed for watch in self._watches)

    def add(self, watch: Watch) -> None:
        """Read one more watch. Not while `wait` waits."""
        self._watches.append(watch)

    @property
    def is_empty(self) -> bool:
        """Whether there is no watch left to read."""
        return not self._watches

    def drop_closed(self) -> None:
        """Read ended watches no longer, of which every event was read: `wait` would not wait."""
        self._watches = [watch for watch in self._watches if not watch.is_closed]

    def events_nowait(self) -> list[WatchEvent]:
        """The events since the last call, of all watches; never waits."""
        events = [event for watch in self._watches for event in watch.events_nowait()]
        events.sort(key=lambda event: event.stored.version)
        return events

    async def wait(self) -> None:
        """Return when there are events, a watch has ended, or `wake` was called."""
        if self._is_woken or any(watch.is_ready for watch in self._watches):
            self._is_woken = False
            return
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        for watch in self._watches:
            watch.wake_through(waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            self._is_woken = False
            for watch in self._watches:
                watch.wake_through(None)

    def wake(self) -> None:
        """Make `wait` return once, as a timer does."""
        self._is_woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        for watch in self._watches:
            watch.close()


def event_for(selection: Selection, change: Change) -> WatchEvent | None:
    """The event of a change for a watcher; None if the selection never matched the object.

    An object that starts to match is ADDED and one that stops matching is DELETED, even if it was
    only modified.
    """
    if selection.is_everything:
        return _event_for_all(change)
    old, new = change.old, change.new
    was_seen = old is not None and selection.matches(old.document)
    is_seen = new is not None and selection.matches(new.document)
    return _event(change, was_seen=was_seen, is_seen=is_seen)


# A change is offered to one watch after the other: watches without a selection share one event.
@lru_cache(1)
def _event_for_all(change: Change) -> WatchEvent | None:
    return _event(change, was_seen=change.old is not None, is_seen=change.new is not None)


def _event(change: Change, *, was_seen: bool, is_seen: bool) -> WatchEvent | None:
    new = change.new
    if is_seen:
        assert new is not None
        return WatchEvent("MODIFIED" if was_seen else "ADDED", new)
    return WatchEvent("DELETED", change.last_state()) if was_seen else None
