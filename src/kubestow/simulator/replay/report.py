"""What a replay compared, and what differed."""

from collections import Counter
from typing import Final

import msgspec

from kubestow.explain.difference import DecisionDifference
from kubestow.recording.format import RecordedAttempt

# More differences are counted, but not kept.
DIFFERENCES_MAX: Final = 1000


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One decision that is not the recorded one.

    number     of the decision in the recording, from 1
    at_s       seconds since the recording began
    what       the fields that differ, or why the pod was not tried
    recorded   node or message of the recording; `replayed` those of the replay
    recorded_node, replayed_node   the nodes alone, "" for none
    why        what made the difference, for as many as were asked for
    """

    number: int
    at_s: float
    pod: str
    what: tuple[str, ...]
    recorded: str
    replayed: str
    recorded_node: str = ""
    replayed_node: str = ""
    why: DecisionDifference | None = None


class ReplayReport(msgspec.Struct, kw_only=True, rename="camel"):
    """The result of a replay.

    attempts      the decisions that were compared
    differing     how many of them differ; `differences` has the first of these
    unexplained   how many of them have no `why`
    by_what       how many of the differences are of each sort
    changes       changes of objects that the scheduler learnt of
    duration_s    recorded time
    ended         why the scheduler ended, and `ended_s` when: a change contradicts its cache
    cut_at        the byte at which the recording is cut off; None if it is whole
    is_other      another configuration or version was tried, so differences are expected
    """

    attempts: int = 0
    differing: int = 0
    unexplained: int = 0
    by_what: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    differences: list[ReplayDifference] = msgspec.field(default_factory=list[ReplayDifference])
    changes: int = 0
    duration_s: float = 0.0
    ended: str = ""
    ended_s: float = 0.0
    cut_at: int | None = None
    is_other: bool = False

    def note(self, difference: ReplayDifference) -> None:
        self.differing += 1
        if len(self.differences) < DIFFERENCES_MAX:
            self.differences.append(difference)
        self.by_what = dict(Counter(self.by_what) + Counter(difference.what))


_COMPARED: Final = ("node", "message", "nominated", "victims", "evaluated", "feasible", "totals")


def differing_fields(recorded: RecordedAttempt, replayed: RecordedAttempt) -> tuple[str, ...]:
    return tuple(
        field for field in _COMPARED if getattr(recorded, field) != getattr(replayed, field)
    )


def outcome_of(attempt: RecordedAttempt) -> str:
    """The node, or why there is none."""
    return attempt.node or attempt.message
