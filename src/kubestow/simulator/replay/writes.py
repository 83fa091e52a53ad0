"""The changes of a recording in the order in which they were written to the API server.

A recorder follows each kind on a stream of its own, so changes of two kinds may be recorded in
another order than they were made in. Resource versions count the writes: within a few seconds,
changes are put back into their order. What comes in these seconds can be looked up ahead of time:
a scheduler knows its own decisions before they are written.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kubestow.api.decode import decode_json
from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.clock import NANOSECONDS
from kubestow.recording.format import Put, Record, Removed, kind_of

# So far ahead changes are looked up; as late may one of another kind be recorded.
AHEAD_NS: Final = 10 * NANOSECONDS
# With more changes in that time, fewer seconds are looked ahead.
AHEAD_MAX: Final = 20_000


class Change(NamedTuple):
    """An object was added or changed, or is gone: then `new` has its name only."""

    at_ns: int
    new: ApiObject
    is_gone: bool = False


class Writes:
    """Iterates over the changes of these kinds, each once."""

    def __init__(self, records: Iterable[Record], kinds: Iterable[type[ApiObject]]) -> None:
        self._records = iter(records)
        self._kinds = frozenset(kinds)
        self._version = 0
        # Resource version, position in the recording, change.
        self._heap: list[tuple[int, int, Change]] = []
        # By UID of a pod and position: resource version, pod.
        self._of_pods: dict[str, dict[int, tuple[int, Pod]]] = {}
        # When the changes that are held were recorded, the first one first, and the positions of
        # those that are not held any more.
        self._held: deque[tuple[int, int]] = deque()
        self._gone: set[int] = set()
        self._read = 0

    def __iter__(self) -> Iterator[Change]:
        for record in self._records:
            while self._is_one_due(record.at_ns):
                yield self._next()
            self._take(record)
        while self._heap:
            yield self._next()

    def ahead_of(self, uid: str) -> Sequence[Pod]:
        """The next versions of a pod, in the order of writes."""
        ahead = self._of_pods.get(uid, {})
        return [ahead[place][1] for place in sorted(ahead, key=lambda each: (ahead[each][0], each))]

    def pods_ahead(self) -> Iterable[str]:
        """The UIDs of the pods that change soon."""
        return self._of_pods.keys()

    def _take(self, record: Record) -> None:
        cls = kind_of(record.kind) if isinstance(record, Put | Removed) else None
        if cls is None or cls not in self._kinds:
            return
        assert isinstance(record, Put | Removed)
        self._read += 1
        self._held.append((record.at_ns, self._read))
        if isinstance(record, Put):
            new = decode_json(cls, record.text)
            version = self._number(new)
            if isinstance(new, Pod):
                self._of_pods.setdefault(new.metadata.uid, {})[self._read] = version, new
            change = Change(record.at_ns, new)
        else:
            last = decode_json(cls, record.text) if record.text else None
            # Without a version it keeps its place.
            version = self._version if last is None else self._number(last)
            gone = cls(metadata=ObjectMeta(namespace=record.namespace, name=record.name))
            change = Change(record.at_ns, gone, is_gone=True)
        heapq.heappush(self._heap, (version, self._read, change))

    def _number(self, new: ApiObject) -> int:
        text = new.metadata.resource_version
        number = int(text) if text.isascii() and text.isdigit() else self._version
        self._version = max(self._version, number)
        return number

    def _is_one_due(self, now_ns: int) -> bool:
        """Whether a change is held for long enough; those that were written before it go first."""
        while self._held and self._held[0][1] in self._gone:
            self._gone.remove(self._held.popleft()[1])
        if not self._held:
            return False
        return now_ns - self._held[0][0] > AHEAD_NS or len(self._heap) >= AHEAD_MAX

    def _next(self) -> Change:
        _, position, change = heapq.heappop(self._heap)
        self._gone.add(position)
        new = change.new
        if isinstance(new, Pod) and not change.is_gone:
            ahead = self._of_pods[new.metadata.uid]
            del ahead[position]
            if not ahead:
                del self._of_pods[new.metadata.uid]
        return change
