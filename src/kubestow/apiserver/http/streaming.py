"""Watches over HTTP: one line of JSON per event, sent in batches.

All watchers of a resource get the same bytes for the same event, so each event is encoded once for
all of them. Only tables are made for each watcher, because they contain ages; few clients watch
tables.

    opened ──batches──► … ──timeoutSeconds, client gone, server closing──► ended
       └──version too old──► one ERROR event, ended: the client lists again
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.columns import columns_of
from kubestow.apiserver.http.failures import failure_status
from kubestow.apiserver.http.representation import Form, partial_metadata
from kubestow.apiserver.http.table import table
from kubestow.apiserver.http.verbs import ObjectRequest
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.served import ServedResource
from kubestow.apiserver.watch import Watch, WatchEvent
from kubestow.clock import Clock
from kubestow.errors import GoneError

# A watch without `timeoutSeconds` ends after this; its reader opens another one.
TIMEOUT_S: Final = 1_800
# Watchers of one resource read the same events at nearly the same time.
KEPT_MAX: Final = 4_096
# How much is written to the socket at once: a reader should get its first events soon.
WRITE_BYTES: Final = 256 * 1024

Send = Callable[[bytes], Awaitable[None]]


class EventEncoder:
    """The lines of watches, each encoded once."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._lines: dict[tuple[int, str, str, Form], bytes] = {}
        self._kept_max = kept_max

    def line(self, event: WatchEvent, served: ServedResource, form: Form) -> bytes:
        """An event as a line, whole or as metadata.

        The version identifies the change, `apiVersion` the form in which its resource is served.
        """
        if event.type == "BOOKMARK":
            return _encoded(event, served, form)
        key = (event.stored.version, event.type, served.resource.api_version, form)
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= self._kept_max:
                # The oldest half is dropped at once: cheaper than one by one.
                for old in list(self._lines)[: self._kept_max // 2]:
                    del self._lines[old]
            line = self._lines[key] = _encoded(event, served, form)
        return line


class WatchStreams:
    """The watches that clients have open."""

    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._encoder = EventEncoder()
        self._open: set[Watch] = set()

    def open(self, request: ObjectRequest) -> "ServedWatch":
        """Begin a watch; ApiError if the request is invalid."""
        query, served = request.query, request.served
        requested = query.requested_version()
        bookmarks = query.flag("allowWatchBookmarks")
        initial_events = query.flag("sendInitialEvents")
        selection = query.selection(served, request.path.namespace)
        timeout_s = query.number("timeoutSeconds") or TIMEOUT_S
        stream = ServedWatch(request, self._encoder, self._clock, timeout_s)
        try:
            watch = self._cluster.watch(
                served.stored,
                selection,
                from_version=requested.version,
                bookmarks=bookmarks,
                initial_events=initial_events,
            )
        except GoneError as error:
            # As a real server, report it as an event of a successful answer.
            stream.refuse(error)
            return stream
        self._open.add(watch)
        stream.follow(watch, on_end=self._open.discard)
        return stream

    def close(self) -> None:
        """End every watch, so that the server can close."""
        for watch in tuple(self._open):
            watch.close()


class ServedWatch:
    """One watch of one client."""

    def __init__(
        self, request: ObjectRequest, encoder: EventEncoder, clock: Clock, timeout_s: int
    ) -> None:
        self._request = request
        self._encoder = encoder
        self._clock = clock
        self._timeout_s = timeout_s
        self._watch: Watch | None = None
        self._on_end: Callable[[Watch], None] | None = None
        self._refusal = b""
        self._has_sent_headers = False

    def follow(self, watch: Watch, on_end: Callable[[Watch], None]) -> None:
        self._watch, self._on_end = watch, on_end

    def refuse(self, error: GoneError) -> None:
        event: JsonObject = {"type": "ERROR", "object": failure_status(error)}
        self._refusal = msgspec.json.encode(event) + b"\n"

    async def send_all(self, send: Send) -> None:
        """Send events until the watch ends or its time is over."""
        watch = self._watch
        if watch is None:
            await send(self._refusal)
            return
        deadline_s = asyncio.get_running_loop().time() + self._timeout_s
        try:
            while batch := await _next_batch(watch, deadline_s):
                await self._send_batch(batch, send)
        finally:
            watch.close()
            if self._on_end is not None:
                self._on_end(watch)

    async def _send_batch(self, batch: Sequence[WatchEvent], send: Send) -> None:
        pending: list[bytes] = []
        size = 0
        for event in batch:
            line = self._line(event)
            pending.append(line)
            size += len(line)
            if size >= WRITE_BYTES:
                await send(b"".join(pending))
                pending, size = [], 0
        if pending:
            await send(b"".join(pending))

    def _line(self, event: WatchEvent) -> bytes:
        request = self._request
        if request.form is not Form.TABLE or event.type == "BOOKMARK":
            return self._encoder.line(event, request.served, request.form)
        document = request.served.to_client(event.document)
        rows = table(
            columns_of(request.served),
            [document],
            now_ns=self._clock.now_ns(),
            metadata={"resourceVersion": event.resource_version},
            include=request.query.text("includeObject"),
            has_headers=not self._has_sent_headers,
        )
        self._has_sent_headers = True
        return msgspec.json.encode({"type": event.type, "object": rows}) + b"\n"


async def _next_batch(watch: Watch, deadline_s: float) -> list[WatchEvent]:
    """The next events; none when the watch has ended or its time is over."""
    try:
        async with asyncio.timeout_at(deadline_s):
            return await watch.next_batch()
    except TimeoutError:
        return []


def _encoded(event: WatchEvent, served: ServedResource, form: Form) -> bytes:
    document = served.to_client(event.document)
    if form is Form.METADATA:
        document = partial_metadata(document)
    return msgspec.json.encode({"type": event.type, "object": document}) + b"\n"
