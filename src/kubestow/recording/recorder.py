"""Notes what a scheduler learns and decides, in the order in which it does."""

import asyncio
import zlib
from typing import Final, Protocol, TypeVar

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.informer import Handler
from kubestow.engine.decision import Decision
from kubestow.engine.observer import Observer
from kubestow.errors import ApiError, UnreachableError
from kubestow.queue import QueuedPod
from kubestow.recording.format import (
    SETTLED_TURNS,
    Answer,
    ClockSet,
    CycleBegan,
    Posted,
    Put,
    Record,
    RecordedAttempt,
    Refusal,
    Removed,
    TurnsPassed,
)
from kubestow.recording.kept import recorded_answer, recorded_json

T = TypeVar("T", bound=ApiObject)

# With this many records a block is written.
BLOCK_RECORDS: Final = 256
# A difference between the two clocks that counts: the wall clock was set, or runs at another speed.
CLOCK_SET_NS: Final = NANOSECONDS // 100


class RecordSink(Protocol):
    """Records are added to `records`; `flush` takes them from there."""

    @property
    def records(self) -> list[Record]: ...

    def flush(self) -> None: ...


class Recorder(Observer):
    """Called by the informers, by the client and with every decision.

    Several calls for each pod: what they do is kept short rather than divided.
    """

    def __init__(self, sink: RecordSink, clock: Clock) -> None:
        self._clock = clock
        self._monotonic_s = clock.monotonic_s
        # How many turns the event loop has made since the last record. They are not counted while
        # this is SETTLED_TURNS.
        self._turns = SETTLED_TURNS
        # Whether cycles wait for extenders, whose answers are recorded.
        self.has_extenders = False
        self.start_again(sink)

    def start_again(self, sink: RecordSink) -> None:
        """Send all further records to this sink; their times count from now."""
        self._records, self._flush = sink.records, sink.flush
        self._started_s = self._clock.monotonic_s()
        self._started_ns = self._clock.now_ns()
        self._ahead_ns = 0

    def handler(self, cls: type[T]) -> Handler[T]:
        """A handler that records what an informer reports; register it before the scheduler's."""
        kind = cls.__name__

        def changed(_: T, new: T) -> None:
            self.put(new)

        def gone(last: T, is_unseen: bool) -> None:
            metadata = last.metadata
            text = b"" if is_unseen else recorded_json(last)
            self._add(Removed(self._now_ns(), kind, metadata.namespace, metadata.name, text))

        return Handler(self.put, changed, gone)

    def put(self, new: ApiObject) -> None:
        at_ns = round((self._monotonic_s() - self._started_s) * NANOSECONDS)
        # At once: a moment later reading the object again takes longer than this.
        text = recorded_json(new)
        if self._turns:
            self._note_turns(at_ns)
        self._records.append(Put(at_ns, type(new).__name__, text))
        if len(self._records) >= BLOCK_RECORDS:
            self._flush()

    def began(self, queued_pod: QueuedPod, *, waits: bool) -> None:
        if not waits or not self.has_extenders:
            return
        at_ns = self._now_ns()
        self._note_clock(at_ns)
        self._add(CycleBegan(at_ns, queued_pod.pod_info.key, queued_pod.uid))

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        at_ns = self._now_ns()
        self._note_clock(at_ns)
        self._add(attempt_of(decision, queued_pod.pod_info, at_ns))

    def answered(
        self,
        request: str,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        answer: ApiObject | ApiError | None,
        position: int,
    ) -> None:
        """A request has ended; `position` requests like this one were sent before and have not."""
        is_error = isinstance(answer, ApiError)
        text = b"" if answer is None or is_error else recorded_json(answer)
        refusal = refusal_of(answer) if is_error else None
        at_ns = self._now_ns()
        self._add(Answer(at_ns, request, cls.__name__, namespace, name, text, refusal, position))

    def posted(self, request: int, code: int, body: bytes, error: str) -> None:
        """An extender has answered; called in any thread."""
        text = recorded_answer(body)
        self._append(Posted(self._now_ns(), request, code, text, error))

    def _note_clock(self, at_ns: int) -> None:
        ahead_ns = self._clock.now_ns() - self._started_ns - at_ns
        if abs(ahead_ns - self._ahead_ns) > CLOCK_SET_NS:
            self._ahead_ns = ahead_ns
            self._add(ClockSet(at_ns, ahead_ns))

    def _note_turns(self, at_ns: int) -> None:
        turns, self._turns = self._turns, 0
        self._records.append(TurnsPassed(at_ns, turns))
        if turns == SETTLED_TURNS:
            asyncio.get_running_loop().call_soon(self._count_turn)

    def _count_turn(self) -> None:
        self._turns += 1
        if self._turns < SETTLED_TURNS:
            asyncio.get_running_loop().call_soon(self._count_turn)

    def _add(self, record: Record) -> None:
        if self._turns:
            self._note_turns(record.at_ns)
        self._append(record)

    def _append(self, record: Record) -> None:
        self._records.append(record)
        if len(self._records) >= BLOCK_RECORDS:
            self._flush()

    def _now_ns(self) -> int:
        # Not wall-clock time, which may be set back.
        return round((self._monotonic_s() - self._started_s) * NANOSECONDS)


def attempt_of(decision: Decision, pod: PodInfo, at_ns: int) -> RecordedAttempt:
    """The decision in a form that can be compared with another of the same pod."""
    nomination, post_filter, status = decision.nomination, decision.post_filter, decision.status
    rows, scores = decision.feasible_rows, decision.scores
    # Without laying the rows out: a search that finds every node gives a slice.
    if isinstance(rows, slice):
        feasible, checksum = rows.stop - rows.start, zlib.crc32(b"%d:%d" % (rows.start, rows.stop))
    else:
        feasible, checksum = len(rows), zlib.crc32(np.ascontiguousarray(rows).data)
    if scores is not None:
        checksum = zlib.crc32(np.ascontiguousarray(scores.total).data, checksum)
    return RecordedAttempt(
        at_ns,
        pod.key,
        pod.uid,
        decision.node_name,
        "" if status is None else status.message,
        None if nomination is None else nomination.node_name,
        () if post_filter is None else tuple([victim.key for victim in post_filter.victims]),
        decision.evaluated_count,
        feasible,
        checksum,
    )


def refusal_of(error: ApiError) -> Refusal:
    cause = error.cause if isinstance(error, UnreachableError) else ""
    return Refusal(type(error).__name__, error.code, error.reason, str(error), cause)
