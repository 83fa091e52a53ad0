"""The event recorder: the events of the scheduler that `kubectl describe pod` shows.

Recording never delays the caller: an event goes into a buffer and separate tasks send it, as fast
as the rate limit of their own client allows. The buffer holds what a scheduler records in a burst;
when it is full, the oldest events are dropped, counted and logged, because scheduling must not wait
for events.

    record ──► buffer ──► senders ──refused──► logged and dropped
                  │          └──no answer──► again after some seconds, up to twelve times
                  └──full──► the oldest is dropped

An event that waits to be sent again does not keep its sender from the others. While bindings wait
for the API server, events give way to them, until half of the buffer is full or an event has waited
for long.

Not here: which events there are and when (`engine`); what counts as the same event
(`event_series`).
"""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, ObjectMeta, ObjectReference
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.documents import microseconds_at
from kubestow.cluster.event_series import FINISH_S, REFRESH_S, Series, SeriesCache
from kubestow.errors import ApiError, NotFoundError, UnreachableError

logger = logging.getLogger(__name__)

NOTE_BYTES_MAX: Final = 1024
# Events waiting for a sender: at most 1.5 kB each, so 30 MB.
BUFFER_MAX: Final = 20_000
# Requests at a time: as many as the client has connections, so that its rate limit is the limit.
SENDERS_MAX: Final = 32
# Events waiting to be sent again without a sender of their own.
RETRYING_MAX: Final = 1000
DROPS_LOGGED_EVERY_S: Final = 60.0
# Spec 09 §9.3: how often an event is sent to a server that does not answer, and how far apart.
TRIES_MAX: Final = 12
RETRY_S: Final = 10.0
RETRY_JITTER: Final = 0.25
# Events that give way are tried again this often, and give way no longer than this.
GIVE_WAY_S: Final = 0.02
GIVE_WAY_S_MAX: Final = 30.0
_NAME_LENGTH_MAX: Final = 253
_UTF8_BYTES: Final = 4  # of a character, at most
_CUT_MARK: Final = " ..."
_ALREADY_EXISTS: Final = "AlreadyExists"

EventKind = Literal["Normal", "Warning"]


class RecorderStatistics(msgspec.Struct, frozen=True):
    recorded_count: int
    sent_count: int
    failed_count: int
    dropped_count: int
    waiting_count: int
    series_count: int


class _Recorded(NamedTuple):
    stamp_ns: int  # the event's own, never used twice
    now_ns: int
    regarding: ObjectReference  # not the object, of which the cluster may have a newer version
    related: ObjectReference | None
    reporter: str
    type: EventKind
    reason: str
    action: str
    note: str


class EventRecorder:
    """Collects events and sends them in tasks of its own."""

    def __init__(
        self,
        client: ClusterClient,
        clock: Clock,
        *,
        hostname: str,
        buffer_max: int = BUFFER_MAX,
        senders_max: int = SENDERS_MAX,
        rng: np.random.Generator | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`senders_max`: one is enough for a server that answers at once. `is_busy`: whether
        more urgent requests wait for the server."""
        self._client = client
        self._clock = clock
        self._senders_max = senders_max
        self._hostname = hostname
        self._buffer_max = buffer_max
        self._rng = rng or np.random.default_rng(0)
        self._sleep = sleep
        self._is_busy = is_busy
        self._series = SeriesCache()
        self._sender_count = 0
        self._retry_count = 0
        self._waiting: deque[_Recorded] = deque()
        self._interrupted: list[Series] = []  # cancelled while they were sent
        self._wakeup = asyncio.Event()
        self._last_stamp_ns = 0
        self._recorded_count = 0
        self._sent_count = 0
        self._failed_count = 0
        self._dropped_count = 0
        self._logged_dropped_count = 0
        self._drops_logged_at_s = -DROPS_LOGGED_EVERY_S

    def record(
        self,
        regarding: ApiObject,
        *,
        reporter: str,
        type: EventKind,
        reason: str,
        action: str,
        note: str,
        related: ApiObject | None = None,
    ) -> None:
        """Record an event about an object; `reporter` is the name of the profile. Never waits."""
        now_ns = self._clock.now_ns()
        # Names contain the time, and on a virtual clock many events have the same time.
        self._last_stamp_ns = max(now_ns, self._last_stamp_ns + 1)
        if len(self._waiting) >= self._buffer_max:
            self._drop(self._waiting.popleft())
        self._waiting.append(
            _Recorded(
                self._last_stamp_ns,
                now_ns,
                reference_to(regarding),
                None if related is None else reference_to(related),
                reporter,
                type,
                reason,
                action,
                cut_note(note),
            )
        )
        self._recorded_count += 1
        self._wakeup.set()

    def statistics(self) -> RecorderStatistics:
        return RecorderStatistics(
            recorded_count=self._recorded_count,
            sent_count=self._sent_count,
            failed_count=self._failed_count,
            dropped_count=self._dropped_count,
            waiting_count=len(self._waiting) + len(self._interrupted) + self._retry_count,
            series_count=len(self._series),
        )

    async def run(self) -> None:
        """Send events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._maintain_series(), name="event series")
            while True:
                await self._wakeup.wait()
                while self._gives_way():
                    await self._sleep(GIVE_WAY_S)
                self._wakeup.clear()
                for _ in range(min(self._senders_max - self._sender_count, len(self._waiting))):
                    self._sender_count += 1
                    tasks.create_task(self._send_waiting(), name="event sender")

    async def flush(self) -> None:
        """Send what is waiting, oldest first, each event only once.

        After `run` was cancelled also what was being sent then: it may have waited for the rate
        limit. If the server has it already, it is refused by its name.
        """
        interrupted, self._interrupted = deque(self._interrupted), []

        async def send_waiting() -> None:
            while interrupted:
                await self._send_series(interrupted.popleft(), tries_max=1)
            while self._waiting:
                await self._send(self._waiting.popleft(), tries_max=1)

        await asyncio.gather(*(send_waiting() for _ in range(SENDERS_MAX)))

    def _drop(self, oldest: _Recorded) -> None:
        self._dropped_count += 1
        now_s = self._clock.monotonic_s()
        if now_s - self._drops_logged_at_s < DROPS_LOGGED_EVERY_S:
            return
        self._drops_logged_at_s = now_s
        logger.warning(
            "dropped %d event(s), the last one %s of %s/%s: %d are waiting, and the API server or "
            "clientConnection.qps is too slow for them",
            self._dropped_count - self._logged_dropped_count,
            oldest.reason,
            oldest.regarding.namespace,
            oldest.regarding.name,
            len(self._waiting) + 1,
        )
        self._logged_dropped_count = self._dropped_count

    async def _send_waiting(self) -> None:
        try:
            # More senders than allowed may be back from waiting to send an event again.
            while self._waiting and self._sender_count <= self._senders_max:
                if self._gives_way():
                    self._wakeup.set()
                    return
                await self._send(self._waiting.popleft(), tries_max=TRIES_MAX)
        finally:
            self._sender_count -= 1

    def _gives_way(self) -> bool:
        if not self._is_busy() or not self._waiting:
            return False
        waited_ns = self._clock.now_ns() - self._waiting[0].now_ns
        is_late = waited_ns > GIVE_WAY_S_MAX * 1_000_000_000
        return not is_late and len(self._waiting) <= self._buffer_max // 2

    async def _send(self, recorded: _Recorded, *, tries_max: int) -> None:
        """Count the event; write its series where that is due."""
        series = self._series.count(self._event(recorded), recorded.now_ns)
        if series.is_being_sent:
            return  # the task that sends it also sends this one
        await self._send_series(series, tries_max=tries_max)

    async def _send_series(self, series: Series, *, tries_max: int) -> None:
        series.is_being_sent = True
        try:
            while series.is_due:
                sent_count = series.sent_count
                await self._write(series, tries_max=tries_max)
                # A refused write is not repeated.
                series.sent_count = max(series.sent_count, sent_count + 1)
        except asyncio.CancelledError:
            self._interrupted.append(series)
            raise
        finally:
            series.is_being_sent = False

    async def _write(self, series: Series, *, tries_max: int) -> None:
        """Create the event or patch its series. Failures are only logged.

        A refused event would be refused again; a server that does not respond may recover.
        """
        metadata = series.event.metadata
        failure = None
        for attempt in range(tries_max):
            if attempt:
                await self._pause()
            try:
                await self._create_or_patch(series)
            except ApiError as error:
                failure = error
                if not isinstance(error, UnreachableError) and not _exists_now(series, error):
                    break
            else:
                self._sent_count += 1
                return
        self._failed_count += 1
        logger.warning(
            "event %s (%s) was not accepted: %s", metadata.name, series.event.reason, failure
        )

    async def _pause(self) -> None:
        """Wait before an event is sent again, meanwhile another sender may begin."""
        delay_s = RETRY_S * (1.0 + RETRY_JITTER * self._rng.random())
        if self._retry_count >= RETRYING_MAX:
            await self._sleep(delay_s)
            return
        self._retry_count += 1
        self._sender_count -= 1
        self._wakeup.set()
        try:
            await self._sleep(delay_s)
        finally:
            self._retry_count -= 1
            self._sender_count += 1

    async def _create_or_patch(self, series: Series) -> None:
        if series.count == 1:
            try:
                await self._client.create_event(series.event)
            except ApiError as error:
                # No other event has its name: the server accepted it, but the answer was lost.
                if error.reason != _ALREADY_EXISTS:
                    raise
            series.sent_count = 1
            return
        metadata = series.event.metadata
        try:
            await self._client.patch(Event, metadata.namespace, metadata.name, series.patch())
        except NotFoundError:
            # The server has deleted the event, or never accepted it.
            await self._client.create_event(series.event_with_series())
        series.sent_count = 2

    async def _maintain_series(self) -> None:
        """Write series from time to time, and for the last time when they are over."""
        refreshed_s = self._clock.monotonic_s()
        while True:
            await self._sleep(FINISH_S)
            await self._write_all(self._series.finish(self._clock.now_ns()))
            if self._clock.monotonic_s() - refreshed_s >= REFRESH_S:
                refreshed_s = self._clock.monotonic_s()
                await self._write_all(self._series.repeated())

    async def _write_all(self, many: list[Series]) -> None:
        self._sender_count += 1
        try:
            for series in many:
                await self._write(series, tries_max=TRIES_MAX)
        finally:
            self._sender_count -= 1

    def _event(self, recorded: _Recorded) -> Event:
        regarding = recorded.regarding
        return Event(
            api_version="events.k8s.io/v1",
            kind="Event",
            metadata=ObjectMeta(
                name=self._name(regarding.name, recorded.stamp_ns),
                namespace=regarding.namespace or "default",
            ),
            event_time=microseconds_at(recorded.now_ns),
            reporting_controller=recorded.reporter,
            reporting_instance=f"{recorded.reporter}-{self._hostname}",
            action=recorded.action,
            reason=recorded.reason,
            regarding=regarding,
            related=recorded.related,
            note=recorded.note,
            type=recorded.type,
        )

    def _name(self, regarding_name: str, stamp_ns: int) -> str:
        name = f"{regarding_name}.{stamp_ns:x}"
        if len(name) <= _NAME_LENGTH_MAX:
            return name
        return str(uuid.UUID(bytes=self._rng.bytes(16), version=4))


def _exists_now(series: Series, error: ApiError) -> bool:
    """Whether the event did not exist for the patch but existed for the create after it."""
    return series.count > 1 and error.reason == _ALREADY_EXISTS


def cut_note(note: str) -> str:
    """A note an API server accepts: one longer than 1024 bytes becomes its first 1020 and ` ...`.

    Spec 04 §14, step 6.
    """
    if len(note) * _UTF8_BYTES <= NOTE_BYTES_MAX:
        return note
    raw = note.encode()
    if len(raw) <= NOTE_BYTES_MAX:
        return note
    # A character cut in half is left out: its replacement could make the note too long again.
    return raw[: NOTE_BYTES_MAX - len(_CUT_MARK)].decode(errors="ignore") + _CUT_MARK


def reference_to(obj: ApiObject) -> ObjectReference:
    """The reference of an event to an object and its version."""
    metadata = obj.metadata
    return ObjectReference(
        api_version=obj.api_version,
        kind=obj.kind or type(obj).__name__,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
