"""Explains differences: what the recorded and the replayed configuration say of the same nodes.

    a replay with the other configuration    notes what differs, and what it finds of both nodes
    a replay with the recorded one           only of those attempts: what it found of the same nodes

The second is left out where nothing differs, and ends with the last attempt that is explained.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.difference import AttemptView, explain_difference, view_of
from kubestow.recording.format import Record, RecordedAttempt
from kubestow.simulator.replay.report import ReplayDifference, ReplayReport


class AttemptViews:
    """Attempts that a replay looks at closely, by their number: the first `limit` that differ."""

    def __init__(self, limit: int = 0) -> None:
        self.found: dict[int, AttemptView] = {}
        self._limit = limit

    @property
    def is_complete(self) -> bool:
        return len(self.found) >= self._limit

    def wants(self, number: int, *, is_same: bool) -> bool:
        return not is_same and not self.is_complete

    def note(self, number: int, attempt: FrozenDecision, recorded_node: str) -> None:
        self.found[number] = view_of(attempt, (recorded_node,))


class RecordedViews(AttemptViews):
    """Attempts with the recorded configuration, and what it found of the same nodes."""

    def __init__(self, others: Mapping[int, AttemptView]) -> None:
        super().__init__(len(others))
        self._others = others

    def wants(self, number: int, *, is_same: bool) -> bool:
        # What differs here too, as after a change of the program, is not what was recorded.
        return is_same and number in self._others

    def note(self, number: int, attempt: FrozenDecision, recorded_node: str) -> None:
        self.found[number] = view_of(attempt, self._others[number].nodes)

    def needed(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records up to the last of these attempts."""
        left = max(self._others, default=0)
        for record in records:
            yield record
            left -= isinstance(record, RecordedAttempt)
            if not left:
                return


def explain_report(
    report: ReplayReport,
    replayed: Mapping[int, AttemptView],
    recorded: Mapping[int, AttemptView],
) -> None:
    """Say of the differences that were looked at why they are."""
    report.differences = [
        _explained(each, replayed, recorded) if each.number in replayed else each
        for each in report.differences
    ]
    report.unexplained = report.differing - sum(each.why is not None for each in report.differences)


def _explained(
    difference: ReplayDifference,
    replayed: Mapping[int, AttemptView],
    recorded: Mapping[int, AttemptView],
) -> ReplayDifference:
    number = difference.number
    why = explain_difference(difference.recorded_node, recorded.get(number), replayed[number])
    return msgspec.structs.replace(difference, why=why)
