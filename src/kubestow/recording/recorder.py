"""Notes what a scheduler learns and decides, in the order in which it does."""

import zlib
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kubestow.api.decode import encode_json
from kubestow.api.meta import ApiObject
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.informer import Handler
from kubestow.engine.decision import Decision
from kubestow.errors import ApiError, UnreachableError
from kubestow.queue import QueuedPod
from kubestow.recording.format import (
    Answer,
    ClockSet,
    CycleBegan,
    Posted,
    Put,
    Record,
    RecordedAttempt,
    Refusal,
    Removed,
)

T = TypeVar("T", bound=ApiObject)

# A difference between the two clocks that counts: the wall clock was set, or runs at another speed.
CLOCK_SET_NS: Final = NANOSECONDS // 100


class RecordSink(Protocol):
    def write(self, record: Record, size: int = 0) -> None:
        """`size` is that of its text."""
        ...


class Recorder:
    """Called by the informers, by the client and with every decision."""

    def __init__(self, sink: RecordSink, clock: Clock) -> None:
        self._clock = clock
        self._monotonic_s = clock.monotonic_s
        self.start_again(sink)

    def start_again(self, sink: RecordSink) -> None:
        """From here on, records go to this sink, and times count from now."""
        self._write = sink.write
        self._started_s = self._clock.monotonic_s()
        self._started_ns = self._clock.now_ns()
        self._ahead_ns = 0

    def handler(self, cls: type[T]) -> Handler[T]:
        """For the informer of a kind; it comes before the handlers of the scheduler."""
        kind = cls.__name__

        def changed(_: T, new: T) -> None:
            self.put(new)

        def gone(last: T, is_unseen: bool) -> None:
            metadata = last.metadata
            text = b"" if is_unseen else encode_json(last)
            self._write(
                Removed(self._now_ns(), kind, metadata.namespace, metadata.name, text), len(text)
            )

        return Handler(self.put, changed, gone)

    def put(self, new: ApiObject) -> None:
        # At once: a moment later reading the object again takes longer than this.
        text = encode_json(new)
        self._write(Put(self._now_ns(), type(new).__name__, text), len(text))

    def began(self, queued_pod: QueuedPod) -> None:
        """For `Scheduler.on_waiting_cycle`."""
        at_ns = self._now_ns()
        self._note_clock(at_ns)
        self._write(CycleBegan(at_ns, queued_pod.pod_info.key, queued_pod.uid))

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """A `DecisionListener`."""
        at_ns = self._now_ns()
        self._note_clock(at_ns)
        self._write(attempt_of(decision, queued_pod.pod_info, at_ns))

    def answered(
        self,
        request: str,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        answer: ApiObject | ApiError | None,
    ) -> None:
        is_error = isinstance(answer, ApiError)
        text = b"" if answer is None or is_error else encode_json(answer)
        refusal = refusal_of(answer) if is_error else None
        at_ns = self._now_ns()
        self._write(Answer(at_ns, request, cls.__name__, namespace, name, text, refusal), len(text))

    def posted(self, request: int, code: int, body: bytes, error: str) -> None:
        """An extender has answered; called in any thread."""
        self._write(Posted(self._now_ns(), request, code, body, error), len(body))

    def _note_clock(self, at_ns: int) -> None:
        ahead_ns = self._clock.now_ns() - self._started_ns - at_ns
        if abs(ahead_ns - self._ahead_ns) > CLOCK_SET_NS:
            self._ahead_ns = ahead_ns
            self._write(ClockSet(at_ns, ahead_ns))

    def _now_ns(self) -> int:
        # Not wall-clock time, which may be set back.
        return round((self._monotonic_s() - self._started_s) * NANOSECONDS)


def attempt_of(decision: Decision, pod: PodInfo, at_ns: int) -> RecordedAttempt:
    """The decision in a form that can be compared with another of the same pod."""
    nomination, post_filter = decision.nomination, decision.post_filter
    return RecordedAttempt(
        at_ns,
        pod.key,
        pod.uid,
        decision.node_name,
        decision.message,
        None if nomination is None else nomination.node_name,
        tuple([victim.key for victim in post_filter.victims]) if post_filter is not None else (),
        decision.evaluated_count,
        decision.feasible_count,
        _checksum(decision),
    )


def _checksum(decision: Decision) -> int:
    rows, scores = decision.feasible_rows, decision.scores
    # Without laying the rows out: a search that finds every node gives a slice.
    place = b"%d:%d" % (rows.start, rows.stop) if isinstance(rows, slice) else _buffer(rows)
    checksum = zlib.crc32(place)
    return checksum if scores is None else zlib.crc32(_buffer(scores.total), checksum)


def _buffer(numbers: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """The same numbers one after the other in memory, without a copy if they are already."""
    return np.ascontiguousarray(numbers)


def refusal_of(error: ApiError) -> Refusal:
    cause = error.cause if isinstance(error, UnreachableError) else ""
    return Refusal(type(error).__name__, error.code, error.reason, str(error), cause)
