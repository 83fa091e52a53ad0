"""Durations and booleans read and print as Go's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.config.scalars import Duration, parse_bool, seconds


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("0s", "0s"),
        ("1ns", "1ns"),
        ("1500ns", "1.5µs"),
        ("300ms", "300ms"),
        ("1.5ms", "1.5ms"),
        ("15s", "15s"),
        ("1.000000001s", "1.000000001s"),
        ("90s", "1m30s"),
        ("600s", "10m0s"),
        ("1h", "1h0m0s"),
        ("1h30m", "1h30m0s"),
        ("-2.5h", "-2h30m0s"),
        ("-1ms", "-1ms"),
    ],
)
def test_a_duration_prints_as_go_prints_it(text: str, printed: str) -> None:
    assert str(Duration.parse(text)) == printed


@given(st.integers(-(2**62), 2**62))
def test_a_printed_duration_reads_back(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'time: invalid duration ""'),
        ("15", 'time: missing unit in duration "15"'),
        ("5x", 'time: unknown unit "x" in duration "5x"'),
    ],
)
def test_what_is_no_duration_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Duration.parse(text)


def test_seconds_of_a_duration() -> None:
    assert seconds(5) == Duration.parse("5s")
    assert Duration.parse("1500ms").seconds == 1.5


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_true_words(text: str) -> None:
    assert parse_bool(text) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "FALSE", "False"])
def test_false_words(text: str) -> None:
    assert parse_bool(text) is False


@pytest.mark.parametrize("text", ["", "yes", "tRUE"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f'strconv.ParseBool: parsing "{text}": invalid syntax'):
        parse_bool(text)
