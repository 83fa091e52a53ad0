"""Notes what a scheduler learns and decides, in the order in which it does."""

import zlib
from typing import Protocol, TypeVar

from kubestow.api.decode import encode_json
from kubestow.api.meta import ApiObject
from kubestow.clock import Clock
from kubestow.cluster.informer import Handler
from kubestow.engine.decision import Decision
from kubestow.errors import ApiError, UnreachableError
from kubestow.queue import QueuedPod
from kubestow.recording.format import Answer, Attempt, Put, Record, Refusal, Removed

T = TypeVar("T", bound=ApiObject)


class RecordSink(Protocol):
    def write(self, record: Record) -> None: ...


class Recorder:
    """Called by the informers, by the client and with every decision."""

    def __init__(self, sink: RecordSink, clock: Clock, *, started_ns: int) -> None:
        self._sink = sink
        self._clock = clock
        self.started_ns = started_ns

    def handler(self, cls: type[T]) -> Handler[T]:
        """For the informer of a kind; it comes before the handlers of the scheduler."""
        kind = cls.__name__

        def changed(_: T, new: T) -> None:
            self.put(new)

        def gone(last: T, is_unseen: bool) -> None:
            metadata = last.metadata
            text = b"" if is_unseen else encode_json(last)
            self._sink.write(
                Removed(self._now_ns(), kind, metadata.namespace, metadata.name, text)
            )

        return Handler(self.put, changed, gone)

    def put(self, new: ApiObject) -> None:
        self._sink.write(Put(self._now_ns(), type(new).__name__, encode_json(new)))

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """A `DecisionListener`."""
        self._sink.write(attempt_of(decision, self._now_ns()))

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
        self._sink.write(
            Answer(self._now_ns(), request, cls.__name__, namespace, name, text, refusal)
        )

    def _now_ns(self) -> int:
        return self._clock.now_ns() - self.started_ns


def attempt_of(decision: Decision, at_ns: int) -> Attempt:
    """The decision in a form that can be compared with another of the same pod."""
    nomination, post_filter = decision.nomination, decision.post_filter
    return Attempt(
        at_ns,
        decision.pod.key,
        decision.pod.uid,
        decision.node_name,
        decision.message,
        None if nomination is None else nomination.node_name,
        tuple([victim.key for victim in post_filter.victims]) if post_filter is not None else (),
        decision.evaluated_count,
        decision.feasible_count,
        _checksum(decision),
    )


def _checksum(decision: Decision) -> int:
    rows = decision.feasible_rows
    # Without laying the rows out: a search that finds every node gives a slice.
    place = b"%d:%d" % (rows.start, rows.stop) if isinstance(rows, slice) else b""
    checksum = zlib.crc32(place if place else decision.feasible.tobytes())
    return checksum if decision.scores is None else zlib.crc32(decision.scores.total, checksum)


def refusal_of(error: ApiError) -> Refusal:
    cause = error.cause if isinstance(error, UnreachableError) else ""
    return Refusal(type(error).__name__, error.code, error.reason, str(error), cause)
