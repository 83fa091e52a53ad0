"""The last attempts: one row each, and a copy of as many decisions as memory and time allow.

A copy takes tens of microseconds, more in large clusters. `share` limits how much of the time
copies take; attempts that are not copied have a row but no explanation, and are counted.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from kubestow.clock import Clock
from kubestow.engine.decision import Decision
from kubestow.explain.history import KeptAttempt, TimeShare, value_count
from kubestow.queue import QueuedPod
from kubestow.web.protocol import AttemptRow

ROWS_MAX: Final = 20_000
# Verdicts and scores of all copies together, each of 4 to 8 bytes.
VALUES_MAX: Final = 2_000_000
COPIES_MAX: Final = 5_000


class AttemptLog:
    def __init__(self, clock: Clock, *, share: float) -> None:
        """`clock` measures real time."""
        self._time = TimeShare(clock, share)
        self._rows: deque[AttemptRow] = deque(maxlen=ROWS_MAX)
        self._copies: OrderedDict[int, KeptAttempt] = OrderedDict()
        self._value_count = 0
        self.count = 0
        # Rows that are no longer kept, and attempts that were not copied.
        self.dropped = 0
        self.skipped = 0

    def next_id(self) -> int:
        self.count += 1
        return self.count

    def add(self, row: AttemptRow) -> None:
        self.dropped += len(self._rows) == ROWS_MAX
        self._rows.append(row)

    def copy(self, attempt_id: int, decision: Decision, queued_pod: QueuedPod, at_ns: int) -> None:
        """Keep a copy of the decision, if there is time for it."""
        if not self._time.has_time():
            self.skipped += 1
            return
        if decision.pod is not queued_pod.pod_info:
            # Of an equal member of the group, tried just before.
            decision = decision.repeated_for(queued_pod.pod_info)
        frozen = decision.freeze()
        kept = KeptAttempt(frozen, at_ns, queued_pod.attempts, value_count(frozen))
        self._copies[attempt_id] = kept
        self._value_count += kept.value_count
        while len(self._copies) > COPIES_MAX or (
            self._value_count > VALUES_MAX and len(self._copies) > 1
        ):
            self._value_count -= self._copies.popitem(last=False)[1].value_count
        self._time.spent()

    def newest_first(self) -> Iterator[AttemptRow]:
        return reversed(self._rows)

    def find(self, attempt_id: int) -> "LoggedAttempt | None":
        if not self._rows or attempt_id < self._rows[0].id:
            return None
        # One row for each number, in order.
        position = attempt_id - self._rows[0].id
        if position >= len(self._rows):
            return None
        return LoggedAttempt(self._rows[position], self._copies.get(attempt_id))

    def last_copy(self, uid: str) -> KeptAttempt | None:
        """The newest copy of an attempt for the pod with this UID."""
        for kept in reversed(self._copies.values()):
            if kept.decision.pod.uid == uid:
                return kept
        return None


class LoggedAttempt(NamedTuple):
    row: AttemptRow
    kept: KeptAttempt | None
