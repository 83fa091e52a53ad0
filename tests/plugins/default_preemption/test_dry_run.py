"""How many candidates are enough and where the search stops (spec 08 A6)."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import Rows, row_numbers
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.status import Code, Status
from kubestow.plugins.default_preemption.dry_run import (
    NO_VICTIMS,
    DryRun,
    TrialResults,
    candidate_count,
)
from kubestow.testing import make_node, make_pod, make_snapshot


@pytest.mark.parametrize(
    ("node_count", "percentage", "absolute", "expected"),
    [
        pytest.param(1000, 10, 100, 100, id="A11.1-1000"),
        pytest.param(5000, 10, 100, 500, id="A11.1-5000"),
        pytest.param(50, 10, 100, 50, id="A11.1-50"),
        pytest.param(999, 10, 100, 100, id="A11.1-999"),
        pytest.param(20, 0, 7, 7, id="A11.1-absolute"),
        pytest.param(1999, 10, 0, 199, id="truncates"),
    ],
)
def test_candidate_count(node_count: int, percentage: int, absolute: int, expected: int) -> None:
    assert candidate_count(node_count, percentage, absolute) == expected


VICTIM = PodInfo(make_pod("victim"))
CLEAN, VIOLATING = 0, 1


class Recorded:
    """Answers from a list: 0 or more violations make a candidate, a status does not."""

    def __init__(self, outcomes: Sequence[int | Status], size: int) -> None:
        self._outcomes = outcomes
        self._size = size
        self.missing: list[int | None] = []
        self.statuses = StatusCodes()

    def evaluate(self, rows: Rows, missing: int | None) -> TrialResults:
        self.missing.append(missing)
        rows = row_numbers(rows)[: self._size]
        codes = np.zeros(len(rows), np.int64)
        violations: list[int] = []
        for position, row in enumerate(rows.tolist()):
            outcome = self._outcomes[row]
            if isinstance(outcome, Status):
                codes[position] = self.statuses.code_of(outcome)
            else:
                violations.append(outcome)
        ranks = np.zeros((5, len(violations)), np.int64)
        ranks[0] = violations
        return TrialResults.of(rows, codes, ranks, lambda row: [VICTIM])


def run(
    outcomes: Sequence[int | Status], wanted: int | None, *, size: int = 3, offset: int = 0
) -> DryRun:
    snapshot = make_snapshot([make_node(f"n{row}") for row in range(len(outcomes))])
    dry_run = DryRun(snapshot)
    rows = np.roll(np.arange(len(outcomes)), -offset)
    dry_run.search(Recorded(outcomes, size), rows, wanted)
    return dry_run


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("outcomes", "wanted", "expected"),
    [
        pytest.param([0, 0, 0, 0], 2, [0, 1], id="stops-at-enough"),
        pytest.param([1, 1, 1, 0, 0], 2, [3, 0, 1], id="goes-on-until-one-is-clean"),
        pytest.param([1, 1, 1], 2, [0, 1], id="list-of-violating-is-cut"),
        pytest.param([1, 0, 1, 0], 3, [1, 0, 2], id="both-lists-count"),
        pytest.param([NO_VICTIMS, 0, NO_VICTIMS, 1, 0], 2, [1, 3], id="failures-do-not-count"),
        pytest.param([1, 0], None, [1, 0], id="no-limit"),
    ],
)
def test_search_stops_as_if_nodes_were_tried_one_by_one(
    outcomes: list[int | Status], wanted: int | None, expected: list[int], size: int
) -> None:
    assert run(outcomes, wanted, size=size).candidates().rows.tolist() == expected


def sequentially(outcomes: Sequence[int | Status], wanted: int) -> tuple[list[int], set[int]]:
    """The rule read node by node: candidates, and the nodes that were tried."""
    clean: list[int] = []
    violating: list[int] = []
    for row, outcome in enumerate(outcomes):
        if isinstance(outcome, Status):
            continue
        found = violating if outcome else clean
        if len(found) < wanted:
            found.append(row)
        if clean and len(clean) + len(violating) >= wanted:
            return [*clean, *violating], set(range(row + 1))
    return [*clean, *violating], set(range(len(outcomes)))


@given(
    st.lists(st.sampled_from([0, 1, 2, NO_VICTIMS, Status.unschedulable("x")]), max_size=20),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_search_equals_the_rule_read_node_by_node(
    outcomes: list[int | Status], wanted: int, size: int
) -> None:
    dry_run = run(outcomes, wanted, size=size)
    expected, tried = sequentially(outcomes, wanted)
    assert dry_run.candidates().rows.tolist() == expected
    assert dry_run.candidates_by_row().rows.tolist() == sorted(expected)
    assert dry_run.statuses() == {
        f"n{row}": outcomes[row] for row in tried if isinstance(outcomes[row], Status)
    }


def test_search_passes_on_how_many_are_missing() -> None:
    evaluator = Recorded([1, 1, 1, 1, 0], 1)
    dry_run = DryRun(make_snapshot([make_node(f"n{row}") for row in range(5)]))
    dry_run.search(evaluator, np.arange(5), 3)
    # With enough of those that violate a budget, a clean one is still missing.
    assert evaluator.missing == [3, 2, 1, 3, 3]


def test_search_may_begin_anywhere() -> None:
    assert run([0, 0, 0, 0, 0], 3, offset=3).candidates().rows.tolist() == [3, 4, 0]


def test_message_counts_reasons_and_nodes_that_cannot_be_helped() -> None:
    snapshot = make_snapshot([make_node(f"n{row}") for row in range(5)])
    dry_run = DryRun(snapshot)
    outcomes = [NO_VICTIMS, Status.unschedulable("Too many pods", "Insufficient cpu"), NO_VICTIMS]
    dry_run.search(Recorded(outcomes, 2), np.arange(3), None)
    assert dry_run.message() == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 Too many pods, "
        "2 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


def test_errors_are_joined_once_each() -> None:
    first = Status(Code.ERROR, error=ValueError("first"))
    outcomes = [first, Status(Code.ERROR, error=ValueError("second")), first]
    assert run([first], None).error() == "first"
    assert run(outcomes, None, size=2).error() == "[first, second]"
    assert run([NO_VICTIMS], None).error() == ""
