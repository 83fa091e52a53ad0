"""Why a pod fits nowhere: verdicts as numbers, and the text made of them (spec 04 §3.2, §14.2)."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.arrays import row_numbers
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import (
    PASSED,
    UNKNOWN,
    Diagnosis,
    Rejections,
    fit_error_text,
    sorted_reasons,
)
from kubestow.framework.plugin import FilterPlugin
from kubestow.framework.status import Code, Status
from kubestow.testing.profiles import make_plugin, make_profile

UNSCHEDULABLE, UNRESOLVABLE = Status.unschedulable, Status.unresolvable
CPU, MEMORY = "Insufficient cpu", "Insufficient memory"


def filters(*tables: Mapping[int, Status]) -> Sequence[FilterPlugin]:
    """Filters F0, F1, … whose codes mean what their tables say."""

    def plugin(index: int, table: Mapping[int, Status]) -> object:
        return make_plugin(
            f"F{index}", filter=lambda *_: None, filter_status=lambda _, code: table[code]
        )

    return make_profile(*map(plugin, range(len(tables)), tables)).filter  # type: ignore[arg-type]


def diagnosis_of(verdicts: Sequence[tuple[int, int]], *tables: Mapping[int, Status]) -> Diagnosis:
    """One node per (filter, code)."""
    names = [f"n{number}" for number in range(len(verdicts))]
    diagnosis = Diagnosis(names, CycleState(), filters(*tables))
    failed_by, codes = np.array(verdicts, np.int64).reshape(-1, 2).T
    diagnosis.record(slice(0, len(verdicts)), failed_by, codes)
    return diagnosis


# --- texts (§14.3) ---


@pytest.mark.parametrize(
    ("node_count", "reasons", "texts", "expected"),
    [
        pytest.param(
            3, {CPU: 3, MEMORY: 1}, {}, f"0/3 nodes are available: 1 {MEMORY}, 3 {CPU}.", id="1"
        ),
        pytest.param(
            12,
            {"zeta": 10, "alpha": 1, "beta": 1},
            {},
            "0/12 nodes are available: 1 alpha, 1 beta, 10 zeta.",
            id="2a",
        ),
        pytest.param(
            12, {"A": 10, "B": 2}, {}, "0/12 nodes are available: 10 A, 2 B.", id="2b-as-text"
        ),
        pytest.param(
            3,
            {CPU: 3},
            {
                "post_filter_message": "no new claims to deallocate, preemption: 0/3 nodes are "
                "available: 3 No preemption victims found for incoming pod."
            },
            f"0/3 nodes are available: 3 {CPU}. no new claims to deallocate, preemption: 0/3 nodes "
            "are available: 3 No preemption victims found for incoming pod.",
            id="3",
        ),
        pytest.param(3, {CPU: 3}, {}, f"0/3 nodes are available: 3 {CPU}.", id="4"),
        pytest.param(
            1,
            {},
            {
                "pre_filter_message": "pod has unbound immediate PersistentVolumeClaims",
                "post_filter_message": "not found",
            },
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            id="5",
        ),
        pytest.param(3, {}, {}, "0/3 nodes are available:", id="13.6-3-no-reasons-at-all"),
        pytest.param(
            3,
            {},
            {"post_filter_message": "x"},
            "0/3 nodes are available: x",
            id="no-reasons-but-a-postscript",
        ),
    ],
)
def test_the_text(
    node_count: int, reasons: dict[str, int], texts: dict[str, str], expected: str
) -> None:
    assert fit_error_text(node_count, reasons, **texts) == expected


def test_reasons_sort_as_text_with_their_counts() -> None:
    assert sorted_reasons({"x": 1, "y": 10, "z": 2}.items()) == ["1 x", "10 y", "2 z"]


# --- verdicts ---


def test_14_3_1_every_reason_of_every_node_counts() -> None:
    table = {1: UNSCHEDULABLE(CPU), 2: UNSCHEDULABLE(CPU, MEMORY)}
    diagnosis = diagnosis_of([(0, 1), (0, 2), (0, 1)], table)
    assert diagnosis.message() == f"0/3 nodes are available: 1 {MEMORY}, 3 {CPU}."


def test_14_3_7_nodes_not_filtered_have_the_absent_status() -> None:
    diagnosis = diagnosis_of([(0, 1), *[(UNKNOWN, 0)] * 4], {1: UNSCHEDULABLE(CPU)})
    diagnosis.absent = UNRESOLVABLE("node(s) didn't satisfy plugin(s) [P]")
    assert diagnosis.message() == (
        f"0/5 nodes are available: 1 {CPU}, 4 node(s) didn't satisfy plugin(s) [P]."
    )


def test_a_message_of_pre_filter_hides_the_reasons() -> None:
    diagnosis = diagnosis_of([(0, 1)], {1: UNSCHEDULABLE(CPU)})
    diagnosis.pre_filter_message = "no way"
    diagnosis.post_filter_message = "preemption: no"
    assert diagnosis.message() == "0/1 nodes are available: no way. preemption: no"


def test_statuses_by_node() -> None:
    diagnosis = diagnosis_of(
        [(0, 1), (PASSED, 0), (1, 1), (UNKNOWN, 0)],
        {1: UNSCHEDULABLE("zero")},
        {1: UNRESOLVABLE("one")},
    )
    diagnosis.set_explicit(3, UNSCHEDULABLE("explicit").with_plugin("X"))
    assert diagnosis.statuses() == {
        "n0": UNSCHEDULABLE("zero").with_plugin("F0"),
        "n2": UNRESOLVABLE("one").with_plugin("F1"),
        "n3": UNSCHEDULABLE("explicit").with_plugin("X"),
    }
    assert diagnosis.status_of(1) is None


def test_an_explicit_verdict_replaces_the_filter_s() -> None:
    diagnosis = diagnosis_of([(0, 1), (0, 1)], {1: UNSCHEDULABLE("zero")})
    diagnosis.set_explicit(0, UNRESOLVABLE("never"))
    assert diagnosis.status_of(0) == UNRESOLVABLE("never")
    assert diagnosis.message() == "0/2 nodes are available: 1 never, 1 zero."


def test_without_verdicts_nodes_are_unresolvable_and_silent() -> None:
    diagnosis = Diagnosis(["n0"])
    assert diagnosis.status_of(0) == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    assert diagnosis.message() == "0/1 nodes are available:"
    assert diagnosis.statuses() == {}


@pytest.mark.parametrize(
    ("code", "absent", "rows"),
    [
        pytest.param(Code.UNSCHEDULABLE, UNRESOLVABLE(), [0, 3], id="verdicts-of-their-own"),
        pytest.param(Code.UNSCHEDULABLE, UNSCHEDULABLE("u"), [0, 3, 4], id="absent-ones-too"),
        pytest.param(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE, UNRESOLVABLE(), [1, 2, 4], id="unresolvable"
        ),
        pytest.param(Code.PENDING, UNRESOLVABLE(), [], id="none"),
    ],
)
def test_3_2_nodes_with_a_code(code: Code, absent: Status, rows: list[int]) -> None:
    diagnosis = diagnosis_of(
        [(0, 1), (0, 2), (0, 1), (UNKNOWN, 0), (UNKNOWN, 0), (PASSED, 0)],
        {1: UNSCHEDULABLE("a"), 2: UNRESOLVABLE("b")},
    )
    diagnosis.absent = absent
    diagnosis.set_explicit(2, UNRESOLVABLE("now"))
    diagnosis.set_explicit(3, UNSCHEDULABLE("now"))
    assert row_numbers(diagnosis.rejected_with(code).rows).tolist() == rows
    assert diagnosis.count_with(code) == len(rows)


@pytest.mark.parametrize(
    ("absent", "explicit", "index"),
    [
        pytest.param(UNRESOLVABLE("a"), {}, 1, id="rejected-by-filters"),
        pytest.param(UNRESOLVABLE("a"), {2: UNSCHEDULABLE("b").with_plugin("F0")}, 0, id="earlier"),
        pytest.param(UNRESOLVABLE("a"), {2: UNSCHEDULABLE("b").with_plugin("F2")}, 1, id="later"),
        pytest.param(UNRESOLVABLE("a"), {2: UNSCHEDULABLE("b")}, 0, id="by-no-filter"),
        pytest.param(UNSCHEDULABLE("a"), {}, 0, id="not-filtered"),
    ],
)
def test_what_passed_the_nodes_with_a_code(
    absent: Status, explicit: Mapping[int, Status], index: int
) -> None:
    table = {1: UNSCHEDULABLE("x"), 2: UNRESOLVABLE("y")}
    diagnosis = diagnosis_of([(0, 2), (1, 1), (PASSED, 0), (2, 1)], table, table, table)
    diagnosis.absent = absent
    for row, status in explicit.items():
        diagnosis.set_explicit(row, status)
    assert diagnosis.rejected_with(Code.UNSCHEDULABLE).first_filter == index


def test_plugins_are_blamed_for_rejections() -> None:
    diagnosis = Diagnosis(())
    diagnosis.add_plugin_of(UNSCHEDULABLE("a"))  # without a plugin
    diagnosis.add_plugin_of(UNSCHEDULABLE("a").with_plugin("U"))
    diagnosis.add_plugin_of(Status(Code.PENDING, "p").with_plugin("P"))
    diagnosis.add_plugin_of(Status.from_error(PluginError("e")).with_plugin("E"))
    assert diagnosis.unschedulable_plugins == {"U", "P"}
    assert diagnosis.pending_plugins == {"P"}


def test_every_filter_that_rejected_a_node_is_blamed() -> None:
    diagnosis = diagnosis_of(
        [(0, 1), (2, 7), (PASSED, 0)],
        {1: UNSCHEDULABLE("a")},
        {1: UNSCHEDULABLE("never asked")},
        {7: Status(Code.PENDING, "p")},
    )
    diagnosis.note_rejecting_plugins()
    assert diagnosis.unschedulable_plugins == {"F0", "F2"}
    assert diagnosis.pending_plugins == {"F2"}


def test_a_filter_without_words_for_its_number_has_failed() -> None:
    diagnosis = diagnosis_of([(0, 1), (0, 2)], {1: UNSCHEDULABLE("a")})
    text = 'running "F0" filter plugin: KeyError: 2 (tests/framework/test_diagnosis.py:'
    assert diagnosis.message().startswith(f"0/2 nodes are available: 1 a, 1 {text}")
    status = diagnosis.status_of(1)
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "F0")


def test_words_are_asked_for_once_per_number() -> None:
    asked: list[int] = []

    def words(state: CycleState, code: int) -> Status:
        asked.append(code)
        return UNSCHEDULABLE(f"reason {code}")

    plugin = make_plugin("F0", filter=lambda *_: None, filter_status=words)
    names = [f"n{number}" for number in range(1000)]
    diagnosis = Diagnosis(names, CycleState(), make_profile(plugin).filter)
    diagnosis.record(slice(0, 1000), np.zeros(1000, np.int64), np.arange(1000) % 40 + 1)
    diagnosis.message()
    diagnosis.statuses()
    diagnosis.rejected_with(Code.UNSCHEDULABLE)
    assert sorted(asked) == list(range(1, 41))


VERDICTS = st.lists(st.tuples(st.integers(-2, 3), st.integers(1, 30)), min_size=1, max_size=60)


@given(VERDICTS, st.dictionaries(st.integers(0, 59), st.sampled_from("xyz"), max_size=4))
def test_counting_equals_going_from_node_to_node(
    verdicts: list[tuple[int, int]], explicit: dict[int, str]
) -> None:
    tables = [
        {code: UNSCHEDULABLE(f"{index}-{code % 7}", "both") for code in range(1, 31)}
        for index in range(4)
    ]
    diagnosis = diagnosis_of(verdicts, *tables)
    diagnosis.absent = UNRESOLVABLE("absent")
    for row, reason in explicit.items():
        if row < len(verdicts):
            diagnosis.set_explicit(row, UNSCHEDULABLE(reason))
    slow: dict[str, int] = {}
    passed = 0
    for row in range(len(verdicts)):
        status = diagnosis.status_of(row)
        if status is None:
            passed += 1
            continue
        for reason in status.all_reasons:
            slow[reason] = slow.get(reason, 0) + 1
    if passed:  # a text is only made when no node passed; then they count as absent
        slow["absent"] = slow.get("absent", 0) + passed
    assert dict(diagnosis.reason_counts()) == slow


@given(VERDICTS, st.dictionaries(st.integers(0, 59), st.sampled_from("012"), max_size=4))
def test_rows_are_grouped_by_what_is_said_of_them(
    verdicts: list[tuple[int, int]], explicit: dict[int, str]
) -> None:
    # Several codes mean the same, and so may an explicit verdict.
    tables = [{code: UNSCHEDULABLE(f"{code % 7}") for code in range(1, 31)} for _ in range(4)]
    diagnosis = diagnosis_of(verdicts, *tables)
    for row, reason in explicit.items():
        if row < len(verdicts):
            diagnosis.set_explicit(row, UNSCHEDULABLE(reason).with_plugin("F1"))
    expected: dict[Status, list[int]] = {}
    for row in range(len(verdicts)):
        status = diagnosis.status_of(row)
        if status is not None and status is not diagnosis.absent:
            expected.setdefault(status, []).append(row)
    groups = diagnosis.rows_by_status()
    assert [(status, rows.tolist()) for status, rows in groups] == list(expected.items())


# --- no node fits ---


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2)), min_size=1, max_size=8))
def test_kept_rejections_say_what_the_verdicts_say(verdicts: list[tuple[int, int]]) -> None:
    tables = (
        {1: UNSCHEDULABLE(CPU), 2: UNRESOLVABLE(CPU)},
        {1: UNSCHEDULABLE(MEMORY), 2: UNSCHEDULABLE(CPU, MEMORY)},
    )
    expected = diagnosis_of(verdicts, *tables)
    assert expected.note_rejecting_plugins() is None
    rejections = Rejections.of(*np.array(verdicts, np.int64).T)
    assert rejections is not None
    for post_filter_message in ("", "preemption: no."):
        kept = Diagnosis(expected.node_names, CycleState(), filters(*tables))
        # The verdicts are on all nodes, so they replace earlier ones.
        kept.set_explicit(0, UNSCHEDULABLE("x"))
        assert kept.reject_all(rejections) is None
        kept.post_filter_message = expected.post_filter_message = post_filter_message
        assert kept.message() == expected.message()
        assert kept.failed_count == expected.failed_count
        assert kept.statuses() == expected.statuses()
        assert kept.unschedulable_plugins == expected.unschedulable_plugins
        assert kept.rejected_counts() == expected.rejected_counts()
        for code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            rows = row_numbers(kept.rejected_with(code).rows).tolist()
            assert rows == row_numbers(expected.rejected_with(code).rows).tolist()
            assert kept.count_with(code) == len(rows)


@pytest.mark.parametrize(
    ("verdicts", "is_kept"),
    [
        pytest.param([(0, code) for code in range(1, 17)], True, id="few"),
        pytest.param([(0, code) for code in range(1, 18)], False, id="many-reasons"),
        pytest.param([(0, 1), (0, -1)], False, id="a-filter-failed"),
    ],
)
def test_few_rejections_without_errors_are_kept(
    verdicts: list[tuple[int, int]], is_kept: bool
) -> None:
    found = Rejections.of(*np.array(verdicts, np.int64).T)
    assert (found is not None) == is_kept


def test_a_filter_that_cannot_say_why_is_asked_again() -> None:
    answers = [Status.from_error(PluginError("broken")), UNSCHEDULABLE(CPU)]
    plugin = make_plugin("F0", filter=lambda *_: None, filter_status=lambda _, code: answers.pop(0))
    rejections = Rejections.of(np.array([0, 0]), np.array([1, 1]))
    assert rejections is not None
    errors = [
        Diagnosis(["a", "b"], CycleState(), make_profile(plugin).filter).reject_all(rejections)
        for _ in range(2)
    ]
    assert errors[0] is not None
    assert errors[1] is None


# --- counts for the metrics ---

FOUR_FILTERS = filters(*[{1: UNSCHEDULABLE(CPU)}] * 4)


@given(
    st.lists(st.lists(st.sampled_from([PASSED, 0, 0, 0, 1, 3]), min_size=1, max_size=6)),
    st.lists(st.sampled_from(["entered", "explicit", "counted"]), max_size=3),
)
def test_rejected_nodes_are_counted_by_filter_however_they_are_kept(
    stretches: list[list[int]], steps: list[str]
) -> None:
    count = sum(map(len, stretches))
    diagnosis = Diagnosis([f"n{row}" for row in range(count + 1)], CycleState(), FOUR_FILTERS)
    row = 0
    for stretch in stretches:
        rows = slice(row, row + len(stretch))
        diagnosis.record(rows, np.array(stretch, np.int64), np.ones(len(stretch), np.int64))
        row = rows.stop
    for step in steps:
        match step:
            case "entered":
                diagnosis.status_of(count)
            case "explicit":
                diagnosis.set_explicit(count, UNSCHEDULABLE("nominated"))
            case _:
                diagnosis.reason_counts()
    expected = Counter(index for stretch in stretches for index in stretch if index != PASSED)
    assert diagnosis.rejected_counts() == expected
