"""The frames of a watch, decoded straight into typed events.

A watch is one endless answer: a line of JSON for each event. Lines are decoded when they are read,
all that have arrived at once; a frame is the event itself, so nothing unused is built. When too
many lines are unread, the connection is paused and the server has to wait.

Lines that do not decode are decoded one by one. An ERROR ends the watch with the server's error. An
object that cannot be decoded is skipped (`undecodable`): UNDECODED, or VANISHED if it was deleted,
with its name and version only. A line without an end would fill the memory; it ends the watch at
`LINE_BYTES_MAX`.

Not here: opening and resuming watches (`http_client`, `informer`).
"""

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubestow.api.decode import UNREADABLE, dec_hook, decode_json
from kubestow.api.deep_json import DeepJson, as_utf8
from kubestow.api.meta import ApiObject
from kubestow.cluster.client import EventType
from kubestow.cluster.http.connection import Connection
from kubestow.cluster.http.error_response import ApiStatus, status_error
from kubestow.cluster.http.undecodable import UndecodableObjects
from kubestow.errors import ApiError, DecodeError, UnreachableError

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)

# Beyond this the server has to wait for the reader; at 3 KiB a pod, decoding this much blocks the
# loop for some milliseconds, which is acceptable.
PENDING_BYTES_MAX: Final = 256 * 1024
# An API server stores objects of up to 3 MiB; escapes can make the text of one six times as long.
LINE_BYTES_MAX: Final = 32 * 1024 * 1024


class WatchFrame(msgspec.Struct, Generic[T], gc=False):
    """One event of a watch, as it comes over the wire."""

    type: EventType
    object: T

    @property
    def resource_version(self) -> str:
        return self.object.metadata.resource_version


class _RawFrame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class WatchStream(Generic[T]):
    """An `ObjectWatch` that reads from a connection. At most one task may wait for it."""

    def __init__(self, cls: type[T], undecodable: UndecodableObjects | None = None) -> None:
        self.is_closed = False
        self._undecodable: Final = undecodable or UndecodableObjects()
        self._cls: Final = cls
        self._decoder: msgspec.json.Decoder[WatchFrame[T]] = _decoder(cls)
        self._ready: list[WatchFrame[T]] = []
        self._arrived: list[bytes] = []  # not decoded yet; the last line may be incomplete
        self._size = 0
        self._has_line = False
        self._failure: ApiError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._connection: Connection | None = None
        self._is_paused = False
        self._release: Callable[[Connection], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- For the opener ---------------------------------------------------------------------------

    def attach(
        self, connection: Connection, release: Callable[[Connection], None], *, time_limit_s: float
    ) -> None:
        """Read from this connection; give it back through `release`, at the latest at the limit."""
        self._connection = connection
        self._release = release
        if self.is_closed:  # it ended as soon as it had begun
            self._detach()
            return
        loop = asyncio.get_running_loop()
        # The server ends a watch at the requested time. One that does not is stuck.
        self._timer = loop.call_later(time_limit_s, self.close)

    def unread(self, frames: list[WatchFrame[T]]) -> None:
        """Put frames back, to be read next."""
        self._ready = frames + self._ready

    def fail(self, error: ApiError) -> None:
        """End the watch; the reader gets this error after what has arrived."""
        self._failure = error
        self.close()

    # --- For the connection -----------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        self._arrived.append(data)
        self._size += len(data)
        if b"\n" not in data:
            if self._size > LINE_BYTES_MAX and not self._has_line:
                self._arrived.clear()
                self._size = 0
                message = f"a line has no end within {LINE_BYTES_MAX} bytes"
                self.fail(ApiError(f"watch of {self._cls.__name__}: {message}"))
            return
        self._has_line = True
        if self._size >= PENDING_BYTES_MAX and not self._is_paused and self._connection is not None:
            self._is_paused = True
            self._connection.pause()
        self._wake()

    def end(self, error: UnreachableError | None) -> None:
        if error is not None:
            # Watches often break off; the reader opens another one where this one ended.
            logger.debug("watch of %s: %s", self._cls.__name__, error)
        self.close()

    # --- For the reader ---------------------------------------------------------------------------

    def close(self) -> None:
        """End the watch; what has arrived can still be read."""
        self.is_closed = True
        self._detach()
        self._wake()

    def events_nowait(self) -> list[WatchFrame[T]]:
        if self._has_line:
            self._ready += self._decode(self._take_lines())
        frames, self._ready = self._ready, []
        return frames

    async def next_batch(self) -> list[WatchFrame[T]]:
        """The events that have arrived, waiting for the first; empty once the watch has ended.

        ApiError if the server ended it with one: GoneError if the version followed is too old.
        """
        while not (frames := self.events_nowait()):
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self.is_closed:
                break
            assert self._waiter is None, "two tasks wait for the same watch"
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return frames

    # --- Steps ------------------------------------------------------------------------------------

    def _take_lines(self) -> bytes:
        """All complete lines that have arrived; an incomplete one is kept."""
        text = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
        end = text.rfind(b"\n") + 1
        rest = text[end:]
        self._arrived = [rest] if rest else []
        self._size = len(rest)
        self._has_line = False
        if self._is_paused:
            self._is_paused = False
            if self._connection is not None:
                self._connection.resume()
        return text[:end]

    def _decode(self, lines: bytes) -> list[WatchFrame[T]]:
        try:
            return self._decoder.decode_lines(lines)
        except UNREADABLE:
            return self._decode_one_by_one(lines)

    def _decode_one_by_one(self, lines: bytes) -> list[WatchFrame[T]]:
        frames: list[WatchFrame[T]] = []
        for line in lines.split(b"\n"):
            if not line.strip():
                continue
            try:
                frames += self._decode_line(line)
            except ApiError as error:
                self.fail(error)
                break
        return frames

    def _decode_line(self, line: bytes) -> list[WatchFrame[T]]:
        """The frame of a line; none if it has an object of which not even the name is known."""
        try:
            return [self._decoder.decode(line)]
        except UNREADABLE:
            pass
        text = DeepJson(as_utf8(line))
        try:
            frame = _RAW_DECODER.decode(text.text)
        except UNREADABLE as error:
            raise ApiError(
                f"watch of {self._cls.__name__}: cannot read the frame {line[:60]!r}: {error}"
            ) from error
        if frame.type == "ERROR":
            raise _error_in(bytes(frame.object))
        return self._decode_object(frame, text)

    def _decode_object(self, frame: _RawFrame, text: DeepJson) -> list[WatchFrame[T]]:
        """A frame that decodes without its nulls or what is nested deeply, or not at all."""
        if frame.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise ApiError(f'watch of {self._cls.__name__}: unknown event "{frame.type[:60]}"')
        shortened = bytes(frame.object)
        try:
            return [WatchFrame(frame.type, decode_json(self._cls, text.restored(shortened)))]
        except DecodeError as error:
            metadata = self._undecodable.skip(self._cls, shortened, error)
            if frame.type == "DELETED" and not metadata.name:
                raise ApiError(f"{error}; it was deleted, so a new list is needed") from error
        if not metadata.name or not metadata.resource_version:
            return []
        type: EventType = "VANISHED" if frame.type == "DELETED" else "UNDECODED"
        return [WatchFrame(type, self._cls(metadata=metadata))]

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _detach(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        connection, self._connection = self._connection, None
        if connection is not None and self._release is not None:
            self._release(connection)


_RAW_DECODER: Final = msgspec.json.Decoder(_RawFrame)


def _error_in(raw: bytes) -> ApiError:
    try:
        return status_error(msgspec.json.decode(raw, type=ApiStatus))
    except UNREADABLE:
        return ApiError("the server ended the watch with an error without a Status object")


@cache  # one for each kind: expensive to build, cheap to use
def _decoder(cls: type[Any]) -> msgspec.json.Decoder[WatchFrame[Any]]:
    return msgspec.json.Decoder(WatchFrame[cls], dec_hook=dec_hook)
