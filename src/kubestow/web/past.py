"""How the cluster was: what each change replaced, so that a state can be taken back in time.

Kept are the rows before a change, not copies of states: an hour of changes costs what changed. The
oldest changes are dropped first; the span then begins later.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from kubestow.web.protocol import NodeRow, PodRow, Span

K = TypeVar("K")
V = TypeVar("V")

# Rows that are kept, of all changes together.
ROWS_MAX: Final = 200_000


class Change(NamedTuple):
    """What was there before the changes up to a time; None where there was nothing."""

    time_ms: int
    nodes: Mapping[int, NodeRow | None]
    pods: Mapping[str, PodRow | None]

    @property
    def row_count(self) -> int:
        return len(self.nodes) + len(self.pods)


class Past:
    def __init__(self, begin_ms: int) -> None:
        self._begin_ms = begin_ms
        self._changes: deque[Change] = deque()
        self._row_count = 0

    def add(self, change: Change) -> None:
        self._changes.append(change)
        self._row_count += change.row_count
        while self._row_count > ROWS_MAX:
            dropped = self._changes.popleft()
            self._row_count -= dropped.row_count
            self._begin_ms = dropped.time_ms

    def span(self, now_ms: int) -> Span:
        return Span(begin=self._begin_ms, end=max(now_ms, self._begin_ms))

    def since(self, time_ms: int) -> Sequence[Change] | None:
        """The changes after that time, newest first; None if they are not kept any more."""
        if time_ms < self._begin_ms:
            return None
        found: list[Change] = []
        for change in reversed(self._changes):
            if change.time_ms <= time_ms:
                break
            found.append(change)
        return found


def take_back(
    changes: Sequence[Change], nodes: dict[int, NodeRow], pods: dict[str, PodRow]
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
