"""The event recorder: what `kubectl describe pod` shows of the scheduler's doings.

Recording never delays the one who records: an event goes into a buffer and a task of its own sends
it. When the server is slower than the scheduler, the oldest events are dropped and counted; a
scheduler that waits for its own log is worse than a log with a gap.

Not here: which events there are and when (`engine`); repeating events as a series.
"""

import asyncio
import logging
from collections import deque
from typing import Final, Literal, NamedTuple

import msgspec

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, ObjectMeta, ObjectReference
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.documents import microseconds_at
from kubestow.errors import ApiError

logger = logging.getLogger(__name__)

NOTE_BYTES_MAX: Final = 1024
BUFFER_MAX: Final = 1000
_CUT_MARK: Final = " ..."

EventKind = Literal["Normal", "Warning"]


class RecorderStatistics(msgspec.Struct, frozen=True):
    recorded_count: int
    sent_count: int
    failed_count: int
    dropped_count: int
    waiting_count: int


class _Recorded(NamedTuple):
    stamp_ns: int  # the event's own, never used twice
    now_ns: int
    regarding: ApiObject
    related: ApiObject | None
    reporter: str
    type: EventKind
    reason: str
    action: str
    note: str


class EventRecorder:
    """Collects events and sends them when there is time."""

    def __init__(
        self,
        client: ClusterClient,
        clock: Clock,
        *,
        hostname: str,
        buffer_max: int = BUFFER_MAX,
    ) -> None:
        self._client = client
        self._clock = clock
        self._hostname = hostname
        self._buffer_max = buffer_max
        self._waiting: deque[_Recorded] = deque()
        self._wakeup = asyncio.Event()
        self._last_stamp_ns = 0
        self._recorded_count = 0
        self._sent_count = 0
        self._failed_count = 0
        self._dropped_count = 0

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
        """Note an event about an object; `reporter` is the name of the profile. Never waits."""
        now_ns = self._clock.now_ns()
        # Names are made of the time, and on a virtual clock many events happen at the same time.
        self._last_stamp_ns = max(now_ns, self._last_stamp_ns + 1)
        if len(self._waiting) >= self._buffer_max:
            self._waiting.popleft()
            self._dropped_count += 1
        self._waiting.append(
            _Recorded(
                self._last_stamp_ns,
                now_ns,
                regarding,
                related,
                reporter,
                type,
                reason,
                action,
                note,
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
            waiting_count=len(self._waiting),
        )

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            await self.flush()

    async def flush(self) -> None:
        """Send what is waiting, oldest first."""
        while self._waiting:
            recorded = self._waiting.popleft()
            try:
                await self._client.create_event(self._event(recorded))
            except ApiError as error:
                # Nothing depends on an event; a server that refuses one would refuse it again.
                self._failed_count += 1
                logger.warning(
                    "event %s about %s was refused: %s",
                    recorded.reason,
                    recorded.regarding.metadata.name,
                    error,
                )
            else:
                self._sent_count += 1

    def _event(self, recorded: _Recorded) -> Event:
        metadata = recorded.regarding.metadata
        return Event(
            api_version="events.k8s.io/v1",
            kind="Event",
            metadata=ObjectMeta(
                name=f"{metadata.name}.{recorded.stamp_ns:x}",
                namespace=metadata.namespace or "default",
            ),
            event_time=microseconds_at(recorded.now_ns),
            reporting_controller=recorded.reporter,
            reporting_instance=f"{recorded.reporter}-{self._hostname}",
            action=recorded.action,
            reason=recorded.reason,
            regarding=reference_to(recorded.regarding),
            related=None if recorded.related is None else reference_to(recorded.related),
            note=cut_note(recorded.note),
            type=recorded.type,
        )


def cut_note(note: str) -> str:
    """A note an API server accepts: longer than 1024 bytes, its first 1020 and ` ...` (§14.6)."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES_MAX:
        return note
    # A character cut in half is left out: what replaces it could be longer than what is allowed.
    return raw[: NOTE_BYTES_MAX - len(_CUT_MARK)].decode(errors="ignore") + _CUT_MARK


def reference_to(obj: ApiObject) -> ObjectReference:
    """How an event names an object, down to its version."""
    metadata = obj.metadata
    return ObjectReference(
        api_version=obj.api_version,
        kind=obj.kind or type(obj).__name__,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
