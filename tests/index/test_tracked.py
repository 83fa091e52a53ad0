"""Arrays that catch up equal arrays computed from scratch, and compute only changed rows."""

import gc
import weakref
from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.arrays import ALL_ROWS, IntArray, Rows
from kubestow.cache.change_log import REORDERS_KEPT, ChangeLog, Depends
from kubestow.index.nodes import nodes_of
from kubestow.index.selector_patterns import SelectorPatterns
from kubestow.index.tracked import LARGE_TRACKED_MAX, LabelColumn, Tracked, TrackedArrays
from kubestow.testing import make_node, make_snapshot


class Truth:
    """Rows as they are now, and how often each was computed."""

    def __init__(self, values: list[int]) -> None:
        self.values: IntArray = np.array(values, np.int64)
        self.computed: list[list[int]] = []

    def compute(self, rows: Rows) -> IntArray:
        asked: list[int] = np.arange(len(self.values))[rows].tolist()
        self.computed.append(asked)
        return self.values[rows].copy()

    def compute_two(self, rows: Rows) -> IntArray:
        return np.stack((self.values[rows], -self.values[rows]))


def rows(*numbers: int) -> "array[int]":
    return array("q", numbers)


def intp(*rows: int) -> npt.NDArray[np.intp]:
    return np.array(rows, np.intp)


def test_only_changed_rows_are_computed_again() -> None:
    truth, log = Truth([0] * 10), ChangeLog()
    tracked = Tracked[np.int64](log, Depends.PODS, truth.compute)
    for row in (3, 7, 3):
        truth.values[row] += 1
        log.note_pods(row)
    assert tracked.values().tolist() == truth.values.tolist()
    assert truth.computed == [list(range(10)), [3, 7]]
    tracked.values()
    assert len(truth.computed) == 2


@pytest.mark.parametrize(
    ("changed", "computed"),
    [
        pytest.param([0, 2], [0, 2], id="half"),
        pytest.param([0, 1, 2], [0, 1, 2, 3], id="most"),
    ],
)
def test_more_than_half_is_cheaper_all_at_once(changed: list[int], computed: list[int]) -> None:
    truth, log = Truth([0] * 4), ChangeLog()
    tracked = Tracked[np.int64](log, Depends.PODS, truth.compute)
    for row in changed:
        truth.values[row] += 1
        log.note_pods(row)
    assert tracked.values().tolist() == truth.values.tolist()
    assert truth.computed == [[0, 1, 2, 3], computed]


def test_changes_of_pods_do_not_touch_what_depends_on_nodes() -> None:
    truth, log = Truth([0] * 10), ChangeLog()
    of_nodes = Tracked[np.int64](log, Depends.NODE, truth.compute)
    log.note_pods(2)
    of_nodes.values()
    assert len(truth.computed) == 1
    log.note_node(2)
    of_nodes.values()
    assert truth.computed[1:] == [[2]]


def test_changes_of_nodes_touch_what_depends_on_pods() -> None:
    truth, log = Truth([0] * 10), ChangeLog()
    of_pods = Tracked[np.int64](log, Depends.PODS, truth.compute)
    log.note_node(2)
    of_pods.values()
    assert truth.computed[1:] == [[2]]


def test_a_new_order_moves_values_without_computing() -> None:
    truth, log = Truth([10, 11, 12, 13]), ChangeLog()
    tracked = Tracked[np.int64](log, Depends.PODS, truth.compute)
    source = intp(3, 1, 0, 2)
    truth.values = truth.values[source]
    log.reorder(source, 4)
    assert tracked.values().tolist() == [13, 11, 10, 12]
    assert len(truth.computed) == 1


def test_after_too_many_new_orders_the_array_is_computed_again() -> None:
    truth, log = Truth([10, 11, 12]), ChangeLog()
    tracked = Tracked[np.int64](log, Depends.PODS, truth.compute)
    for _ in range(REORDERS_KEPT + 1):
        source = intp(1, 2, 0)
        truth.values = truth.values[source]
        log.reorder(source, 3)
    assert tracked.values().tolist() == truth.values.tolist()
    assert len(truth.computed) == 2


def test_a_log_that_was_cut_is_no_reason_for_old_values() -> None:
    truth, log = Truth([0] * 10), ChangeLog()
    behind = Tracked[np.int64](log, Depends.PODS, truth.compute)
    truth.values[5] = 1
    log.note_pods(5)
    up_to_date = Tracked[np.int64](log, Depends.PODS, truth.compute)
    log.trim(0)
    assert log.pods_since(0) is None
    truth.computed.clear()
    up_to_date.values()
    assert truth.computed == []  # it had seen everything that was cut
    assert behind.values().tolist() == truth.values.tolist()
    assert truth.computed == [list(range(10))]


def test_marks_stay_valid_when_no_row_is_left() -> None:
    log = ChangeLog()
    log.note_pods(0)
    seen = log.pod_end
    log.reorder(intp(), 1)
    log.reorder(intp(-1), 0)
    log.note_pods(0)
    assert log.pods_since(seen) == rows(0)
    assert log.pods_since(0) is None


def test_a_short_log_is_left_alone() -> None:
    log = ChangeLog()
    log.note_pods(1)
    log.trim(1)
    assert log.pods_since(0) == rows(1)


CHANGE = st.tuples(st.just("change"), st.integers(0, 30), st.sampled_from(list(Depends)))
LAY_ANEW = st.tuples(st.just("reorder"), st.lists(st.integers(-4, 30), max_size=12), st.booleans())
OTHER = st.tuples(st.sampled_from(["look", "trim"]), st.integers(0, 2), st.none())
STEPS = st.lists(CHANGE | LAY_ANEW | OTHER, max_size=60)


@given(st.integers(0, 10), STEPS)
def test_catching_up_equals_computing_from_scratch(
    count: int, steps: list[tuple[str, Any, Any]]
) -> None:
    """Three readers that look at different moments, over changes and new orders in between."""
    truth, nodes, log = Truth(list(range(count))), Truth(list(range(count))), ChangeLog()
    readers = [
        (Tracked[np.int64](log, Depends.PODS, truth.compute), truth),
        (Tracked[np.int64](log, Depends.PODS, truth.compute_two), truth),
        (Tracked[np.int64](log, Depends.NODE, nodes.compute), nodes),
    ]
    number = 100
    for step, what, how in steps:
        number += 1
        if step == "change" and len(truth.values):
            row = what % len(truth.values)
            truth.values[row] = number
            if how is Depends.NODE:
                nodes.values[row] = number
                log.note_node(row)
            else:
                log.note_pods(row)
        elif step == "reorder":
            source = new_order(what, len(truth.values), is_doubling_allowed=how)
            log.reorder(source, len(truth.values))
            for world in (truth, nodes):
                old = world.values
                world.values = np.array(
                    [old[row] if row >= 0 else number for row in source.tolist()], np.int64
                )
            for row in np.flatnonzero(source < 0).tolist():
                log.note_node(row)
        elif step == "trim":
            log.trim(what)
        elif step == "look":
            check(*readers[what])
    for tracked, world in readers:
        check(tracked, world)


def new_order(wanted: list[int], count: int, *, is_doubling_allowed: bool) -> npt.NDArray[np.intp]:
    """A new order of `count` rows: some kept, some gone, some new (-1)."""
    source = [row % count if row >= 0 and count else -1 for row in wanted]
    if not is_doubling_allowed:
        kept = list(dict.fromkeys(row for row in source if row >= 0))
        source = [*kept, *(-1 for row in source if row < 0)]
    return np.array(source, np.intp)


def check(tracked: Tracked[np.int64], world: Truth) -> None:
    got = tracked.values()
    rows = world.values
    expected = np.stack((rows, -rows)) if got.ndim == 2 else rows
    assert got.tolist() == expected.tolist()


def test_computing_over_all_rows_gives_an_array_of_its_own() -> None:
    truth, log = Truth([1, 2]), ChangeLog()
    tracked = Tracked[np.int64](log, Depends.PODS, truth.compute)
    assert tracked.values() is tracked.values()
    assert not np.shares_memory(tracked.values(), truth.values[ALL_ROWS])


def test_an_array_does_not_keep_its_owner() -> None:
    """What is dropped is freed at once, without the garbage collector."""
    snapshot = make_snapshot([make_node("n0", labels={"a": "b"})])
    column = LabelColumn(snapshot, "a")
    assert column.ids.tolist() == [1]
    patterns = SelectorPatterns()
    patterns.position_of(None)
    assert patterns.numbers(nodes_of(snapshot)).tolist() == [0]
    kept = weakref.ref(column), weakref.ref(patterns)
    gc.disable()
    try:
        del column, patterns
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()


def test_few_arrays_with_large_keys_are_kept() -> None:
    snapshot = make_snapshot([make_node("n0")])
    truth, arrays = Truth([0]), TrackedArrays(snapshot)
    for number in (0, 0, *range(1, LARGE_TRACKED_MAX + 1)):
        arrays.values(("large", number), Depends.NODE, truth.compute, is_large=True)
    assert len(arrays) == LARGE_TRACKED_MAX
    # The first was used least recently.
    assert len(truth.computed) == LARGE_TRACKED_MAX + 1
    arrays.values(("large", 0), Depends.NODE, truth.compute, is_large=True)
    assert len(truth.computed) == LARGE_TRACKED_MAX + 2
    # They do not displace each other.
    arrays.values("small", Depends.NODE, truth.compute)
    assert len(arrays) == LARGE_TRACKED_MAX + 1
