"""How the cluster was: what each change replaced, so that a state can be taken back in time.

Kept are the rows before a change, not copies of states: an hour of changes costs what changed. The
oldest changes are dropped first; the span then begins later.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, TypeVar

from kubestow.web.protocol import NodeRow, PodRow, Span

K = TypeVar("K")
V = TypeVar("V")

# Rows that are kept, of all changes together; of a recording, which is looked at as a whole.
ROWS_MAX: Final = 100_000
RECORDED_ROWS_MAX: Final = 400_000


class ReplacedRows(NamedTuple):
    """What was there before some changes; None where there was nothing.

    time_ms   when these were noticed
    attempt   the last attempt before that
    """

    time_ms: int
    attempt: int
    nodes: Mapping[int, NodeRow | None]
    pods: Mapping[str, PodRow | None]

    @property
    def row_count(self) -> int:
        return len(self.nodes) + len(self.pods)


class Past:
    def __init__(self, begin_ms: int, rows_max: int = ROWS_MAX) -> None:
        self._begin_ms = begin_ms
        # The last attempt that cannot be taken back.
        self._begin_attempt = 0
        self._rows_max = rows_max
        self._changes: deque[ReplacedRows] = deque()
        self._row_count = 0

    def add(self, change: ReplacedRows) -> None:
        self._changes.append(change)
        self._row_count += change.row_count
        while self._row_count > self._rows_max:
            dropped = self._changes.popleft()
            self._row_count -= dropped.row_count
            self._begin_ms = dropped.time_ms
            self._begin_attempt = dropped.attempt

    def span(self, now_ms: int) -> Span:
        return Span(begin=self._begin_ms, end=max(now_ms, self._begin_ms))

    def since_time(self, time_ms: int) -> Sequence[ReplacedRows] | None:
        """The changes after that time, newest first; None if they are not kept any more."""
        if time_ms < self._begin_ms:
            return None
        return self._newest(lambda change: change.time_ms > time_ms)

    def since_attempt(self, attempt: int) -> Sequence[ReplacedRows] | None:
        """The changes after that attempt and what it led to at once; None if they are not kept."""
        if attempt < self._begin_attempt:
            return None
        return self._newest(lambda change: change.attempt > attempt)

    def _newest(self, is_wanted: Callable[[ReplacedRows], bool]) -> Sequence[ReplacedRows]:
        return list(takewhile(is_wanted, reversed(self._changes)))


def take_back(
    changes: Sequence[ReplacedRows], nodes: dict[int, NodeRow], pods: dict[str, PodRow]
) -> None:
    """Make the rows what they were before these changes, which are newest first."""
    for change in changes:
        _restore(change.nodes, nodes)
        _restore(change.pods, pods)


def _restore(before: Mapping[K, V | None], rows: dict[K, V]) -> None:
    for key, row in before.items():
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row
