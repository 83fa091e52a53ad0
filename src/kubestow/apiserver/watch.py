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
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from typing import Final

from kubestow.api.meta import ApiObject, JsonObject
from kubestow.apiserver.selectors import Selection
from kubestow.apiserver.store import Change, StoredObject
from kubestow.apiserver.traits import ANY
from kubestow.cluster.client import CallingWatch, EventType
from kubestow.cluster.resources import ApiResource

# A reader this far behind has stopped reading; it loses its watch and has to start again.
PENDING_MAX: Final = 1_000_000
# So many events that can wait are left to the next that cannot.
UNREAD_MAX: Final = 1_024


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


# A reader can say which events it needs, and which of these at once: the others are read with the
# next one that it needs at once, or when there are many.
EventTest = Callable[[WatchEvent], bool]


class _Inbox:
    """The events that a reader has not read yet, of one watch or of several."""

    __slots__ = ("_reading", "has_ended", "is_ordered", "is_woken", "pending", "waiter")

    def __init__(self) -> None:
        self.pending: list[WatchEvent] = []
        # Whether the events are in the order of the writes.
        self.is_ordered = True
        self.has_ended = False
        self.is_woken = False
        self.waiter: asyncio.Future[None] | None = None
        self._reading: _Reading | None = None

    def add(self, event: WatchEvent) -> None:
        pending = self.pending
        if pending and event.stored.version < pending[-1].stored.version:
            self.is_ordered = False
        pending.append(event)

    def take(self) -> list[WatchEvent]:
        events, self.pending = self.pending, []
        self.is_woken = False
        return events

    def take_in_order(self) -> list[WatchEvent]:
        """All events in the order of the writes; the first ones of a watch are by name."""
        events = self.take()
        if not self.is_ordered:
            events.sort(key=lambda event: event.stored.version)
            self.is_ordered = True
        return events

    async def wait(self) -> None:
        """Return when there is something to read; at most one task may wait at a time."""
        if self.is_woken or self.has_ended:
            return
        assert self.waiter is None, "two tasks wait for the same watch"
        self.waiter = asyncio.get_running_loop().create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    async def call(self, on_events: Callable[[list[WatchEvent]], int]) -> None:
        """Call a function with the events of each turn, until a watch has ended; see `Watch`."""
        loop = asyncio.get_running_loop()
        self._reading = reading = _Reading(on_events, loop, copy_context(), loop.create_future())
        try:
            self._read()
            await reading.ended
        finally:
            self._reading = None

    def _read(self) -> None:
        reading = self._reading
        if reading is None:
            return
        # A wake while it reads needs no turn of its own.
        reading.has_turn = True
        try:
            while self.is_woken and self.pending:
                events = self.take()
                count = reading.on_events(events)
                if count < len(events):
                    self.pending[:0] = events[count:]
                    self.is_woken = True
                    reading.loop.call_soon(self._read, context=reading.context)
                    return
        except BaseException as error:
            if not reading.ended.done():
                reading.ended.set_exception(error)
            return
        self.is_woken = reading.has_turn = False
        if self.has_ended and not reading.ended.done():
            reading.ended.set_result(None)

    def wake(self) -> None:
        self.is_woken = True
        reading = self._reading
        if reading is not None:
            if not reading.has_turn:
                reading.has_turn = True
                reading.loop.call_soon(self._read, context=reading.context)
        elif self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class _Reading:
    """A function that reads the events of an inbox, and its turns of the loop."""

    __slots__ = ("context", "ended", "has_turn", "loop", "on_events")

    def __init__(
        self,
        on_events: Callable[[list[WatchEvent]], int],
        loop: asyncio.AbstractEventLoop,
        context: Context,
        ended: asyncio.Future[None],
    ) -> None:
        self.on_events: Final = on_events
        self.loop: Final = loop
        self.context: Final = context
        self.ended: Final = ended
        # Whether it is called now, or will be.
        self.has_turn = False


class Watch(CallingWatch[ApiObject]):
    """A subscription to the changes of one resource."""

    def __init__(
        self,
        selection: Selection,
        *,
        bookmarks: bool = False,
        on_close: "Callable[[Watch], None] | None" = None,
        pending_max: int = PENDING_MAX,
        only_while: ApiResource | None = None,
        traits: int = ANY,
        concerns: EventTest | None = None,
        wakes: EventTest | None = None,
    ) -> None:
        self.selection: Final = selection
        # Of pods, changes of those are offered that have one of these; see `read_traits`.
        self.traits = traits
        self.on_choice: Callable[[], None] | None = None
        # The store offers changes only while there is an object of this resource.
        self.only_while: Final = only_while
        self.is_closed = False
        self._bookmarks = bookmarks
        self._on_close = on_close
        self._pending_max = pending_max
        self._concerns = concerns
        self._wakes = wakes
        self._inbox = _Inbox()

    def events_nowait(self) -> list[WatchEvent]:
        """The events since the last call, oldest first; never waits."""
        return self._inbox.take()

    async def next_batch(self) -> list[WatchEvent]:
        """All events since the last call, waiting for the first; empty once the watch has ended.

        At most one task may wait at a time.
        """
        await self._inbox.wait()
        return self._inbox.take()

    async def call(self, on_batch: Callable[[Sequence[WatchEvent]], int]) -> None:
        await self._inbox.call(on_batch)

    def read_traits(self, traits: int) -> None:
        """Read pods that have one of these traits from now on."""
        self.traits = traits
        if self.on_choice is not None:
            self.on_choice()

    def move_to(self, inbox: _Inbox) -> None:
        """For `WatchGroup`: events go there from now on."""
        for event in self._inbox.take():
            inbox.add(event)
            inbox.wake()
        inbox.has_ended = inbox.has_ended or self.is_closed
        self._inbox = inbox

    def close(self) -> None:
        """End the watch; what is pending can still be read."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._on_close is not None:
            self._on_close(self)
        self._inbox.has_ended = True
        self._inbox.wake()

    def offer(self, change: Change, event: WatchEvent) -> None:
        """For the store: add the event of a change, if the selection matches it.

        `event` is that of a watch without a selection; all of these share it.
        """
        if not self.selection.is_everything:
            selected = _event_for(self.selection, change, event)
            if selected is None:
                return
            event = selected
        if self._concerns is None or self._concerns(event):
            self._add(event)

    def offer_bookmark(self, bookmark: StoredObject) -> None:
        """For the store: add a bookmark, if the watcher requested bookmarks."""
        if self._bookmarks:
            self.push(WatchEvent("BOOKMARK", bookmark))

    def push(self, event: WatchEvent) -> None:
        """For the store: add an event, if it concerns the reader."""
        if self._concerns is None or self._concerns(event):
            self._add(event)

    def _add(self, event: WatchEvent) -> None:
        """Append an event and wake the reader, unless the event can wait."""
        inbox = self._inbox
        pending = inbox.pending
        if len(pending) >= self._pending_max:
            pending.clear()
            self.close()
            return
        # As `_Inbox.add`, without a call: every event of a pod comes by here.
        if pending and event.stored.version < pending[-1].stored.version:
            inbox.is_ordered = False
        pending.append(event)
        if inbox.is_woken:
            return
        if self._wakes is None or self._wakes(event) or len(pending) >= UNREAD_MAX:
            inbox.wake()


class WatchGroup:
    """Several watches read as one: all their events in the order of the writes.

    One task waits for all of them, so a controller of many resources sees an object and its owner
    in the order in which they were written.
    """

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches: list[Watch] = []
        self._inbox = _Inbox()
        for watch in watches:
            self.add(watch)

    @property
    def is_closed(self) -> bool:
        """Whether one of the watches has ended: later events would have gaps."""
        return self._inbox.has_ended

    def add(self, watch: Watch) -> None:
        """Read one more watch; it must not be read in another way."""
        watch.move_to(self._inbox)
        self._watches.append(watch)

    @property
    def is_empty(self) -> bool:
        """Whether there is no watch left to read."""
        return not self._watches

    @property
    def has_events(self) -> bool:
        """Whether there are events that were not read."""
        return bool(self._inbox.pending)

    def drop_closed(self) -> None:
        """Read ended watches no longer, of which every event was read: `wait` would not wait."""
        if self._inbox.has_ended:
            self._watches = [watch for watch in self._watches if not watch.is_closed]
            self._inbox.has_ended = False

    def events_nowait(self) -> list[WatchEvent]:
        """The events since the last call, of all watches; never waits."""
        return self._inbox.take_in_order()

    async def wait(self) -> None:
        """Return when there are events, a watch has ended, or `wake` was called."""
        await self._inbox.wait()
        # A timer wakes once; events do until they are read.
        self._inbox.is_woken = bool(self._inbox.pending)

    def wake(self) -> None:
        """Make `wait` return once, as a timer does."""
        self._inbox.wake()

    def close(self) -> None:
        for watch in self._watches:
            watch.close()


def event_of(change: Change) -> WatchEvent:
    """The event of a change for a watcher of all objects."""
    if change.new is None:
        return WatchEvent("DELETED", change.last_state())
    return WatchEvent("ADDED" if change.old is None else "MODIFIED", change.new)


def _event_for(selection: Selection, change: Change, unselected: WatchEvent) -> WatchEvent | None:
    """The event of a change for a watcher; None if the selection never matched the object.

    An object that starts to match is ADDED and one that stops matching is DELETED, even if it was
    only modified. `unselected` is the event for a watcher of all objects.
    """
    old, new, left_out = change.old, change.new, selection.left_out
    if left_out is not None and new is not None and new.known_typed is not None:
        # As below, without calls: a scheduler follows the pods that have not ended, which are most.
        read, texts = left_out
        was_seen = old is None or (
            old.known_typed is not None and read(old.known_typed) not in texts
        )
        if was_seen and read(new.known_typed) not in texts:
            return unselected
    if old is None and new is not None:
        return unselected if selection.selects(new) else None
    was_seen = old is not None and selection.selects(old)
    if new is not None and selection.selects(new):
        return unselected if was_seen else WatchEvent("ADDED", new)
    if not was_seen:
        return None
    return unselected if new is None else WatchEvent("DELETED", change.last_state())
